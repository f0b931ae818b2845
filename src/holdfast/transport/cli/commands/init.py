"""Verb `init`: writes files that make the agents of a repository use Holdfast, or removes them again."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

from holdfast.addresses import url_problem
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.credentials import address_of
from holdfast.transport.cli.hosts.files import AgentFile
from holdfast.transport.cli.hosts.host import Host
from holdfast.transport.cli.hosts.program import find_program
from holdfast.transport.cli.hosts.setup import files_of, hosts_in_use
from holdfast.transport.cli.hosts.table import BY_NAME, HOSTS
from holdfast.transport.cli.output import print_message
from holdfast.transport.cli.verbs.verb import Invocation

ALL = "all"
Change = tuple[AgentFile, str | None, str | None]
"""A file, and its text before and after."""


def run(invocation: Invocation) -> int:
    """Print the changes, ask, and write them."""
    arguments = invocation.arguments
    folder, url = Path(arguments["folder"] or "."), address_of(arguments["url"])
    problem = f"{folder} is not a folder" if not folder.is_dir() else None
    address_problem = url_problem(url)
    problem = problem or (address_problem and f"the address {url}: {address_problem}")
    if problem:
        print_message(f"holdfast: {problem}")
        return exit_status.USAGE
    try:
        if arguments["undo"]:
            changes = _removals(files_of(folder, list(HOSTS), url))
        else:
            hosts = _choose_hosts(folder, arguments["hosts"] or [])
            require_claim = bool(arguments["require_claim"])
            program = find_program()
            changes = _additions(files_of(folder, hosts, url, require_claim=require_claim, program=program))
    except ValueError as error:
        print_message(f"holdfast: {error}")
        return exit_status.USAGE
    if not changes:
        print_message("holdfast: nothing to change")
        return exit_status.OK
    for file, before, after in changes:
        sys.stdout.writelines(_diff(file.path, before or "", after or ""))
    if not arguments["yes"] and not _is_confirmed():
        return exit_status.USAGE
    for file, _, after in changes:
        file.write(after)
    return exit_status.OK


def _choose_hosts(folder: Path, named: list[str]) -> list[Host]:
    """Those in use and those that were named; the first of all if there is neither."""
    unknown = [name for name in named if name not in {*BY_NAME, ALL}]
    if unknown:
        raise ValueError(f"there is no host {unknown[0]!a}: name one of {', '.join(BY_NAME)} or {ALL}")
    in_use = hosts_in_use(folder)
    chosen = [host for host in HOSTS if host in in_use or host.name in named or ALL in named] or [HOSTS[0]]
    titles = ", ".join(host.title for host in chosen)
    other = [host.name for host in HOSTS if host not in chosen]
    print_message(f"holdfast: for {titles}" + (f" (others: --host {'|'.join(other)})" if other else ""))
    return chosen


def _additions(files: list[AgentFile]) -> list[Change]:
    found = [(file, before, file.add_to(before)) for file in files for before in (file.read(),)]
    return [change for change in found if change[1] != change[2]]


def _removals(files: list[AgentFile]) -> list[Change]:
    found = [(file, before, file.remove_from(before)) for file in files if (before := file.read()) is not None]
    return [change for change in found if change[1] != change[2]]


def _diff(path: Path, before: str, after: str) -> list[str]:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    lines = difflib.unified_diff(old, new, str(path), str(path))
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]


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
