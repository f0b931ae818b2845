"""The dashboard guide lists the pages that exist."""

import re
import shlex
import sys
from importlib import resources
from pathlib import Path

from holdfast.transport.cli.main import read_arguments
from holdfast.transport.cli.table import find_verb
from holdfast.transport.dashboard import labels
from holdfast.transport.dashboard.pages import PAGES

DOCS = Path(__file__).parents[2] / "docs"
MOST_BYTES = 150_000


def test_the_page_about_the_dashboard_lists_every_page_with_its_key():
    text = (DOCS / "guides/dashboard.md").read_text()
    for page in PAGES:
        if not page.key:
            continue  # it is described with the page that links to it
        assert f"| {page.title} | `g` `{page.key}` |" in text


def test_every_page_has_a_unique_key_and_address():
    keys = [page.key for page in PAGES if page.key]
    assert len(set(keys)) == len(keys)
    assert len({page.name for page in PAGES}) == len(PAGES)


def test_the_commands_on_empty_pages_exist():
    templates = resources.files("holdfast.transport.dashboard") / "templates"
    text = "".join(each.read_text() for each in templates.iterdir())
    found = re.findall(r'command\("[a-z-]+", "(holdfast (?:[^"\\]|\\.)*)"', text)
    commands = [shown_command.replace('\\"', '"') for shown_command in found]
    assert len(commands) >= 6
    for command in commands:
        verb, rest = find_verb(shlex.split(command)[1:])
        assert verb is not None, command
        read_arguments(verb, rest)


def test_example_commands_set_the_path_only_if_it_is_needed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert labels.path_for_commands("127.0.0.1") == f"PATH={Path(sys.executable).parent}:$PATH "
    assert labels.path_for_commands("203.0.113.7") == "", "nobody elsewhere need know where it is"
    (tmp_path / "holdfast").touch(0o755)
    assert labels.path_for_commands("127.0.0.1") == ""


def test_screenshots_are_small():
    found = sorted((DOCS / "screenshots").glob("*.png"))
    assert found
    assert [path.name for path in found if path.stat().st_size > MOST_BYTES] == []
