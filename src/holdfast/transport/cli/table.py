"""All verbs, in the order of the help, and how words on the command line select one."""

from __future__ import annotations

import os

from holdfast.owner import default_owner
from holdfast.transport.cli.octostore.verbs import OCTOSTORE_VERBS
from holdfast.transport.cli.verbs.agents import AGENT_VERBS
from holdfast.transport.cli.verbs.events import EVENT_VERBS
from holdfast.transport.cli.verbs.jobs import JOB_VERBS
from holdfast.transport.cli.verbs.keys import DASHBOARD_VERBS, KEY_VERBS
from holdfast.transport.cli.verbs.queues import QUEUE_VERBS
from holdfast.transport.cli.verbs.reservations import RESERVATION_VERBS
from holdfast.transport.cli.verbs.server import PROGRAM_VERBS, SERVER_VERBS
from holdfast.transport.cli.verbs.sessions import ELECTION_VERBS, SESSION_VERBS
from holdfast.transport.cli.verbs.tasks import TASK_VERBS
from holdfast.transport.cli.verbs.verb import FIELDS, OUTPUT, Argument, Verb, flag
from holdfast.transport.cli.verbs.webhooks import WEBHOOK_VERBS

GROUPS: tuple[tuple[str, tuple[Verb, ...]], ...] = (
    ("Jobs, and files of a repository", (*JOB_VERBS, *RESERVATION_VERBS)),
    ("Tasks, events and webhooks", (*TASK_VERBS, *QUEUE_VERBS, *EVENT_VERBS, *WEBHOOK_VERBS)),
    (
        "Sessions, elections and keys; lock and election are compatible with OctoStore",
        (*SESSION_VERBS, *ELECTION_VERBS, *KEY_VERBS, *OCTOSTORE_VERBS),
    ),
    ("Agents in a repository", AGENT_VERBS),
    ("Server and command line", (*SERVER_VERBS, *DASHBOARD_VERBS, *PROGRAM_VERBS)),
)
VERBS = {verb.name: verb for _, verbs in GROUPS for verb in verbs}

JOB_LEASE, RESERVATION_LEASE = "HOLDFAST_LEASE", "HOLDFAST_RESERVATION_LEASE"
"""Variables that `run` and `reserve` set for their command. Two, because one may run inside the other."""

COMMON: tuple[Argument, ...] = (
    OUTPUT,
    flag("--url", "url", "URL", "address of the server ($HOLDFAST_URL, or http://127.0.0.1:7700)"),
    flag("--key-file", "key_file", "FILE", "file with the key, readable only by you; - for stdin ($HOLDFAST_API_KEY)"),
)
"""Flags of every verb that calls a server; those that print its answer have --fields too."""


def arguments_of(verb: Verb) -> tuple[Argument, ...]:
    return (*verb.arguments, *common_arguments_of(verb))


def common_arguments_of(verb: Verb) -> tuple[Argument, ...]:
    """The flags that it shares with others."""
    if not verb.calls_server:
        return ()
    first, *others = COMMON
    return (first, FIELDS, *others) if verb.operation else COMMON


def find_verb(words: list[str]) -> tuple[Verb | None, list[str]]:
    """The verb that the words begin with, of two words or one, and the remaining words."""
    for length in (2, 1):
        verb = VERBS.get(" ".join(words[:length]))
        if verb is not None and len(words) >= length:
            return verb, words[length:]
    return None, words


def first_words() -> list[str]:
    """The first word of every verb, each once."""
    return list(dict.fromkeys(name.split()[0] for name in VERBS))


def second_words(first: str) -> list[str]:
    """The second words of the verbs that begin with this one."""
    return [name.split()[1] for name in VERBS if name.startswith(f"{first} ")]


def fill_from_environment(arguments: dict[str, object], verb: Verb) -> str | None:
    """Set the caller's name and its lease where no flag did; what is still missing.

    The lease is that of `holdfast run`, if the verb runs inside it, else the one that an earlier claim remembered.
    """
    fields = {argument.field for argument in verb.arguments}
    for field in ("owner", "candidate_id", *(["worker_id"] if verb.is_claim else [])):
        if field in fields and arguments.get(field) is None:
            arguments[field] = default_owner()
    if "lease_id" not in fields or arguments.get("lease_id") is not None:
        return None
    variable = lease_variable(verb.operation)
    running = os.environ.get("HOLDFAST_JOB") if variable == JOB_LEASE else None
    if variable and (running is None or arguments.get("job_id") in {None, running}):
        arguments["lease_id"] = os.environ.get(variable) or None
    if arguments["lease_id"] is None:
        from holdfast.transport.cli.held_leases import find_lease, whose_lease  # imports the client

        arguments["lease_id"] = find_lease(verb.operation, arguments)
        if arguments["lease_id"] is None:
            hint = whose_lease(verb, arguments)
            if hint is not None:
                return f"--lease is required: {hint}"
    if variable and arguments["lease_id"] is None:
        if variable == JOB_LEASE:
            return f"--lease is required: {arguments['owner']} claimed no such job with this program on this machine"
        return f"--lease is required: the lease_id that reserving printed (inside `holdfast reserve`: ${variable})"
    return None


def lease_variable(operation: str) -> str | None:
    """The environment variable with the lease of the job or reservation that a command runs under."""
    if operation.endswith("_job"):
        return JOB_LEASE
    return RESERVATION_LEASE if operation.endswith(("_reservation", "_files")) else None
