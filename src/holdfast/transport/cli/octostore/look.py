"""`status`, `watch` and `election create`: they read, and hold nothing."""

from __future__ import annotations

import json
import time
from typing import Any

from holdfast.client.errors import HoldfastError
from holdfast.transport.cli.octostore import faults
from holdfast.transport.cli.octostore.asking import Asker, check_secrecy
from holdfast.transport.cli.octostore.reports import Reports
from holdfast.transport.cli.sender import BadAddress
from holdfast.transport.cli.show import escape, fields, say
from holdfast.transport.cli.verb import Verb

USAGE, FAILED = 64, 70
POLL_SECONDS = 0.5
_TICKING = ("retry_after_ms", "agent_contract")
"""What differs between two looks although nothing has happened."""


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Look once, or for ever."""
    kind, what = verb.name.split()
    try:
        asker = Asker(arguments, with_token=kind == "lock")
        if kind == "lock":
            check_secrecy(asker.server, careless=bool(arguments["careless"]))
    except BadAddress as error:
        say(f"holdfast: {error}")
        return USAGE
    name = arguments.get("name", "")
    reports = Reports(kind, name, asker.server, as_json=bool(arguments["json"]))
    try:
        if what == "watch":
            _watch(asker, kind, name, reports)
        document = asker.ask("create_election") if what == "create" else _look(asker, kind, name)
    except HoldfastError as error:
        say(f"holdfast: {escape(error.message)} ({faults.reason_of(error)})")
        return FAILED
    if arguments["json"]:
        print(json.dumps(document, sort_keys=kind == "lock"))
    else:
        fields(document)
    return 0


def _look(asker: Asker, kind: str, name: str) -> dict[str, Any]:
    if kind == "lock":
        return asker.ask("get_lock_status", name=name)
    return asker.ask("get_election_status", id=name)


def _watch(asker: Asker, kind: str, name: str, reports: Reports) -> None:
    """Tell how it stands, and again whenever that is different; passing trouble is waited out."""
    seen: dict[str, Any] | None = None
    failures = 0
    while True:
        try:
            document = _look(asker, kind, name)
        except HoldfastError as error:
            if not faults.is_passing(error):
                raise
            failures += 1
            time.sleep(faults.pause(error.retry_after, failures))
            continue
        failures = 0
        told = {field: value for field, value in document.items() if field not in _TICKING}
        if told != seen:
            reports.snapshot(document)
        seen = told
        time.sleep(POLL_SECONDS)
