"""Verb `init`: writes files that make the agents of a repository use Holdfast, or removes them again."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

from holdfast.addresses import url_problem
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.agent_files import AgentFile, agent_files
from holdfast.transport.cli.credentials import address_of
from holdfast.transport.cli.output import print_message
from holdfast.transport.cli.verbs.verb import Invocation


def run(invocation: Invocation) -> int:
    """Print the changes, ask, and write them."""
    arguments = invocation.arguments
    folder, url = Path(arguments["folder"] or "."), address_of(arguments["url"])
    problem = url_problem(url)
    if not folder.is_dir() or problem is not None:
        print_message(
            f"holdfast: {folder} is not a folder" if problem is None else f"holdfast: the address {url}: {problem}"
        )
        return exit_status.USAGE
    changes: list[tuple[AgentFile, str, str]] = []
    try:
        for file in agent_files(folder, url):
            before = file.read()
            after = file.remove_from(before) if arguments["undo"] else file.add_to(before)
            if before != after:
                changes.append((file, before, after))
    except ValueError as error:
        print_message(f"holdfast: {error}")
        return exit_status.USAGE
    if not changes:
        print_message("holdfast: nothing to change")
        return exit_status.OK
    for file, before, after in changes:
        sys.stdout.writelines(_diff(file.path, before, after))
    if not arguments["yes"] and not _is_confirmed():
        return exit_status.USAGE
    for file, _, after in changes:
        file.write(after)
    return exit_status.OK


def _diff(path: Path, before: str, after: str) -> list[str]:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return list(difflib.unified_diff(old, new, str(path), str(path)))


def _is_confirmed() -> bool:
    """Ask on the terminal; without one the answer is no."""
    if not sys.stdin.isatty():
        print_message("holdfast: nothing was changed: stdin is no terminal to ask on; use --yes")
        return False
    print("Write these changes? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    print_message("holdfast: nothing was changed")
    return False
