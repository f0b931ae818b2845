"""What a batch sees and what it leaves behind.

A store loads a View with every row the batch may touch; commands read and change it one after
another; what they changed is then saved as one set of Changes. A refused command is undone here,
before anything reaches the store.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.core.event import Cause, Event, tell
from holdfast.core.lease import ELECTION, LOCK, Lease, counts_for
from holdfast.core.principal import Principal
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session

ROW_TYPES: tuple[type[Row], ...] = (Session, Lease, Principal)
"""Every kind of row, in the order in which their locks are taken."""

R = TypeVar("R", bound=Row)


class Answer(msgspec.Struct, frozen=True):
    """What an Idempotency-Key was answered with, kept in the transaction of the effect."""

    account: str
    key: str
    fingerprint: str
    status: int
    body: str
    answered_at: Instant


class Needs(msgspec.Struct, frozen=True):
    """What must be locked and loaded before deciding."""

    rows: tuple[Key, ...] = ()
    session_leases: tuple[tuple[str, str], ...] = ()
    """(account, session): the leases claimed for these sessions' lives."""
    locks_of: tuple[tuple[str, str], ...] = ()
    """(account, principal): how many live locks each has, exact until the transaction ends."""
    rooms: tuple[str, ...] = ()
    """Accounts: how many elections are live in each."""
    answers: tuple[tuple[str, str], ...] = ()
    """(account, Idempotency-Key)."""


class AllNeeds(msgspec.Struct):
    """The needs of a whole batch, without doubles, each in one fixed order."""

    rows: list[Key]
    session_leases: list[tuple[str, str]]
    locks_of: list[tuple[str, str]]
    rooms: list[str]
    answers: list[tuple[str, str]]

    @classmethod
    def of(cls, each: Iterable[Needs]) -> AllNeeds:
        """Join the needs of many commands. Every batch takes its locks in this order, so none can deadlock."""
        rows: set[Key] = set()
        session_leases: set[tuple[str, str]] = set()
        locks_of: set[tuple[str, str]] = set()
        rooms: set[str] = set()
        answers: set[tuple[str, str]] = set()
        for needs in each:
            rows.update(needs.rows)
            session_leases.update(needs.session_leases)
            locks_of.update(needs.locks_of)
            rooms.update(needs.rooms)
            answers.update(needs.answers)
        return cls(sorted(rows), sorted(session_leases), sorted(locks_of), sorted(rooms), sorted(answers))


class Changes(msgspec.Struct):
    """What a batch leaves behind."""

    inserts: dict[str, list[Row]]
    updates: dict[str, list[Row]]
    """By table; `version` of an update's stored row is in `loaded`."""
    loaded: dict[Key, int]
    events: list[Event]
    answers: list[Answer]


class View:
    """The loaded rows, and on top of them what the commands of this batch have done so far."""

    def __init__(
        self,
        now: Instant,
        rows: Iterable[Row],
        *,
        locks_of: dict[tuple[str, str], int] | None = None,
        rooms: dict[str, int] | None = None,
        answers: Iterable[Answer] = (),
    ) -> None:
        self.now = now
        self.cause = Cause("", "")
        self._rows: dict[Key, Row] = {row.key: row for row in rows}
        self._loaded = {key: row.version for key, row in self._rows.items()}
        self._locks_of = locks_of or {}
        self._rooms = rooms or {}
        self._answers = {(answer.account, answer.key): answer for answer in answers}
        self._new_answers: list[Answer] = []
        self._steps: list[tuple[Row, Row, str, Cause]] = []
        self._undo_to = 0
        self.tokens_drawn = 0
        self._tokens_before = 0

    # -- reading ---------------------------------------------------------------------------------------------

    def lease(self, account: str, name: str) -> Lease:
        """The lease row of a name; a blank one if nobody ever claimed it."""
        return self.find(Lease, account, name) or Lease(account, name)

    def find(self, row_type: type[R], account: str, row_id: str) -> R | None:
        """The row, if there is one."""
        row = self._rows.get((row_type.table, account, row_id))
        return row if isinstance(row, row_type) else None

    def leases_of(self, account: str, session: str) -> list[Lease]:
        """The leases claimed for a session's life that are still on their rows."""
        found = [
            row
            for row in self._rows.values()
            if isinstance(row, Lease) and row.ephemeral and row.account == account and row.session == session
        ]
        return sorted(found, key=lambda row: row.id)  # every store tells the log in the same order

    def live_locks(self, account: str, principal: str) -> int:
        """How many live locks the principal has, this batch's included."""
        return self._locks_of[account, principal]

    def live_rooms(self, account: str) -> int:
        """How many elections of the account have a leader, this batch's included."""
        return self._rooms[account]

    def answer(self, account: str, key: str) -> Answer | None:
        """What this Idempotency-Key was answered with."""
        return self._answers.get((account, key))

    # -- changing --------------------------------------------------------------------------------------------

    def token(self) -> int:
        """A place for a fencing token: negative until the store draws the real ones for the whole batch."""
        self.tokens_drawn += 1
        return -self.tokens_drawn

    def put(self, row: R, kind: str) -> R:
        """Change a row and tell the log."""
        before = self._rows.get(row.key)
        if before is None:
            before = type(row)(row.account, row.id)
        after = replace(row, version=before.version + 1, changed_at=self.now)
        self._rows[after.key] = after
        self._steps.append((before, after, kind, self.cause))
        self._count(before, -1)
        self._count(after, +1)
        return after

    def keep(self) -> bool:
        """The command was accepted: its changes stay. Whether it made any."""
        changed = len(self._steps) > self._undo_to
        self._undo_to = len(self._steps)
        self._tokens_before = self.tokens_drawn
        return changed

    def undo(self) -> None:
        """The command was refused: forget its changes."""
        while len(self._steps) > self._undo_to:
            before, after, _, _ = self._steps.pop()
            if before.version:
                self._rows[after.key] = before
            else:
                del self._rows[after.key]
            self._count(after, -1)
            self._count(before, +1)
        self.tokens_drawn = self._tokens_before

    def remember(self, answer: Answer) -> None:
        """Keep an answer for whoever repeats the request."""
        self._new_answers.append(answer)

    # -- leaving behind --------------------------------------------------------------------------------------

    @property
    def changed(self) -> bool:
        """Whether anything must be saved."""
        return bool(self._steps)

    def changes(self, tokens: list[int]) -> Changes:
        """Everything this batch did, with real tokens in their places."""
        inserts: dict[str, list[Row]] = {}
        updates: dict[str, list[Row]] = {}
        events = []
        last: dict[Key, Row] = {}
        for before, after, kind, cause in self._steps:
            real = with_token(after, tokens)
            events.append(tell(with_token(before, tokens), real, kind, cause))
            last[real.key] = real
        # In the order in which rows are locked: two servers that insert the same new rows then wait for each other
        # in turn, never in a circle.
        for key, row in sorted(last.items()):
            target = updates if self._loaded.get(key) else inserts
            target.setdefault(row.table, []).append(row)
        answers = sorted(self._new_answers, key=lambda answer: (answer.account, answer.key))
        return Changes(inserts, updates, self._loaded, events, answers)

    def freed(self) -> list[Key]:
        """Names that had a holder and have none now: somebody in line may want them."""
        return [
            after.key
            for before, after, _, _ in self._steps
            if isinstance(before, Lease) and isinstance(after, Lease) and before.proof and not after.proof
        ]

    def nearest_deadline(self) -> Instant | None:
        """The first moment at which something this batch changed runs out."""
        deadlines = [
            after.expires_at
            for _, after, _, _ in self._steps
            if isinstance(after, Lease | Session) and after.expires_at is not None
        ]
        return min(deadlines, default=None)

    def _count(self, row: Row, step: int) -> None:
        if not isinstance(row, Lease):
            return
        owner = (row.account, row.principal or "")
        if owner in self._locks_of and counts_for(row, LOCK, self.now):
            self._locks_of[owner] += step
        if row.account in self._rooms and counts_for(row, ELECTION, self.now):
            self._rooms[row.account] += step


def with_token(row: R, tokens: list[int]) -> R:
    """Put the token drawn by the store where decide left a place for it."""
    if isinstance(row, Lease) and row.token < 0:
        return replace(row, token=tokens[-row.token - 1])
    return row


_SURROGATES = range(0xD800, 0xE000)
"""Code points that are no characters."""


def after_prefix(prefix: str) -> str | None:
    """The least text, bytewise, that sorts after everything beginning with `prefix`; None if there is none."""
    for cut in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[cut]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= sys.maxunicode:
            return prefix[:cut] + chr(following)
    return None
