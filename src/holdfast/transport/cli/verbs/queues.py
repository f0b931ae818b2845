"""Verbs for the settings of queues."""

from __future__ import annotations

from holdfast.operations import bounds
from holdfast.transport.cli.durations import parse_duration
from holdfast.transport.cli.verbs.verb import CURSOR, Verb, duration, flag, limit, positional

_TYPE = positional("TYPE", "type", "type of the tasks, which names their queue")

QUEUE_VERBS = (
    Verb(
        "queue ls",
        "list the queues that have settings",
        (limit(bounds.SESSION_PAGE), CURSOR),
        "list_queues",
        rows="queues",
        columns=("type", "paused", "max_running", "max_running_per_key", "running", "pending"),
    ),
    Verb("queue show", "show the settings of a queue", (_TYPE,), "read_queue"),
    Verb(
        "queue pause",
        "let no more tasks be claimed; those that run go on",
        (_TYPE,),
        "set_queue",
        "commands.queues:pause",
    ),
    Verb("queue resume", "let tasks be claimed again", (_TYPE,), "set_queue", "commands.queues:resume"),
    Verb(
        "queue drain",
        "pause a queue, and wait until none of its tasks runs",
        (_TYPE, duration("-w --wait", "wait_seconds", "wait for at most this long (no limit)", parse_duration)),
        "set_queue",
        "commands.queues:drain",
        more="Exit status 1: tasks still run after the wait. The queue stays paused.",
    ),
    Verb(
        "queue limit",
        "limit how many tasks of a queue run, in all or by concurrency key",
        (
            _TYPE,
            flag("--max-running", "max_running", "NUMBER", "at most this many running tasks; 0: no limit", int),
            flag(
                "--max-running-per-key",
                "max_running_per_key",
                "NUMBER",
                "at most this many with the same concurrency key; 0: no limit",
                int,
            ),
        ),
        "set_queue",
    ),
)
