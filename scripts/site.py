"""Writes the pages of the documentation for the site generator, and checks the site that it made.

    python scripts/site.py stage build/site-source      pages, navigation and zensical.toml
    python scripts/site.py check build/site             links, anchors, and that nothing is loaded from elsewhere

The pages are those that README.md links to: its section "Documentation" is the navigation. README.md becomes the first
page, and the Markdown files of the root are pages beside it. `scripts/docs` calls both.
"""

import html
import os
import re
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
LINK = re.compile(r"(\]\()([^)\s#]+)")
FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
DIAGRAM = re.compile(r"^```mermaid\nstateDiagram-v2\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DECISIONS = "decisions/index.md"
SEARCH_FROM_FILES = "assets/iframe-worker.js"

CONFIGURATION = """\
[project]
site_name = "Holdfast"
site_description = "One live owner, a visible history and automatic recovery for every piece of agent work."
docs_dir = "pages"
site_dir = "site"
use_directory_urls = false
nav = {nav}

[project.theme]
# Fonts of the reader's system: web fonts would come from another host.
font = false
features = ["content.code.copy", "navigation.top", "navigation.path", "search.highlight", "toc.follow"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/moon"
toggle.name = "Dark colours"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/sun"
toggle.name = "Light colours"

# Search works from files, without a server: {search} makes that possible.
[project.plugins.offline]
[[project.extra.polyfills]]
path = "{search}"

[project.markdown_extensions.tables]
[project.markdown_extensions.toc]
permalink = true
[project.markdown_extensions.pymdownx.highlight]
[project.markdown_extensions.pymdownx.superfences]
"""


# -- pages -------------------------------------------------------------------------------------------------------


def stage(folder: Path) -> None:
    """Write pages and configuration."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    for source, name in site_names().items():
        target = pages / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(page(source))
        else:
            shutil.copyfile(source, target)
    (pages / DECISIONS).write_text(decisions_page())
    (pages / "assets").mkdir()
    shutil.copyfile(ROOT / "scripts" / Path(SEARCH_FROM_FILES).name, pages / SEARCH_FROM_FILES)
    configuration = CONFIGURATION.format(nav=toml(navigation()), search=SEARCH_FROM_FILES)
    (folder / "zensical.toml").write_text(configuration)


@cache
def site_names() -> dict[Path, str]:
    """Every file of the site and its name there."""
    names = {file: str(file.relative_to(DOCS)) for file in sorted(DOCS.rglob("*")) if file.is_file()}
    names |= {file: f"{file.stem.lower()}.md" for file in sorted(ROOT.glob("*.md"))}
    names[ROOT / "README.md"] = "index.md"
    return names


def page(source: Path) -> str:
    """A page with the links of the site, and state diagrams as tables: to draw them would need a script of 3 MB."""
    text = DIAGRAM.sub(lambda found: transitions(found[1]), source.read_text())
    parts = FENCE.split(text)
    return "".join(part if part.startswith("```") else relink(part, source) for part in parts)


def relink(text: str, source: Path) -> str:
    """The same text with links between files of the repository changed to links between pages."""
    names = site_names()
    here = Path(names[source]).parent

    def changed(found: re.Match[str]) -> str:
        if ":" in found[2]:
            return found[0]
        target = (source.parent / found[2]).resolve()
        name = DECISIONS if target == DOCS / "decisions" else names[target]
        return found[1] + os.path.relpath(name, here)

    return LINK.sub(changed, text)


def transitions(diagram: str) -> str:
    """The arrows of a state diagram as a table."""
    rows = re.findall(r"^\s+(\S+) --> (\S+)(?:: (.+))?$", diagram, re.MULTILINE)
    lines = [f"| {old} | {how} | {new} |".replace("| [*] |", "| |") for old, new, how in rows]
    return "\n".join(["| state | what happens | next state |", "| --- | --- | --- |", *lines])


def decisions_page() -> str:
    """A list of all decisions."""
    files = sorted((DOCS / "decisions").glob("*.md"))
    return "# Decisions\n\n" + "".join(f"- [{title_of(file)}]({file.name})\n" for file in files)


def title_of(file: Path) -> str:
    """The first heading of a page."""
    return file.read_text().splitlines()[0].removeprefix("# ")


def navigation() -> list[object]:
    """The section "Documentation" of README.md: groups of titles and pages."""
    section = (ROOT / "README.md").read_text().split("\n## Documentation\n", 1)[1]
    names = site_names()
    groups: list[object] = [{"Holdfast": "index.md"}]
    for title, text in re.findall(r"^- \*\*(.+?)\*\*: (.*?)(?=^- |^$)", section, re.MULTILINE | re.DOTALL):
        entries: list[object] = []
        for label, target in re.findall(r"\[([^]]+)\]\(([^)]+)\)", text):
            if target == "docs/decisions/":
                files = sorted((DOCS / "decisions").glob("*.md"))
                entries.append({"Decisions": [DECISIONS, *({title_of(file): names[file]} for file in files)]})
            else:
                entries.append({label[0].upper() + label[1:]: names[ROOT / target]})
        groups.append({title: entries})
    return groups


def toml(value: object) -> str:
    """A value as TOML, on one line."""
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(entry)}" for key, entry in value.items()) + "}"
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


# -- the check ---------------------------------------------------------------------------------------------------


class PageReader(HTMLParser):
    """The anchors of a page, its links, and the files that a browser loads for it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what one tag names."""
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in {"canonical", "prev", "next", "alternate"}:
            self.loaded.append(given.get("href", ""))
        elif tag in {"script", "img", "iframe", "source"} and given.get("src"):
            self.loaded.append(given["src"])


def check(site: Path) -> list[str]:
    """Broken links, missing anchors, and files that would be loaded from another host."""
    pages = {file: PageReader(file.read_text()) for file in sorted(site.rglob("*.html"))}
    found = [f"{site}: no pages"] if not pages else []
    for file, read in pages.items():
        if file.name != "404.html":  # its links begin at the root of a server
            found += (f"{file.relative_to(site)}: {problem}" for problem in problems(file, read, pages))
    return found


def problems(file: Path, read: PageReader, pages: dict[Path, PageReader]) -> Iterator[str]:
    """What is wrong with one page."""
    for address in read.loaded:
        if re.match(r"(https?:)?//", address):
            yield f"loads {address}"
        elif not address.startswith("data:") and not target_of(file, address)[0].is_file():
            yield f"no file {address}"
    for address in read.links:
        if re.match(r"[a-z]+:", address):
            continue
        target, anchor = target_of(file, address)
        if not target.is_file():
            yield f"no page {address}"
        elif anchor and target in pages and anchor not in pages[target].anchors:
            yield f"no anchor {address}"


def target_of(file: Path, address: str) -> tuple[Path, str]:
    """The file and the anchor that an address on a page means."""
    path, _, anchor = html.unescape(address).partition("#")
    target = (file.parent / unquote(path.partition("?")[0])).resolve() if path else file
    return target / "index.html" if target.is_dir() else target, unquote(anchor)


def main(verb: str, folder: str) -> int:
    """Do what was asked; the exit status is 1 if the check finds anything."""
    if verb == "stage":
        stage(Path(folder))
        return 0
    found = check(Path(folder).resolve())
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
