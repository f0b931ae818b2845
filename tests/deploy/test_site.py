"""The pages of the documentation site: all are in the navigation and linked to each other; the check finds faults."""

import os
import re
import tomllib
from pathlib import Path

import pytest

from scripts import site

LINK = re.compile(r"\]\(([^)\s#]+)")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "source"
    site.stage(folder)
    return folder


def pages_of(entries):
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for value in entry.values():
                yield from pages_of(value if isinstance(value, list) else [value])


def test_every_page_is_in_the_navigation_once(source):
    project = tomllib.loads((source / "zensical.toml").read_text())["project"]
    listed = list(pages_of(project["nav"]))
    written = {str(page.relative_to(source / "pages")) for page in (source / "pages").rglob("*.md")}
    assert len(listed) == len(set(listed))
    assert set(listed) == written
    assert {"index.md", "guides/client.md", "reference/api.md", "changelog.md", "decisions/index.md"} <= written


def test_links_lead_to_pages_of_the_site(source):
    pages = source / "pages"
    for page in pages.rglob("*.md"):
        for target in LINK.findall(site.FENCE.sub("", page.read_text())):
            if ":" not in target:
                path = Path(os.path.normpath(page.parent / target))
                assert path.is_file(), (page, target)
                assert path.is_relative_to(pages)


def test_nothing_is_loaded_from_other_hosts(source):
    project = tomllib.loads((source / "zensical.toml").read_text())["project"]
    assert project["theme"]["font"] is False
    [script] = project["extra"]["polyfills"]  # else the generator adds one that is loaded from elsewhere
    assert (source / "pages" / script["path"]).is_file()
    assert "iframe-worker" in script["path"]
    assert not any("```mermaid" in page.read_text() for page in source.rglob("*.md"))


def test_a_state_diagram_becomes_a_table():
    table = site.transitions("    [*] --> live: opened\n    live --> ended: expired\n    ended --> [*]\n")
    assert table.splitlines()[2:] == ["| | opened | live |", "| live | expired | ended |", "| ended |  | |"]


def test_the_check_finds_broken_links_anchors_and_foreign_files(tmp_path):
    (tmp_path / "a.css").touch()
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="a.css"><h1 id="top">x</h1>'
        '<a href="#top">1</a><a href="b.html#part">2</a><a href="https://example.com/">3</a><a href="mailto:x@y">4</a>'
    )
    (tmp_path / "b.html").write_text('<p id="part"><a href="index.html#top">1</a></p>')
    assert site.check(tmp_path) == []
    (tmp_path / "b.html").write_text(
        '<a href="index.html#none">1</a><a href="c.html">2</a><a href="#none">3</a><img src="d.png">'
        '<script src="https://example.com/x.js"></script><link rel="stylesheet" href="//example.com/x.css">'
    )
    assert site.check(tmp_path) == [
        "b.html: no file d.png",
        "b.html: loads https://example.com/x.js",
        "b.html: loads //example.com/x.css",
        "b.html: no anchor index.html#none",
        "b.html: no page c.html",
        "b.html: no anchor #none",
        "index.html: no anchor b.html#part",
    ]
