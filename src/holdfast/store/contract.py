"""What every store must keep, small enough that nothing in it is optional."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.principal import Principal
from holdfast.core.row import Instant, Key
from holdfast.core.session import Session
from holdfast.store.view import AllNeeds, Changes, View

Clock = Callable[[], Instant]
"""A clock given from outside, for tests that drive time. Without one a store asks its own."""


class Rerun(Exception):
    """Another transaction got there first: load again and decide again. Never leaves the engine."""


class NewerSchema(Exception):
    """The database was written by a newer Holdfast. This one must not touch it."""


class Counts(msgspec.Struct, frozen=True):
    """What `/status` tells of the store."""

    live_leases: int
    principals: int


class Transaction(Protocol):
    """One batch. Leaving it normally after `save` commits; leaving it any other way leaves no trace."""

    def load(self, needs: AllNeeds) -> View:
        """Everything the batch needs, locked until this transaction ends, in one fixed order."""

    def draw(self, count: int) -> list[int]:
        """That many fencing tokens, each larger than every one drawn before, ascending."""

    def save(self, changes: Changes) -> None:
        """All rows that changed, their events and the remembered answers, in bulk."""


class Reader(Protocol):
    """A look at the committed state. It sees every write acknowledged before it began."""

    now: Instant

    def lease(self, account: str, name: str) -> Lease | None:
        """The row of a name."""

    def session(self, account: str, session_id: str) -> Session | None:
        """The row of a session."""

    def leases(self, account: str, prefix: str, after: str, limit: int) -> list[Lease]:
        """Live leases whose name begins with `prefix` and sorts after `after`, by name, bytewise."""

    def count_of_session(self, account: str, session_id: str) -> int:
        """How many leases carry this session."""

    def next_token(self) -> int:
        """The token that the next grant would get."""

    def counts(self, account: str) -> Counts:
        """Totals for the status page."""

    def principal(self, key_hash: str) -> Principal | None:
        """Whom a credential stands for, unless revoked."""

    def principals(self, account: str) -> list[Principal]:
        """Everybody with a credential, revoked or not."""

    def due(self, limit: int) -> list[Key]:
        """Rows whose time has run out, longest overdue first."""

    def next_deadline(self) -> Instant | None:
        """When the next row's time runs out."""

    def jobs_live_at(self, instant: Instant) -> list[Key]:
        """Jobs still held whose time had not run out at that moment."""

    def events(self, account: str, after: int, limit: int) -> list[Event]:
        """The log from a cursor on."""

    def history(self, account: str, subject: str) -> list[Event]:
        """All events of one subject, oldest first."""


class Watcher(Protocol):
    """Tells of commits made by other processes, and tells them of ours. Notices carry no data and may be lost."""

    def tell(self) -> None:
        """Something was freed here: let waiters elsewhere look."""

    def attend(self, waiting: bool) -> None:  # noqa: FBT001 - a plain state, set from one place
        """Whether anybody waits here, so that a watcher that polls may rest otherwise."""

    def close(self) -> None:
        """Stop telling."""


class Store(Protocol):
    """Where everything is remembered."""

    lanes: int
    """How many transactions may usefully run beside each other."""
    name: str

    def open(self) -> None:
        """Connect and bring the schema up to date; safe when several processes do it at once."""

    def transaction(self, lane: int = 0) -> AbstractContextManager[Transaction]:
        """Begin a batch."""

    def read(self) -> AbstractContextManager[Reader]:
        """Begin a look."""

    def watch(self, on_change: Callable[[], None]) -> Watcher:
        """Call `on_change` when another process may have freed something."""

    def beat(self, *, clean: bool = False) -> None:
        """Write down that the store is served just now; `clean` says that this server ends on purpose."""

    def last_beat(self) -> tuple[Instant, Instant] | None:
        """(when somebody last served this store, now), or None if nobody did or it ended cleanly."""

    def forget_answers(self, before: Instant) -> None:
        """Drop remembered answers older than that."""

    def size(self) -> int:
        """Bytes on disk, 0 where that has no meaning."""

    def close(self) -> None:
        """Let go of everything."""
