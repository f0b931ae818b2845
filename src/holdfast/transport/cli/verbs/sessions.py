"""Verbs for sessions that survive a restart, and for elections."""

from __future__ import annotations

from holdfast.operations import bounds
from holdfast.transport.cli.verbs.verb import (
    CAPABILITIES,
    CURSOR,
    HELD_STATUS,
    Verb,
    duration,
    flag,
    limit,
    parse_json,
    positional,
    switch,
)

_ID = positional("ID", "id", "id of the session")
_PROOF = flag("--lease", "lease_id", "ID", "the lease_id from `session open`", required=True)
_CONTEXT = (
    flag("--context", "context", "JSON", "data to read when you resume; @file reads a file", parse_json),
    flag("--turn", "turn", "NUMBER", "number of the current turn", int),
    flag("--last-action", "last_action", "TEXT", "what you did last"),
    flag("--next-action", "next_action", "TEXT", "what you will do next"),
)

SESSION_VERBS = (
    Verb(
        "session open",
        "open a session by its name, or resume it",
        (
            positional("NAME", "name", "name of the session, the same after every restart"),
            flag("--secret-file", "secret_file", "FILE", "resume with the secret in this file, - for stdin"),
            duration(
                "--ttl",
                "ttl_seconds",
                f"the session ends this long after the last heartbeat ({bounds.SESSION_TTL.default})",
            ),
            switch("--lane", "lane", "at most one claimed task at a time"),
            CAPABILITIES,
            *_CONTEXT,
        ),
        "begin_session",
        "commands.call:open_session",
        more="The first `session open` of a name prints a secret. Keep it: without it the session cannot be resumed.",
    ),
    Verb("session heartbeat", "renew a session and all it holds", (_ID, _PROOF, *_CONTEXT), "heartbeat_session"),
    Verb(
        "session context",
        "write the context to read when you resume",
        (
            _ID,
            _PROOF,
            *_CONTEXT,
            flag("--if-version", "if_version", "NUMBER", "only if the context still has this version", int),
        ),
        "write_context",
    ),
    Verb("session get", "show a session, its context and what it holds", (_ID,), "read_session"),
    Verb(
        "session ls",
        "list the sessions that have a name",
        (limit(bounds.SESSION_PAGE), CURSOR),
        "list_sessions",
        rows="sessions",
        columns=("session_id", "name", "status", "generation", "next_action"),
    ),
    Verb(
        "session close",
        "end a session and release all it holds",
        (_ID, flag("--lease", "lease_id", "ID", "the lease_id from `session open` (not needed with scope admin)")),
        "close_session",
    ),
)

_LEADER_TTL_HELP = f"leadership ends this long after the last renewal: {bounds.ELECTION_TTL.with_default()}"

ELECTION_VERBS = (
    Verb(
        "elect",
        "run a command while leading an election",
        (
            positional("ID", "id", "id of the election: 8 to 64 characters of A-Z a-z 0-9 _ -"),
            positional("COMMAND", "command", "the command that the leader runs, after --", many=True),
            flag("--candidate", "candidate_id", "WHO", "your name as a candidate ($HOLDFAST_OWNER, or user@host)"),
            switch("-n --nonblock", "nonblock", "do not wait if another candidate leads"),
            duration("--ttl", "ttl_seconds", _LEADER_TTL_HELP),
            HELD_STATUS,
        ),
        command="hold.elect:run",
    ),
)  # fmt: skip
