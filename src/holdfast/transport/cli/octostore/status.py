"""`status`, `watch` and `election create`: they read, and hold nothing."""

from __future__ import annotations

import json
import time
from typing import Any

from holdfast.client.errors import HoldfastError
from holdfast.client.event_stream import Following
from holdfast.client.retry import Broken, Unsent
from holdfast.transport.cli.http_sender import BadAddress
from holdfast.transport.cli.octostore import failures as faults
from holdfast.transport.cli.octostore.reports import Reports
from holdfast.transport.cli.octostore.requests import Asker, check_secrecy
from holdfast.transport.cli.output import escape, fields, say
from holdfast.transport.cli.verbs.verb import Verb

USAGE, FAILED = 64, 70
LARGEST_FRAME = 65_536
FOR_EVER = float("inf")
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
    """Tell how it stands, and again whenever that is different. A frame only says that it is time to look."""
    field = "name" if kind == "lock" else "id"
    following = Following(f"watch_{kind}", {field: name}, deadline=FOR_EVER, largest=LARGEST_FRAME)
    seen: dict[str, Any] | None = None
    failures = 0
    while True:
        try:
            seen = _tell(_look(asker, kind, name), seen, reports)
            for _ in asker.hear(following):
                failures = 0
                seen = _tell(_look(asker, kind, name), seen, reports)
        except (Unsent, Broken) as trouble:
            time.sleep(following.lost(trouble))
        except HoldfastError as error:
            if not faults.is_passing(error):
                raise
            failures += 1
            time.sleep(faults.pause(error.retry_after, failures))


def _tell(document: dict[str, Any], seen: dict[str, Any] | None, reports: Reports) -> dict[str, Any]:
    """What was told last: this, if anything in it is new."""
    told = {field: value for field, value in document.items() if field not in _TICKING}
    if told != seen:
        reports.snapshot(document)
    return told
