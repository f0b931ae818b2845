"""Verbs `prime` and `top`: held jobs and open tasks of an account."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any, NamedTuple

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.connection import client_for
from holdfast.transport.cli.hosts.rules import SHELL_RULES
from holdfast.transport.cli.output import WIDE, escape, is_document, is_terminal, print_document, print_table
from holdfast.transport.cli.verbs.verb import Invocation

MAX_JOBS = 50
REFRESH_SECONDS = 2.0
SHORTEST_REFRESH = 0.2
"""Seconds between two updates after events, so that the screen stays readable."""
_CLEAR = "\x1b[H\x1b[2J"


class Overview(NamedTuple):
    """State of an account at one moment."""

    jobs: list[dict[str, Any]]
    """Held jobs, at most MAX_JOBS."""
    more_jobs: bool
    queues: list[dict[str, Any]]
    """Counts of the task types with unfinished tasks."""


def read_overview(client: Client) -> Overview:
    """Read the held jobs and count the tasks."""
    jobs = client.call("list_claimed_jobs", limit=MAX_JOBS)
    counts = client.call("count_tasks")["types"]
    queues = [
        {"type": name, "pending": states["pending"], "claimed": states["claimed"], "dead": states["dead_letter"]}
        for name, states in sorted(counts.items())
    ]
    unfinished = [queue for queue in queues if queue["pending"] or queue["claimed"] or queue["dead"]]
    return Overview(jobs["jobs"], bool(jobs["hasMore"]), unfinished)


def prime(invocation: Invocation) -> int:
    """Print the rules for agents, then the overview. The rules are printed even if no server answers."""
    if not is_document(invocation.output):
        print(SHELL_RULES, flush=True)
    overview = read_overview(client_for(invocation.arguments))
    if is_document(invocation.output):
        print_document(overview._asdict(), invocation.output)
    else:
        print(_render(overview))
    return exit_status.OK


def _render(overview: Overview) -> str:
    """The overview in Markdown. Names written by other agents are escaped and quoted, so that they stay names."""
    lines = ["## Jobs held now", ""]
    lines += [f'- "{escape(job["job_id"])}" by "{escape(job["owner"] or "")}"' for job in overview.jobs]
    lines += ["- more: `holdfast ls`"] if overview.more_jobs else []
    lines += ["", "## Open tasks", ""]
    for queue in overview.queues:
        counts = f"{queue['pending']} ready, {queue['claimed']} claimed, {queue['dead']} dead letters"
        lines.append(f'- "{escape(queue["type"])}": {counts}')
    return "\n".join(lines)


def top(invocation: Invocation) -> int:
    """Print the overview until interrupted; once if stdout is no terminal."""
    every = invocation.arguments.pop("every") or REFRESH_SECONDS
    once = invocation.arguments.pop("once") or not is_terminal()
    client = client_for(invocation.arguments)
    overview, problem = read_overview(client), ""
    changed = threading.Event()
    if not once:
        threading.Thread(target=_watch_events, args=(client, changed), daemon=True).start()
    while True:
        if not once:
            print(_CLEAR, end="")
        _print_overview(overview, problem, invocation.output)
        if once:
            return exit_status.OK
        if changed.wait(every):
            time.sleep(SHORTEST_REFRESH)
            changed.clear()
        try:
            overview, problem = read_overview(client), ""
        except HoldfastError as error:
            problem = f"{time.strftime('%H:%M:%S')} {escape(error.message)}"


def _watch_events(client: Client, changed: threading.Event) -> None:
    """Signal every event. With a key that may not follow the log, only the refresh interval updates the screen."""
    with suppress(HoldfastError):
        for _ in client.follow():
            changed.set()


def _print_overview(overview: Overview, problem: str, output: str) -> None:
    """Print the last known state, and below it why it could not be updated since."""
    if is_document(output):
        print_document(overview._asdict(), output)
        return
    print_table(overview.jobs, ("job_id", "owner", "expires_in_seconds", "note"), wide=output == WIDE)
    print()
    print_table(overview.queues, ("type", "pending", "claimed", "dead"))
    if problem:
        print(f"\n{problem}")
