"""Verbs about sessions, elections and keys, and about the command line itself."""

from __future__ import annotations

from holdfast.transport.cli.verbs.jobs import CURSOR, HELD_STATUS, LIMIT
from holdfast.transport.cli.verbs.verb import Verb, flag, json_text, switch, word

_ID = word("ID", "id", "which session")
_PROOF = flag("--lease", "lease_id", "ID", "the proof of this life, which opening answered", required=True)
_CONTEXT = (
    flag("--context", "context", "JSON", "what the next life must know; @file reads it", json_text),
    flag("--turn", "turn", "NUMBER", "which turn this is", int),
    flag("--last-action", "last_action", "TEXT", "what was done"),
    flag("--next-action", "next_action", "TEXT", "what comes next"),
)

SESSION_VERBS = (
    Verb(
        "session open",
        "open a session by its name, or resume it",
        (
            word("NAME", "name", "what you call yourself in every life"),
            flag("--secret-file", "secret_file", "FILE", "the secret that the first opening answered, - for stdin"),
            flag("--ttl", "ttl_seconds", "SECONDS", "how long it lives without a heartbeat (120)", int),
            switch("--lane", "lane", "at most one task in flight"),
            *_CONTEXT,
        ),
        "begin_session",
        "commands.session_open",
    ),
    Verb("session heartbeat", "renew it, and all that it holds", (_ID, _PROOF, *_CONTEXT), "heartbeat_session"),
    Verb(
        "session context",
        "write down what the next life must know",
        (
            _ID,
            _PROOF,
            *_CONTEXT,
            flag("--if-version", "if_version", "NUMBER", "only if the context is still this one", int),
        ),
        "write_context",
    ),
    Verb("session get", "a session, its context and what it holds", (_ID,), "read_session"),
    Verb(
        "session ls",
        "sessions with a name",
        (LIMIT, CURSOR),
        "list_sessions",
        rows="sessions",
        columns=("session_id", "name", "status", "generation", "next_action"),
    ),
    Verb(
        "session close",
        "end it and give everything back",
        (_ID, flag("--lease", "lease_id", "ID", "the proof of this life (administrators need none)")),
        "close_session",
    ),
)

ELECTION_VERBS = (
    Verb(
        "elect",
        "lead a group while a command runs",
        (
            word("ID", "id", "which election"),
            word("COMMAND", "command", "what the leader runs, after --", many=True),
            flag("--candidate", "candidate_id", "WHO", "who you are ($HOLDFAST_OWNER, or user@host)"),
            switch("-n --nonblock", "nonblock", "give up at once if somebody leads"),
            flag("--ttl", "ttl_seconds", "SECONDS", "leader for so long without a renewal: 5 to 300 (30)", int),
            HELD_STATUS,
        ),
        module="hold.elect",
    ),
)

KEY_VERBS = (
    Verb("key ls", "the account's keys, without their secrets", (), "list_keys", rows="keys",
         columns=("keyId", "name", "shown", "scopes", "prefix", "lastUsedAt", "revokedAt")),
    Verb(
        "key create",
        "a new key, shown this once",
        (
            word("NAME", "name", "what it is for"),
            flag("--scope", "scopes", "SCOPE", "what it opens: admin, jobs, tasks, read, …; may be given again",
                 required=True, many=True),
            flag("--prefix", "prefix", "TEXT", "only jobs and locks whose names begin so"),
            flag("--expires-in", "expiresInSeconds", "SECONDS", "when it ends", int),
        ),
        "create_key",
    ),
    Verb(
        "key rotate",
        "a new secret for a key; the old one works a while",
        (
            word("ID", "id", "which key"),
            flag("--grace", "graceSeconds", "SECONDS", "how long the old one works (3600)", int),
        ),
        "rotate_key",
    ),
    Verb("key revoke", "a key stops working", (word("ID", "id", "which key"),), "revoke_key"),
)  # fmt: skip

OWN_VERBS = (
    Verb(
        "dashboard",
        "a link that signs your browser in at the dashboard, once",
        (switch("--open", "open", "open it in your browser"),),
        "link_dashboard",
        "commands.dashboard",
        more="The link works for 10 minutes and for one browser, which may then do what your key may.",
    ),
    Verb(
        "doctor",
        "what is reachable, and what to do about what is not",
        module="commands.doctor",
        more="Exit status 0: all is well, 4: the key, 7: the server or its store.",
    ),
    Verb(
        "completion",
        "a script that lets your shell complete verbs and flags",
        (word("SHELL", "shell", "bash, zsh or fish"),),
        module="commands.completion",
        asks=False,
        more='bash, zsh: eval "$(holdfast completion bash)". fish: holdfast completion fish | source',
    ),
)
