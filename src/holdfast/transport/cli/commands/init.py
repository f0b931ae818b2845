"""`holdfast init`: teaches the agents of a repository to use Holdfast, and can take all of it out again."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Any

from holdfast.addresses import url_problem
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.agent_files import Lesson, lessons
from holdfast.transport.cli.http_sender import address_of
from holdfast.transport.cli.output import say
from holdfast.transport.cli.verbs.verb import Verb


def run(verb: Verb, arguments: dict[str, Any]) -> int:  # noqa: ARG001 - every room has this shape
    """Show what would change, ask, and change it."""
    folder, url = Path(arguments["folder"] or "."), address_of(arguments["url"])
    problem = url_problem(url)
    if not folder.is_dir() or problem is not None:
        say(f"holdfast: {folder} is no folder" if problem is None else f"holdfast: the address {url}: {problem}")
        return exit_status.USAGE
    changes: list[tuple[Lesson, str, str]] = []
    try:
        for lesson in lessons(folder, url):
            before = lesson.read()
            after = lesson.without(before) if arguments["undo"] else lesson.taught(before)
            if before != after:
                changes.append((lesson, before, after))
    except ValueError as error:
        say(f"holdfast: {error}")
        return exit_status.USAGE
    if not changes:
        say("holdfast: nothing to change")
        return exit_status.OK
    for lesson, before, after in changes:
        sys.stdout.writelines(_difference(lesson.path, before, after))
    if not arguments["yes"] and not _agreed():
        return exit_status.USAGE
    for lesson, _, after in changes:
        lesson.write(after)
    return exit_status.OK


def _difference(path: Path, before: str, after: str) -> list[str]:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return list(difflib.unified_diff(old, new, str(path), str(path)))


def _agreed() -> bool:
    """Ask a person; where there is none, nothing is changed."""
    if not sys.stdin.isatty():
        say("holdfast: nothing was changed: there is nobody to ask, say --yes")
        return False
    print("Change this? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    say("holdfast: nothing was changed")
    return False
