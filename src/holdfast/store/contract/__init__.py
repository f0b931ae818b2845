"""What every store must keep, small enough that nothing in it is optional."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ClassVar, Protocol, TypeVar

import msgspec

from holdfast.core.browser_session import BrowserSession
from holdfast.core.budget import Budget, Terms
from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.plan import Usage
from holdfast.core.principal import Principal
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.store.changes import Changes
from holdfast.store.contract.deliveries import Deliveries
from holdfast.store.needs import AllNeeds
from holdfast.store.rows import Rows

R = TypeVar("R", bound=Row)

Clock = Callable[[], Instant]
"""A clock given from outside, for tests that drive time. Without one a store asks its own."""


class Rerun(Exception):
    """Another transaction got there first: load again and decide again. Never leaves the engine."""


class Severed(Exception):
    """The connection had died while nobody used it: nothing was said on it, a new one may do."""


class Unusable(Exception):
    """What an address names cannot be served as it is. Its words say what to do."""

    code: ClassVar[str]


class NewerSchema(Unusable):
    """The database was written by a newer Holdfast. This one must not touch it."""

    code = "newer_schema"


class NoStore(Unusable):
    """A backup, or a copy that is not complete: to serve it would give tokens out twice, or lose what is missing."""

    code = "no_store"


class MissingDriver(Unusable):
    """The package that connects to this kind of database is not installed."""

    code = "missing_driver"


class Counts(msgspec.Struct, frozen=True):
    """What `/status` tells of the store."""

    live_leases: int
    principals: int


class Totals(msgspec.Struct, frozen=True):
    """What the metrics tell of the store: numbers over all accounts, and nothing that names one."""

    live_leases: int
    tasks: dict[str, int]
    """How many are in each state."""
    oldest_ready: Instant = 0
    """How long the one that has waited longest has been ready, by its place in its queue."""


class TaskPath(msgspec.Struct, frozen=True):
    """Along which index a list of tasks is read: the first of tag, key, and type or state; else all of them."""

    type: str | None = None
    state: str | None = None
    tag: str | None = None
    unique_key: str | None = None


class Transaction(Protocol):
    """One batch. Leaving it normally after `save` commits; leaving it any other way leaves no trace."""

    def load(self, needs: AllNeeds) -> Rows:
        """Everything the batch needs, locked until this transaction ends, in one fixed order."""

    def seen_ready(self, needs: AllNeeds) -> dict[tuple[str, str], int]:
        """(account, type): how many ready tasks there are, up to as many as were asked for, locked elsewhere or not."""

    def draw(self, count: int) -> list[int]:
        """That many fencing tokens, each larger than every one drawn before, ascending."""

    def save(self, changes: Changes) -> None:
        """All rows that changed, their events and the remembered answers, in bulk."""


class Reader(Protocol):
    """A look at the committed state. It sees every write acknowledged before it began."""

    now: Instant

    def row(self, row_type: type[R], account: str, row_id: str) -> R | None:
        """A row by its key."""

    def principal(self, key_hash: str) -> Principal | None:
        """Whom a credential stands for, if it opens anything just now."""

    def browser_session(self, badge_id: str) -> BrowserSession | None:
        """What lets a browser in, over or not."""

    def history(self, account: str, subject: str) -> list[Event]:
        """All events of one subject, oldest first."""

    def granted(self, account: str, subject: str, version: int) -> Event | None:
        """The last event of a lease before a version that told whose it is."""

    def news(self, account: str, subject: str, limit: int) -> list[Event]:
        """The newest events of one subject that are more than a sign of life, newest first."""

    def leases(self, account: str, prefix: str, after: str, limit: int) -> list[Lease]:
        """Live leases whose name begins with `prefix` and sorts after `after`, by name, bytewise."""

    def principals(self, account: str) -> list[Principal]:
        """Everybody with a credential, revoked or not."""

    def sessions(self, account: str, after: str, limit: int) -> list[Session]:
        """Sessions by id."""

    def live_sessions(self, account: str, after: str, limit: int) -> list[Session]:
        """Sessions that may still act, by id."""

    def holdings(self, account: str, session_id: str) -> tuple[list[Lease], list[Task]]:
        """What was claimed for a session's life."""

    def tasks(self, account: str, by: TaskPath, before: str, limit: int) -> list[Task]:
        """Tasks older than an id, newest first, along one index."""

    def rows_after(self, row_type: type[R], account: str, row_id: str, limit: int) -> list[R]:
        """Rows of every account, in the order of their keys."""

    def counts(self, account: str) -> Counts:
        """Totals for the status page."""

    def usage(self, account: str) -> tuple[Usage, int]:
        """What an account has used of its plan, and how many tasks are held."""

    def uses(self, account: str) -> dict[str, Instant]:
        """When each key of an account was last seen, by its id."""

    def count_of_session(self, account: str, session_id: str) -> int:
        """How many leases carry this session."""

    def task_counts(self, account: str) -> list[tuple[str, str, int]]:
        """(type, state, how many), where there are any."""

    def queues(self, account: str, limit: int) -> list[tuple[str, int, Instant]]:
        """(type, how many wait, when the oldest of them was made), the oldest first."""

    def running_out(self, account: str, limit: int) -> list[Task]:
        """Tasks that are held, those that run out first."""

    def totals(self) -> Totals:
        """Numbers over all accounts."""

    def next_token(self) -> int:
        """The token that the next grant would get."""

    def due(self, limit: int, account: str = "") -> list[Key]:
        """Rows whose time has run out, or has come, longest overdue first; of one account or of all."""

    def next_deadline(self) -> Instant | None:
        """When the next row's time runs out or comes."""

    def held_at(self, instant: Instant) -> list[Key]:
        """Jobs, tasks and named sessions still held whose time had not run out at that moment."""

    def task_accounts(self) -> list[str]:
        """Every account that has, or had, tasks."""

    def finished_before(self, account: str, instant: Instant, limit: int, *, dead: bool) -> list[Key]:
        """Tasks of an account that finished before then, oldest first; with the dead letters or without."""

    def events(self, account: str, after: int, limit: int, most: int | None = None) -> list[Event]:
        """The log from a cursor on; not much more than `most` bytes of it (`core.event_page.take_bytes`)."""

    def events_of_request(self, account: str, request_id: str, after: int) -> list[Event]:
        """What one request changed, looked for from a cursor on."""

    def pace(self, account: str, after: int) -> list[tuple[int, str, int]]:
        """(minutes since 1970, kind of event, how many) in the log from a cursor on."""

    def log_bounds(self, account: str) -> tuple[int, int]:
        """(up to where retention has removed the log, its last event)."""

    def logs(self) -> list[str]:
        """Every account that has a log."""

    def older_than(self, account: str, instant: Instant, limit: int) -> int:
        """The last of an account's `limit` oldest events that is older than that; 0 if none is."""

    def subjects_until(self, account: str, seq: int) -> list[str]:
        """Whom the log tells of up to there."""

    def subjects_after(self, account: str, subject: str, limit: int) -> list[str]:
        """Whom the log tells of, by name."""


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

    @property
    def deliveries(self) -> Deliveries:
        """What is on its way to webhooks."""

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

    def forget_answers(self, before: Instant, limit: int = 1_000) -> int:
        """Drop remembered answers older than that, so many at most; how many it were."""

    def forget_events(self, account: str, floor: int) -> None:
        """Remove an account's events up to there; the rows that survive must have been told since."""

    def erase(self, account: str) -> None:
        """Remove everything of an account, its log included. It must have been closed: nothing may write to it."""

    def borrow(self, subject: str, limit_class: str, terms: Terms) -> Budget:
        """Take a slice of a budget that all servers share, by the rule of `core.budget.lend`."""

    def note_uses(self, uses: dict[tuple[str, str], Instant]) -> None:
        """Keep when keys were last seen, by (account, id)."""

    def save_browser_session(self, browser_session: BrowserSession) -> None:
        """Let a browser in, or write down when it was last seen; the surplus of its key goes (`core.badge.surplus`)."""

    def take_browser_session(self, badge_id: str) -> BrowserSession | None:
        """Remove a badge; of several who try at once, one gets it."""

    def forget_browser_sessions(self) -> int:
        """Drop those that let nobody in any more, by the rule of `core.badge.is_over`; how many it were."""

    def size(self) -> int:
        """Bytes on disk, 0 where that has no meaning."""

    def close(self) -> None:
        """Let go of everything."""
