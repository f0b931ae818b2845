"""The shape of the source: small files, small folders, few suppressed lint rules."""

import re
import statistics
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "holdfast"
FILES = sorted(SOURCE.rglob("*.py"))
ALL_FILES = [file for folder in ("src", "tests", "bench", "examples") for file in (ROOT / folder).rglob("*.py")]
LENGTHS = {file: file.read_text().count("\n") for file in FILES}
ERROR_TREE = SOURCE / "core" / "errors.py"


def test_no_file_except_the_error_tree_is_longer_than_300_lines():
    assert not {file: length for file, length in LENGTHS.items() if length > 300 and file != ERROR_TREE}


def test_half_of_the_files_have_at_most_110_lines():
    assert statistics.median(length for file, length in LENGTHS.items() if file.name != "__init__.py") <= 110


def test_no_folder_has_more_than_20_modules():
    modules = Counter(file.parent for file in FILES if file.name != "__init__.py")
    assert not {folder: count for folder, count in modules.items() if count > 20}


def test_every_suppressed_lint_rule_is_named():
    for file in ALL_FILES:
        assert not re.search(r"#\s*noqa(?!: [A-Z])", file.read_text()), file


def test_fewer_than_60_lines_suppress_a_lint_rule():
    assert sum(len(re.findall(r"#\s*noqa", file.read_text())) for file in ALL_FILES) < 60


def test_types_are_described_in_one_place():
    """holdfast.decoding says why."""
    describes = re.compile(r"msgspec\.convert\(|json\.Decoder\(|json\.decode\([^\n]*type=")
    assert [file for file in FILES if describes.search(file.read_text())] == [SOURCE / "decoding.py"]
