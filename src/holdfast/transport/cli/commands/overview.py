"""Verbs `prime` and `top`: held jobs and open tasks of an account."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Any, NamedTuple

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.connection import client_for
from holdfast.transport.cli.credentials import address_of
from holdfast.transport.cli.display.screen import Screen
from holdfast.transport.cli.display.styles import bold
from holdfast.transport.cli.display.table import cut, format_table, print_table
from holdfast.transport.cli.display.times import time_of_day
from holdfast.transport.cli.hosts.rules import SHELL_RULES
from holdfast.transport.cli.output import WIDE, escape, is_document, is_terminal, print_document
from holdfast.transport.cli.verbs.verb import Invocation

MAX_JOBS = 50
REFRESH_SECONDS = 2.0
SHORTEST_REFRESH = 0.2
"""Seconds between two updates after events, so that the screen stays readable."""
HELP = "q quits"
_JOB_COLUMNS = ("job_id", "owner", "expires_in_seconds", "waiting", "note")
_QUEUE_COLUMNS = ("type", "pending", "claimed", "dead")


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
    """Show the overview until `q` or Ctrl-C; print it once if stdout is no terminal."""
    arguments = invocation.arguments
    every = arguments.pop("every") or REFRESH_SECONDS
    once = arguments.pop("once") or not is_terminal()
    server = address_of(arguments["url"])
    client = client_for(arguments)
    overview = read_overview(client)
    if once or is_document(invocation.output):
        return _print_overviews(client, overview, every, invocation, once=once)
    problem, read_at = "", time.time()
    with Screen() as screen, suppress(KeyboardInterrupt):
        threading.Thread(target=_watch_events, args=(client, screen), daemon=True).start()
        while True:
            size = os.get_terminal_size()
            header = f"{escape(server)}  {time_of_day(read_at)}"
            screen.draw([*draw_overview(overview, header, size.columns, size.lines - 2), "", problem or HELP])
            if screen.wait(every) or screen.wait(SHORTEST_REFRESH, only_keys=True):
                break
            try:
                overview, problem, read_at = read_overview(client), "", time.time()
            except HoldfastError as error:
                problem = cut(f"{time_of_day(time.time())} {escape(error.message)}", size.columns)
    return exit_status.OK


def _watch_events(client: Client, screen: Screen) -> None:
    """Wake the screen at every event. With a key that may not follow the log, only the refresh interval does."""
    with suppress(HoldfastError):
        for _ in client.follow():
            screen.wake()


def _print_overviews(client: Client, overview: Overview, every: float, invocation: Invocation, *, once: bool) -> int:
    """Print the overview once, or as a document again and again."""
    while True:
        if is_document(invocation.output):
            print_document(overview._asdict(), invocation.output)
        else:
            print_table(overview.jobs, _JOB_COLUMNS, wide=invocation.output == WIDE)
            print()
            print_table(overview.queues, _QUEUE_COLUMNS)
        if once:
            return exit_status.OK
        time.sleep(every)
        overview = read_overview(client)


def draw_overview(overview: Overview, header: str, width: int, height: int) -> list[str]:
    """The lines of the screen: counts, queues, and as many jobs as there is room for."""
    waiting = sum(job.get("waiting", 0) for job in overview.jobs)
    ready, claimed, dead = (sum(queue[state] for queue in overview.queues) for state in ("pending", "claimed", "dead"))
    more = "+" if overview.more_jobs else ""
    noun = "job" if len(overview.jobs) == 1 else "jobs"
    counts = f"{len(overview.jobs)}{more} {noun} held, {waiting} waiting for them;"
    counts += f" tasks: {ready} ready, {claimed} claimed, {dead} dead letters"
    queues = (
        format_table(overview.queues, _QUEUE_COLUMNS, width=width)[: max(height // 3, 2)] if overview.queues else []
    )
    room = max(height - len(queues) - 6, 1)
    jobs = format_table(overview.jobs[:room], _JOB_COLUMNS, width=width) if overview.jobs else ["no job is held"]
    hidden = len(overview.jobs) - room
    if hidden > 0 or overview.more_jobs:
        jobs.append("more: holdfast ls")
    return [
        bold(cut(f"holdfast top  {header}", width)),
        cut(counts, width),
        "",
        *queues,
        *([""] if queues else []),
        *jobs,
    ]
