"""Events for people: who did what, and what changed, on one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError
from holdfast.transport.cli.display.answers import print_selected_rows, report_missing
from holdfast.transport.cli.display.fields import select
from holdfast.transport.cli.display.table import print_table
from holdfast.transport.cli.display.times import span
from holdfast.transport.cli.output import WIDE, as_json, is_document, is_terminal, print_document
from holdfast.transport.cli.verbs.verb import Invocation

Row = dict[str, Any]
_OWNERS = ("owner", "worker", "name", "candidate")
_ENDINGS = ("reason", "note", "error_code", "by")
"""What is shown of the end of a lease or an attempt."""
_LEFT_OUT = {
    *_OWNERS,
    "version", "changed_at", "created_at", "claimed_at", "opened_at", "expires_at", "available_at", "ended_at",
    "principal", "holder", "session", "token", "place", "ready", "kind", "state", "ended", "failure_reason",
    "ended_how", "attempt_count", "ephemeral", "generation", "account", "secret", "proof", "arrival",
}  # fmt: skip
"""Fields that the columns already say, or that only programs need."""
_FOR_PEOPLE = {"actor": "who", "data": "changes"}
"""Columns of a table for people, by those of the table with all data."""
_UNLABELLED = ("type", "reason", "ended_reason", "note", "paths")
"""Changes that are shown first, and without the names of their fields."""
_MICROSECONDS = 1_000_000
_LONG_ID, _SHORT_ID = 36, 8


def is_for_people(invocation: Invocation) -> bool:
    """Whether events are shown as lines for people, and not with all their data."""
    return is_terminal() and invocation.output == "text" and not invocation.fields


def print_events(events: Sequence[Row], client: Client, invocation: Invocation) -> None:
    """Print events: as rows for people, the chosen fields, a document each, or tabs."""
    if not events:
        return
    columns = invocation.verb.columns
    if is_for_people(invocation):
        names = read_key_names(client)
        print_table([event_row(event, names) for event in events], [_FOR_PEOPLE.get(name, name) for name in columns])
        return
    if invocation.fields:
        report_missing(events, invocation)
        events = [select(event, invocation.fields) for event in events]
    if is_document(invocation.output):
        for event in events:
            print_document(event, invocation.output)
    elif invocation.fields:
        print_selected_rows(events, invocation)
    else:
        print_table(events, columns, wide=invocation.output == WIDE)


def event_row(event: Row, key_names: Mapping[str, str]) -> Row:
    """An event as a row of a table for people. Its subject has no noun, because the kind says it."""
    return {
        "seq": event.get("seq"),
        "version": event.get("version"),
        "at": event["at"],
        "kind": event["kind"],
        "subject": str(event.get("subject", "")).partition(":")[2],
        "who": who(event, key_names),
        "changes": changes(event["data"]),
    }


def who(event: Row, key_names: Mapping[str, str]) -> str:
    """The owner or worker that the event names, else the name of the key that did it, else the start of its id."""
    data = event["data"]
    ended = data.get("ended")
    for source in (data, ended if isinstance(ended, dict) else {}):
        for name in _OWNERS:
            if isinstance(source.get(name), str) and source[name]:
                return str(source[name])
    actor = str(event.get("actor") or "")
    is_id = len(actor) == _LONG_ID  # others are parts of the server, such as `sweep`
    return key_names.get(actor) or (actor[:_SHORT_ID] if is_id else actor)


def changes(data: Row) -> str:
    """What changed, in a few words, not yet escaped: `review, payload 36 B`."""
    ended = data.get("ended")
    shown = dict(ended) if isinstance(ended, dict) else {}
    shown = {name: shown[name] for name in _ENDINGS if shown.get(name)}
    for name, value in data.items():
        if name not in _LEFT_OUT and value not in (None, "", [], {}):
            shown.setdefault(name, value)
    words = sorted(shown, key=lambda name: name not in _UNLABELLED)
    return ", ".join(_word(name, shown[name]) for name in words if shown[name] != 0)


def read_key_names(client: Client) -> dict[str, str]:
    """Names of keys by their ids: of all keys if ours may list them, else of ours."""
    with suppress(HoldfastError, KeyError):
        key = client.call("read_account")["key"]
        if "admin" in key["scopes"]:
            return {each["keyId"]: each["name"] for each in client.call("list_keys")["keys"]}
        return {key["keyId"]: key["name"]}
    return {}


def _word(name: str, value: Any) -> str:
    """One change, with the name of its field unless the value speaks for itself."""
    if name == "ttl" and isinstance(value, int):
        return f"for {span(value / _MICROSECONDS)}"
    if isinstance(value, dict) and value.keys() >= {"sha256", "size"}:  # the log keeps no payloads
        return f"{name} {value['size']} B"
    value = " ".join(map(str, value)) if isinstance(value, list) else value
    text = value if isinstance(value, str) else as_json(value)
    return text if name in _UNLABELLED else f"{name} {text}"
