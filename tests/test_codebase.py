"""The shape of the source: small files, small folders, few suppressed lint rules."""

import re
import statistics
from collections import Counter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "holdfast"
FILES = sorted(SOURCE.rglob("*.py"))
LENGTHS = {file: file.read_text().count("\n") for file in FILES}
ERROR_TREE = SOURCE / "core" / "errors.py"


def test_no_file_is_longer_than_300_lines_but_the_error_tree():
    assert not {file: length for file, length in LENGTHS.items() if length > 300 and file != ERROR_TREE}


def test_half_of_the_files_have_at_most_110_lines():
    assert statistics.median(length for file, length in LENGTHS.items() if file.name != "__init__.py") <= 110


def test_no_folder_has_more_than_20_modules():
    modules = Counter(file.parent for file in FILES if file.name != "__init__.py")
    assert not {folder: count for folder, count in modules.items() if count > 20}


@pytest.mark.parametrize("folder", ["src", "tests", "bench", "examples"])
def test_every_suppressed_lint_rule_is_named(folder):
    root = SOURCE.parents[1] / folder
    for file in root.rglob("*.py"):
        assert not re.search(r"#\s*noqa(?!: [A-Z])", file.read_text()), file


def test_lint_rules_are_suppressed_in_few_lines():
    assert sum(len(re.findall(r"#\s*noqa", file.read_text())) for file in FILES) < 60
