"""Verbs `lock` and `election`, with the flags, events and exit statuses of OctoStore's command line."""

from __future__ import annotations

import re
from functools import partial

from holdfast.operations import bounds
from holdfast.transport.cli.durations import parse_duration, parse_within
from holdfast.transport.cli.verbs.verb import Argument, Verb, duration, flag, positional, switch

USAGE = 64
_LONGEST = 24 * 3600.0


def limited(text: str) -> float:
    """A duration of at most one day."""
    seconds = parse_duration(text)
    if seconds > _LONGEST:
        raise ValueError("expected at most one day")
    return seconds


def timeout(text: str) -> float:
    """A duration above zero."""
    seconds = limited(text)
    if seconds == 0:
        raise ValueError("a timeout must be longer than 0")
    return seconds


def candidate(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}", text) is None:
        raise ValueError("expected 1 to 64 letters, digits and . _ : -, beginning with a letter or digit")
    return text


_COMMON = (
    flag(
        "--server", "server", "URL", "address of the server ($OCTOSTORE_URL, $HOLDFAST_URL, or http://127.0.0.1:7700)"
    ),
    switch("--json", "json", "print one JSON object a line"),
    duration("--connect-timeout", "connect_timeout", "limit for connecting (5s)", timeout),
    duration("--request-timeout", "request_timeout", "limit for one request (10s)", timeout),
    duration("--shutdown-timeout", "shutdown_timeout", "limit for the release after a signal (2s)", timeout),
)
_INSECURE = switch("--allow-insecure-http", "allow_insecure_http", "send secrets over plain HTTP to another machine")
_ACQUIRE = duration("--acquire-timeout", "acquire_timeout", "wait for at most this long (no limit)", limited)
_LOCK_TTL = duration("--ttl", "ttl", f"{bounds.LOCK_TTL} (120)", partial(parse_within, bound=bounds.LOCK_TTL))
_ELECTION_TTL = duration(
    "--ttl", "ttl", bounds.ELECTION_TTL.with_default(), partial(parse_within, bound=bounds.ELECTION_TTL)
)
_NAME = positional("NAME", "name", "name of the lock")
_ID = positional("ID", "name", "id of the election: 8 to 64 characters of A-Z a-z 0-9 _ -")
_STATUSES = (
    "Exit status 11: not acquired in time, 20: lost, or no longer certain, 64: wrong usage, 70: the server failed,\n"
    "130 and 143: ended by a signal."
)
_AUTH_HELP = (
    "The token is read from the file $OCTOSTORE_TOKEN_FILE, or from $OCTOSTORE_TOKEN or $HOLDFAST_API_KEY,\n"
    "or it is the key for this server in your configuration."
)


def _verb(name: str, summary: str, arguments: tuple[Argument, ...], command: str, more: str = "") -> Verb:
    return Verb(
        name,
        summary,
        (*arguments, *_COMMON),
        command=f"octostore.{command}",
        calls_server=False,
        usage_status=USAGE,
        more=more,
    )


OCTOSTORE_VERBS = (
    _verb(
        "lock hold",
        "acquire a lock and hold it until a signal",
        (_NAME, _LOCK_TTL, _ACQUIRE, _INSECURE),
        "hold:run",
        f"{_AUTH_HELP}\n{_STATUSES}",
    ),
    _verb("lock status", "show the holder of a lock", (_NAME, _INSECURE), "status:run", _AUTH_HELP),
    _verb("lock watch", "show the holder of a lock, and every change", (_NAME, _INSECURE), "status:run", _AUTH_HELP),
    _verb("election create", "create an election", (), "status:run"),
    _verb(
        "election hold",
        "lead an election until a signal",
        (
            _ID,
            flag("--candidate", "candidate", "WHO", "your name as a candidate", candidate, required=True),
            _ELECTION_TTL,
            _ACQUIRE,
            _INSECURE,
        ),
        "hold:run",
        _STATUSES,
    ),
    _verb("election status", "show the leader of an election", (_ID,), "status:run"),
    _verb("election watch", "show the leader of an election, and every change", (_ID,), "status:run"),
)
