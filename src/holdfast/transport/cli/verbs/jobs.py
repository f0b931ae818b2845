"""Verbs for jobs: named leases with one owner at a time."""

from __future__ import annotations

from holdfast.operations import bounds
from holdfast.transport.cli.durations import parse_done_for, parse_duration
from holdfast.transport.cli.verbs.verb import (
    CURSOR,
    HELD_STATUS,
    OFFER,
    OFFER_TERMS,
    OWNER,
    SESSION_LEASE,
    TOKEN,
    Verb,
    duration,
    flag,
    limit,
    parse_json,
    parse_json_or_text,
    positional,
    switch,
)

_NAME = positional("NAME", "job_id", "name of the job")
_TTL = duration("--ttl", "ttl_seconds", f"the lease ends this long after the last heartbeat ({bounds.JOB_TTL.default})")
_METADATA = flag(
    "--metadata", "metadata", "JSON", "an object or a string, visible to others; @file reads a file", parse_json_or_text
)
_LEASE = flag("--lease", "lease_id", "ID", "the lease_id from the claim ($HOLDFAST_LEASE, or remembered)")
_CLAIMER = flag("--owner", "owner", "WHO", "your name, as in the claim ($HOLDFAST_OWNER, or user@host)")
_NOTE = flag("--note", "note", "TEXT", "a note for the next owner")
_ANY = switch("--any", "any", "NAME is a list, separated by commas: claim the first that is free")
_AGAIN = switch("--again", "again", "claim the job even if it is done")
_RESULT = flag("--result", "result", "JSON", "with --outcome done or failed; @file reads a file", parse_json)
_DONE_FOR = duration(
    "--done-for", "done_for_seconds", "how long it counts as done, or `forever` (7 days)", parse_done_for
)
_CHECKPOINT = flag("--checkpoint", "checkpoint", "JSON", "data for the next owner; @file reads a file", parse_json)

JOB_VERBS = (
    Verb(
        "claim",
        "claim a job; if it is held, show its owner; if it is done, its result",
        (
            _NAME,
            OWNER,
            duration(
                "-w --wait",
                "wait_seconds",
                f"wait in its queue for at most this long ({bounds.WAIT.default})",
                parse_duration,
            ),
            _TTL,
            _METADATA,
            flag("--session", "session_id", "ID", "release the job when this session ends"),
            SESSION_LEASE,
            _ANY,
            _AGAIN,
            OFFER,
            HELD_STATUS,
        ),
        "claim_job",
        "commands.jobs:claim",
        is_claim=True,
        more="The lease_id is remembered on this machine, for `heartbeat`, `release` and `guard` of the same owner.",
    ),
    Verb(
        "heartbeat",
        "renew the lease of a job",
        (
            _NAME,
            _LEASE,
            _CLAIMER,
            duration("--ttl", "ttl_seconds", "the lease ends this long after the last heartbeat (as before)"),
            TOKEN,
            _NOTE,
            _CHECKPOINT,
            flag("--progress", "progress", "JSON", "visible to others while you hold the job", parse_json),
        ),
        "heartbeat_job",
    ),
    Verb(
        "release",
        "release a job",
        (
            _NAME,
            _LEASE,
            _CLAIMER,
            TOKEN,
            _NOTE,
            _CHECKPOINT,
            flag("--outcome", "outcome", "WHAT", "free, done or failed (free)", choices=("free", "done", "failed")),
            _RESULT,
            _DONE_FOR,
        ),
        "release_job",
    ),
    Verb(
        "offer",
        "offer a job to another worker, which claims it with the code that is printed",
        (_NAME, _LEASE, _NOTE, _CHECKPOINT, *OFFER_TERMS),
        "offer_job",
        "commands.call:offer",
    ),
    Verb(
        "mine",
        "list what this key holds: sessions, jobs, locks, reservations and tasks",
        (
            flag("--owner", "whose", "WHO", "only what was claimed under this name"),
            flag("--session", "session_id", "ID", "only this session and what it holds"),
            flag(
                "--secret-file",
                "secret_file",
                "FILE",
                "show the session's lease ids, by the secret in this file; - for stdin",
            ),
            limit(bounds.JOB_PAGE),
            CURSOR,
        ),
        "list_mine",
        "commands.call:list_mine",
        rows="held",
        columns=("id", "kind", "expires_in_seconds", "owner", "note"),
    ),
    Verb("owner", "show the owner of a job, or how its last ownership ended", (_NAME,), "get_job_owner"),
    Verb(
        "ls",
        "list the jobs that are held now, or done",
        (
            positional("PREFIX", "prefix", "only names with this prefix", required=False),
            flag("--state", "state", "STATE", "claimed or done (claimed)", choices=("claimed", "done")),
            limit(bounds.JOB_PAGE),
            CURSOR,
        ),
        "list_claimed_jobs",
        rows="jobs",
        columns=("job_id", "owner", "expires_in_seconds", "note", "by", "waiting"),
    ),
    Verb(
        "force-release",
        "release a job that another worker holds (needs a key with the scope admin)",
        (_NAME, flag("--reason", "reason", "TEXT", "shown to the former holder", required=True)),
        "force_release_job",
    ),
    Verb(
        "run",
        "hold a job while a command runs",
        (
            _NAME,
            positional("COMMAND", "command", "the command to run, after --", many=True),
            switch("-n --nonblock", "nonblock", "do not wait if the job is held"),
            switch("--done", "done", "if the command succeeds, the job is done: it is not run again"),
            _DONE_FOR,
            _ANY,
            _AGAIN,
            duration("-w --wait", "wait_seconds", "wait for at most this long (no limit)", parse_duration),
            OWNER,
            _TTL,
            _METADATA,
            HELD_STATUS,
        ),
        command="hold.run:run",
        more="The command's environment has HOLDFAST_JOB, HOLDFAST_TOKEN, HOLDFAST_LEASE and HOLDFAST_EXPIRES_AT.\n"
        "Signals are passed on to it. The exit status is the command's, or 128 plus the signal that ended it. If the\n"
        "lease is lost, the command gets TERM, then KILL, before another owner could start; the exit status is 5.\n"
        "If the job is done already, nothing is run and the exit status is 0. A job that the command has offered\n"
        "(`holdfast offer`) is not released: it waits for the worker that accepts.",
    ),
)
