"""The damaged rows of a store: each is set aside, logged once and counted."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec
from msgspec.structs import astuple

from holdfast.core.browser_session import BrowserSession
from holdfast.core.damage import damage_of, damage_of_values
from holdfast.core.errors import DamagedRow
from holdfast.core.event import Event, damaged_event
from holdfast.core.row import LATEST
from holdfast.core.webhooks.delivery import Delivery
from holdfast.decoding import decoder
from holdfast.store.changes import Answer
from holdfast.store.rows import ROW_TYPES

MAX_REMEMBERED = 10_000
"""More damaged rows than this are logged again each time they are met."""

log = logging.getLogger("holdfast.store")

T = TypeVar("T", bound=msgspec.Struct)

TABLES: dict[type[msgspec.Struct], tuple[str, tuple[str, ...]]] = {
    Event: ("events", ("account", "seq")),
    Delivery: ("deliveries", ("account", "hook", "seq")),
    Answer: ("answers", ("account", "key")),
    BrowserSession: ("badges", ("id",)),
    **{row_type: (row_type.table, ("account", "id")) for row_type in ROW_TYPES},
}
"""The table of each record, and its key."""
_LOADED: tuple[type[Any], ...] = (*ROW_TYPES, Answer)
_DECODERS = {record: decoder(list[record]) for record in _LOADED}  # type: ignore[valid-type]


class DamagedRows:
    """Decodes records, and remembers those that cannot be used."""

    def __init__(self) -> None:
        self.on_found: Callable[[], None] = lambda: None
        """Called for each damaged row that was not known before."""
        self._known: dict[tuple[str, ...], str] = {}
        self._lock = threading.Lock()

    def add(self, error: DamagedRow) -> None:
        """Log and count a damaged row, unless its damage is known."""
        with self._lock:
            if self._known.get((error.table, *error.key)) == error.damage:
                return
            if len(self._known) < MAX_REMEMBERED:
                self._known[error.table, *error.key] = error.damage
        log.error("row %s %s is set aside, because %s: run `holdfast verify`", error.table, error.key, error.damage)
        self.on_found()

    def known(self) -> dict[tuple[str, ...], str]:
        """(table, key) of each damaged row that was met, and what is wrong with it."""
        with self._lock:
            return dict(self._known)

    def decode(self, record_type: type[T], found: Iterable[tuple[Any, ...]]) -> list[T | DamagedRow]:
        """The records of a result, with an error in the place of each that is damaged."""
        return [self._decode(record_type, values) for values in found]

    def usable(self, record_type: type[T], found: Iterable[tuple[Any, ...]]) -> list[T]:
        """The records of a result without damaged ones."""
        return [record for record in self.decode(record_type, found) if not isinstance(record, DamagedRow)]

    def decode_document(self, record_type: type[T], document: bytes) -> list[T | DamagedRow]:
        """The records of a JSON array; each is an array of its columns."""
        try:
            records: list[T] = _DECODERS[record_type](document)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Bytes that are not UTF-8 become lone surrogates, and bytes again in the values.
            found = json.loads(document.decode(errors="surrogateescape"))
            return self.decode(record_type, [tuple(map(_raw, values)) for values in found])
        return [self.check(record) for record in records]

    def events(self, found: Iterable[tuple[Any, ...]]) -> list[Event]:
        """The events of a result, each damaged one replaced: a follower must see that there is something to miss."""
        events = []
        for values in found:
            event = self._decode(Event, values)
            events.append(_replacement(event) if isinstance(event, DamagedRow) else event)
        return events

    def check(self, record: T) -> T | DamagedRow:
        """A record whose values have the right types, or an error if it is damaged all the same."""
        damage = damage_of(record)
        return record if damage is None else self.found(type(record), astuple(record), damage)

    def found(self, record_type: type[msgspec.Struct], values: tuple[Any, ...], damage: str) -> DamagedRow:
        """The error for a damaged record, which is logged and counted if it is new."""
        table, key = TABLES[record_type]
        columns = dict(zip(record_type.__struct_fields__, values, strict=True))
        error = DamagedRow(table, tuple(str(columns[name]) for name in key), damage, columns)
        self.add(error)
        return error

    def _decode(self, record_type: type[T], values: tuple[Any, ...]) -> T | DamagedRow:
        damage = damage_of_values(record_type, values)
        return self.check(record_type(*values)) if damage is None else self.found(record_type, values, damage)


def _raw(value: Any) -> Any:
    """The value; as bytes if it is text with lone surrogates that was made from them, or an array with their digits."""
    if isinstance(value, list):
        return bytes.fromhex(value[0])
    if not isinstance(value, str) or value.isascii():
        return value
    raw = value.encode(errors="surrogateescape")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _replacement(error: DamagedRow) -> Event:
    """The event in the place of a damaged one, with the numbers that can be read."""
    version, at, seq = (
        value if isinstance(value, int) else 0 for value in map(error.columns.get, ("version", "at", "seq"))
    )
    blank = Event(error.key[0], "", version, "", min(max(at, 0), LATEST), "", "", "", seq)
    return damaged_event(blank, error.damage)
