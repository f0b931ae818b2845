"""The table of OctoStore's verbs. Their flags, events and exit statuses are its own."""

from __future__ import annotations

import re

from holdfast.transport.cli.verbs.verb import Argument, Verb, flag, switch, word

USAGE = 64
_LONGEST = 24 * 3600.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}


def duration(text: str) -> float:
    """`500ms`, `5s`, `2m`, `1h` or plain seconds."""
    match = re.fullmatch(r"([0-9]+)(ms|s|m|h|)", text)
    if match is None or int(match[1]) * _UNITS[match[2]] > _LONGEST:
        raise ValueError("expected a time like 500ms, 5s, 2m or 1h, of a day at most")
    return int(match[1]) * _UNITS[match[2]]


def timeout(text: str) -> float:
    """A duration that is not nothing."""
    seconds = duration(text)
    if seconds == 0:
        raise ValueError("a timeout must be longer than that")
    return seconds


def _between(least: int, most: int, text: str) -> int:
    number = int(text)
    if not least <= number <= most:
        raise ValueError(f"expected {least} to {most} seconds")
    return number


def lock_ttl(text: str) -> int:
    return _between(1, 3600, text)


def election_ttl(text: str) -> int:
    return _between(5, 300, text)


def candidate(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}", text) is None:
        raise ValueError("a candidate is 1 to 64 letters, digits and . _ : -")
    return text


_COMMON = (
    flag("--server", "server", "URL", "which server ($OCTOSTORE_URL, $HOLDFAST_URL, or http://127.0.0.1:7700)"),
    switch("--json", "json", "one JSON object a line"),
    flag("--connect-timeout", "connect_timeout", "TIME", "for a connection (5s)", timeout),
    flag("--request-timeout", "request_timeout", "TIME", "for an answer (10s)", timeout),
    flag("--shutdown-timeout", "shutdown_timeout", "TIME", "for giving it back after a signal (2s)", timeout),
)
_CARELESS = switch("--allow-insecure-http", "careless", "send secrets over plain HTTP to another machine")
_ACQUIRE = flag("--acquire-timeout", "acquire_timeout", "TIME", "give up after so long (waits for ever)", duration)
_NAME = word("NAME", "name", "which lock")
_ID = word("ID", "name", "which election")
_STATUSES = (
    "Exit status 11: not ours in time, 20: no longer surely ours, 64: wrong usage, 70: the server failed,\n"
    "130 and 143: ended by a signal."
)
_TOKEN = "The token is in the file $OCTOSTORE_TOKEN_FILE, or in $OCTOSTORE_TOKEN, or in $HOLDFAST_API_KEY."  # noqa: S105


def _verb(name: str, summary: str, arguments: tuple[Argument, ...], module: str, more: str = "") -> Verb:
    return Verb(
        name, summary, (*arguments, *_COMMON), module=f"octostore.{module}", asks=False, usage_status=USAGE, more=more
    )


OCTOSTORE_VERBS = (
    _verb(
        "lock hold",
        "take a lock and keep it until a signal comes",
        (_NAME, flag("--ttl", "ttl", "SECONDS", "1 to 3600 (120)", lock_ttl), _ACQUIRE, _CARELESS),
        "hold",
        f"{_TOKEN}\n{_STATUSES}",
    ),
    _verb("lock status", "who holds a lock", (_NAME, _CARELESS), "status", _TOKEN),
    _verb("lock watch", "who holds a lock, again whenever that changes", (_NAME, _CARELESS), "status", _TOKEN),
    _verb("election create", "make a room for an election", (), "status"),
    _verb(
        "election hold",
        "lead a group until a signal comes",
        (
            _ID,
            flag("--candidate", "candidate", "WHO", "who you are", candidate, required=True),
            flag("--ttl", "ttl", "SECONDS", "5 to 300 (30)", election_ttl),
            _ACQUIRE,
            _CARELESS,
        ),
        "hold",
        _STATUSES,
    ),
    _verb("election status", "who leads", (_ID,), "status"),
    _verb("election watch", "who leads, again whenever that changes", (_ID,), "status"),
)
