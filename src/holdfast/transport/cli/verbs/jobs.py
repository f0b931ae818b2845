"""Verbs about jobs: named things that somebody owns."""

from __future__ import annotations

import os

from holdfast.transport.cli.verbs.verb import Verb, flag, json_or_text, json_text, switch, word

NAME = word("NAME", "job_id", "which job")
OWNER = flag("--owner", "owner", "WHO", "who you are, for others to read ($HOLDFAST_OWNER, or user@host)")
TTL = flag("--ttl", "ttl_seconds", "SECONDS", "yours for so long without a heartbeat (120)", int)
METADATA = flag(
    "--metadata", "metadata", "JSON", "an object or a text, shown to everybody; @file reads one", json_or_text
)
_LEASE = flag("--lease", "lease_id", "ID", "the proof that the claim answered ($HOLDFAST_LEASE)")
_TOKEN = flag("--token", "token", "NUMBER", "the lease's token, checked as well", int)
_NOTE = flag("--note", "note", "TEXT", "for the next owner")
_CHECKPOINT = flag("--checkpoint", "checkpoint", "JSON", "for the next owner; @file reads one", json_text)
HELD_STATUS = flag("-E", "conflict_status", "NUMBER", "exit status when it is held (1)", int)
LIMIT = flag("--limit", "limit", "NUMBER", "at most so many (100)", int)
CURSOR = flag("--cursor", "cursor", "CURSOR", "go on where the last page ended")

JOB_VERBS = (
    Verb(
        "claim",
        "own a job if nobody does, or learn who does",
        (
            NAME,
            OWNER,
            flag("-w --wait", "wait_seconds", "SECONDS", "stand in line for so long (0)", float),
            TTL,
            METADATA,
            flag("--session", "session_id", "ID", "the job goes when this session does"),
            HELD_STATUS,
        ),
        "claim_job",
        "commands.claim",
        claims=True,
    ),
    Verb(
        "heartbeat",
        "still at work: start the time again",
        (
            NAME,
            _LEASE,
            TTL,
            _TOKEN,
            _NOTE,
            _CHECKPOINT,
            flag("--progress", "progress", "JSON", "shown to everybody while you hold it", json_text),
        ),
        "heartbeat_job",
    ),
    Verb("release", "done: let the next one have it", (NAME, _LEASE, _TOKEN, _NOTE, _CHECKPOINT), "release_job"),
    Verb("owner", "who owns a job, or how its last ownership ended", (NAME,), "get_job_owner"),
    Verb(
        "ls",
        "jobs that somebody owns right now",
        (word("PREFIX", "prefix", "only names that begin so", required=False), LIMIT, CURSOR),
        "list_claimed_jobs",
        rows="jobs",
        columns=("job_id", "owner", "expires_in_seconds", "note"),
    ),
    Verb(
        "force-release",
        "take a job from its holder (needs a key with the scope admin)",
        (NAME, flag("--reason", "reason", "TEXT", "told to the former holder", required=True)),
        "force_release_job",
    ),
    Verb(
        "run",
        "hold a job while a command runs",
        (
            NAME,
            word("COMMAND", "command", "what to run, after --", many=True),
            switch("-n --nonblock", "nonblock", "give up at once if somebody holds it"),
            flag("-w --wait", "wait_seconds", "SECONDS", "give up after so long (waits for ever)", float),
            OWNER,
            TTL,
            METADATA,
            HELD_STATUS,
        ),
        module="hold.run",
        more="The command finds HOLDFAST_JOB, HOLDFAST_TOKEN, HOLDFAST_LEASE and HOLDFAST_EXPIRES_AT. Signals are\n"
        "handed on to it. The exit status is its own, or 128 and the signal that ended it. When ownership is lost,\n"
        "it gets TERM, then KILL, before the lease could be another's, and the exit status is 5.",
    ),
)


def fill_in(arguments: dict[str, object], verb: Verb) -> str | None:
    """What the environment knows: the lease inside `run`, and who we are. Tells what is missing even so."""
    fields = {argument.field for argument in verb.arguments}
    if "lease_id" in fields and verb.operation.endswith("_job") and arguments.get("lease_id") is None:
        arguments["lease_id"] = os.environ.get("HOLDFAST_LEASE")
        if not arguments["lease_id"]:
            return "--lease is needed: the lease_id that the claim answered ($HOLDFAST_LEASE has it inside `run`)"
    if "owner" in fields and arguments.get("owner") is None:
        arguments["owner"] = _somebody()
    if "candidate_id" in fields and arguments.get("candidate_id") is None:
        arguments["candidate_id"] = _somebody()
    return None


def _somebody() -> str:
    """Who we are, if nobody says."""
    return (
        os.environ.get("HOLDFAST_OWNER")
        or f"{os.environ.get('USER') or os.environ.get('LOGNAME') or 'somebody'}@{os.uname().nodename}"
    )
