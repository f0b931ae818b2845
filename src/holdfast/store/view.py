"""What a batch sees and what it leaves behind.

A store loads a View with every row the batch may touch; commands read and change it one after
another; what they changed is then saved as one set of Changes. A refused command is undone here,
before anything reaches the store.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Container, Iterable
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.core.account import Account
from holdfast.core.event import SNAPSHOT, Cause, Event, difference, tell
from holdfast.core.lease import ELECTION, LOCK, Lease, counts_for, is_live
from holdfast.core.plan import Usage
from holdfast.core.principal import Principal
from holdfast.core.purchase import Purchase
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import LIVE_STATES, Task, deadline, is_claimable
from holdfast.core.webhooks.webhook import Peers, Webhook, is_among
from holdfast.store.ready_heap import ReadyHeap

NAMED: tuple[type[Row], ...] = (Session, Lease)
"""Rows that may come back under the same id after retention has forgotten them: their versions go on from the log."""

ROW_TYPES: tuple[type[Row], ...] = (Session, Lease, Task, Principal, Account, Purchase, Webhook)
"""Every kind of row, in the order in which their locks are taken."""

MOST_READY = 2_000
"""A batch never loads more tasks of one queue than this."""

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
    holdings: tuple[tuple[str, str], ...] = ()
    """(account, session): the leases and tasks claimed for these sessions' lives."""
    ready: tuple[tuple[str, str, int], ...] = ()
    """(account, type, how many): the first tasks of a queue that anybody may have; type "" stands for all."""
    spare: int = 0
    """How many ready tasks it may take away by naming them: whoever claims in the same batch needs so many more."""
    live_keys: tuple[tuple[str, str], ...] = ()
    """(account, unique key): the live tasks under these keys."""
    twins: tuple[tuple[str, str], ...] = ()
    """(account, task): the live tasks under the unique keys of these."""
    locks_of: tuple[tuple[str, str], ...] = ()
    """(account, principal): how many live locks each has, exact until the transaction ends."""
    rooms: tuple[str, ...] = ()
    """Accounts: how many elections are live in each."""
    webhooks_of: tuple[Peers, ...] = ()
    """How many webhooks there are of each, exact until the transaction ends."""
    answers: tuple[tuple[str, str], ...] = ()
    """(account, Idempotency-Key)."""
    metered: tuple[str, ...] = ()
    """Accounts: what each has used of its plan, exact until the transaction ends."""

    @classmethod
    def joined(cls, each: Iterable[Needs]) -> Needs:
        """The needs of several commands that are one."""
        together: dict[str, list[Any]] = {name: [] for name in (*_ALWAYS, "ready")}
        spare = 0
        for needs in each:
            spare += needs.spare
            for name in together:
                together[name] += getattr(needs, name)
        return cls(spare=spare, **{name: tuple(wanted) for name, wanted in together.items()})


class AllNeeds(msgspec.Struct):
    """The needs of a whole batch, without doubles, each in one fixed order."""

    rows: list[Key]
    holdings: list[tuple[str, str]]
    ready: list[tuple[str, str, int]]
    live_keys: list[tuple[str, str]]
    twins: list[tuple[str, str]]
    locks_of: list[tuple[str, str]]
    rooms: list[str]
    webhooks_of: list[Peers]
    answers: list[tuple[str, str]]
    metered: list[str]

    @classmethod
    def of(cls, each: Iterable[Needs]) -> AllNeeds:
        """Join the needs of many commands. Every batch takes its locks in this order, so none can deadlock."""
        gathered: dict[str, set[Any]] = {name: set() for name in cls.__struct_fields__}
        ready: dict[tuple[str, str], int] = {}
        spare = 0
        for needs in each:
            spare += needs.spare
            for name in _ALWAYS:
                if wanted := getattr(needs, name):
                    gathered[name].update(wanted)
            for account, task_type, count in needs.ready:
                ready[account, task_type] = ready.get((account, task_type), 0) + count
        ready = {queue: count + _others(ready, *queue) for queue, count in ready.items()}
        gathered["ready"] = {(*queue, min(count + spare, MOST_READY)) for queue, count in ready.items()}
        return cls(**{name: sorted(wanted) for name, wanted in gathered.items()})


def _others(ready: dict[tuple[str, str], int], account: str, task_type: str) -> int:
    """How many may be taken from a queue by those who name no queue, or from all of them by those who name one."""
    if task_type:
        return ready.get((account, ""), 0)
    return sum(count for (other, named), count in ready.items() if other == account and named)


_ALWAYS = tuple(name for name in Needs.__struct_fields__ if name not in {"ready", "spare"})


def absent_subjects(needs: AllNeeds, found: Container[Key]) -> dict[tuple[str, str], Key]:
    """(account, subject) of every row that was asked for, is not there, and may have been there before."""
    nouns = {row_type.table: row_type.noun for row_type in NAMED}
    return {(key[1], f"{nouns[key[0]]}:{key[2]}"): key for key in needs.rows if key[0] in nouns and key not in found}


class Changes(msgspec.Struct):
    """What a batch leaves behind."""

    inserts: dict[str, list[Row]]
    updates: dict[str, list[Row]]
    deletes: dict[str, list[Row]]
    """By table."""
    loaded: dict[Key, Row]
    """What was stored when the batch began, for updates and deletes."""
    touched: dict[Key, tuple[str, ...]]
    """The columns in which a row differs, or may differ, from what is stored."""
    counts: dict[tuple[str, str, str], int]
    """(account, type, state): how many tasks more or less there are now."""
    events: list[Event]
    answers: list[Answer]
    created: dict[str, Usage]
    """By account: how many tasks were created, in which cycle."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """One change of one row."""

    before: Row
    after: Row
    kind: str
    cause: Cause
    new: bool = False
    removed: bool = False


class View:
    """The loaded rows, and on top of them what the commands of this batch have done so far."""

    def __init__(
        self,
        now: Instant,
        rows: Iterable[Row],
        *,
        locks_of: dict[tuple[str, str], int] | None = None,
        rooms: dict[str, int] | None = None,
        webhooks_of: dict[Peers, int] | None = None,
        answers: Iterable[Answer] = (),
        versions: dict[Key, int] | None = None,
        usage: dict[str, Usage] | None = None,
        workers: dict[str, int] | None = None,
    ) -> None:
        self.now = now
        self.cause = Cause("", "")
        self._rows: dict[Key, Row] = {row.key: row for row in rows}
        self._first = dict(self._rows)
        self._locks_of = locks_of or {}
        self._rooms = rooms or {}
        self._webhooks_of = webhooks_of or {}
        self._answers = {(answer.account, answer.key): answer for answer in answers}
        self._new_answers: list[Answer] = []
        self._versions = versions or {}
        """Rows that were forgotten: their versions go on from the log."""
        self._usage = usage or {}
        self._workers = workers or {}
        self._charges: list[tuple[str, Instant, Usage | None]] = []
        """(account, cycle, what was used before) of each task created."""
        self.came_up_short = False
        """Some claim got less than it asked for."""
        self._queues = ReadyHeap(now, partial(self.find, Task))
        self._live_keys: dict[tuple[str, str], str] = {}
        self._carriers: dict[tuple[str, str], set[Key]] = {}
        for row in self._rows.values():
            self._note(row)
        self._steps: list[Step] = []
        self._undo_to = 0
        self.tokens_drawn = 0
        self._tokens_before = 0
        self._charges_before = 0

    # -- reading ---------------------------------------------------------------------------------------------

    def lease(self, account: str, name: str) -> Lease:
        """The lease row of a name; a blank one if nobody ever claimed it."""
        return self.find(Lease, account, name) or Lease(account, name)

    def find(self, row_type: type[R], account: str, row_id: str) -> R | None:
        """The row, if there is one."""
        row = self._rows.get((row_type.table, account, row_id))
        return row if isinstance(row, row_type) else None

    def at(self, key: Key) -> Row | None:
        """The row of any kind under a key."""
        return self._rows.get(key)

    def leases_of(self, account: str, session: str) -> list[Lease]:
        """The leases claimed for a session's life that are still on their rows."""
        found = [row for row in self._of_session(account, session) if isinstance(row, Lease) and row.ephemeral]
        return sorted(found, key=lambda row: row.id)  # every store tells the log in the same order

    def tasks_of(self, account: str, session: str) -> list[Task]:
        """The tasks that a session holds."""
        found = [row for row in self._of_session(account, session) if isinstance(row, Task) and row.proof]
        return sorted(found, key=lambda row: row.id)

    def _of_session(self, account: str, session: str) -> list[Lease | Task]:
        """Rows that carry a session, of those that ever did in this batch."""
        found = (self._rows.get(key) for key in self._carriers.get((account, session), ()))
        return [row for row in found if isinstance(row, Lease | Task) and row.session == session]

    def next_ready(self, account: str, types: tuple[str, ...]) -> Task | None:
        """The task that is first in line in one of these queues, or in any if none is named."""
        return self._queues.first(account, types)

    def live_under(self, account: str, unique_key: str) -> Task | None:
        """The live task under a unique key."""
        task = self.find(Task, account, self._live_keys.get((account, unique_key), ""))
        return task if task is not None and task.unique_key == unique_key and task.state in LIVE_STATES else None

    def passed_over(self, seen: dict[tuple[str, str], int]) -> bool:
        """Whether a queue has more ready tasks than were loaded: others have them locked just now."""
        loaded: Counter[tuple[str, str]] = Counter()
        for row in self._first.values():
            if isinstance(row, Task) and is_claimable(row, self.now):
                loaded.update([(row.account, row.type), (row.account, "")])
        return any(many > loaded[queue] for queue, many in seen.items())

    def live_locks(self, account: str, principal: str) -> int:
        """How many live locks the principal has, this batch's included."""
        return self._locks_of[account, principal]

    def live_rooms(self, account: str) -> int:
        """How many elections of the account have a leader, this batch's included."""
        return self._rooms[account]

    def webhooks(self, peers: Peers) -> int:
        """How many webhooks there are, this batch's included."""
        own = [step for step in self._steps if isinstance(step.after, Webhook) and is_among(step.after, peers)]
        return self._webhooks_of[peers] + sum(step.new - step.removed for step in own)

    def usage(self, account: str) -> Usage:
        """What the account has used, this batch's creations included."""
        return self._usage[account]

    def workers(self, account: str) -> int:
        """How many tasks of the account are held, this batch's included."""
        return self._workers[account]

    def answer(self, account: str, key: str) -> Answer | None:
        """What this Idempotency-Key was answered with."""
        return self._answers.get((account, key))

    # -- changing --------------------------------------------------------------------------------------------

    def token(self) -> int:
        """A place for a fencing token: negative until the store draws the real ones for the whole batch."""
        self.tokens_drawn += 1
        return -self.tokens_drawn

    def charge(self, account: str, cycle: Instant) -> None:
        """A task was created: it counts in its account's cycle."""
        before = self._usage.get(account)
        self._charges.append((account, cycle, before))
        if before is not None:
            self._usage[account] = before.plus(Usage(cycle, 1))

    def put(self, row: R, kind: str) -> R:
        """Change a row and tell the log."""
        before = self._rows.get(row.key)
        new = before is None
        if before is None:
            before = type(row)(row.account, row.id, version=self._versions.get(row.key, 0))
        after = replace(row, version=before.version + 1, changed_at=self.now)
        self._rows[after.key] = after
        self._take(Step(before, after, kind, self.cause, new))
        return after

    def remove(self, row: Row, kind: str) -> None:
        """Forget a row and tell the log."""
        before = self._rows.pop(row.key)
        after = replace(before, version=before.version + 1)
        self._versions[row.key] = after.version
        self._take(Step(before, after, kind, self.cause, removed=True))

    def snapshot(self, row: Row) -> None:
        """Tell the log the whole row, so that it can be told from there; nothing else about it changes."""
        before = self._rows[row.key]
        after = replace(before, version=before.version + 1)
        self._rows[after.key] = after
        self._take(Step(before, after, SNAPSHOT, self.cause))

    def steps(self) -> int:
        """How many changes there are so far."""
        return len(self._steps)

    def keep(self) -> None:
        """The command was accepted: its changes stay."""
        self._undo_to = len(self._steps)
        self._tokens_before = self.tokens_drawn
        self._charges_before = len(self._charges)

    def undo(self) -> None:
        """The command was refused: forget its changes."""
        while len(self._steps) > self._undo_to:
            step = self._steps.pop()
            if step.new:
                del self._rows[step.after.key]
            else:
                self._rows[step.after.key] = step.before
            self._count(step.after, -1)
            self._count(step.before, +1)
            self._note(step.before)
        self.tokens_drawn = self._tokens_before
        while len(self._charges) > self._charges_before:
            account, _, before = self._charges.pop()
            if before is not None:
                self._usage[account] = before

    def mark(self) -> tuple[int, int, int, int]:
        """Where the batch stands now."""
        return len(self._steps), self.tokens_drawn, len(self._charges), len(self._new_answers)

    def rewind(self, mark: tuple[int, int, int, int]) -> None:
        """Forget everything since then, also what was kept."""
        self._undo_to, self._tokens_before, self._charges_before, answers = mark
        self.undo()
        for answer in self._new_answers[answers:]:
            del self._answers[answer.account, answer.key]
        del self._new_answers[answers:]

    def remember(self, answer: Answer) -> None:
        """Keep an answer for whoever repeats the request."""
        self._new_answers.append(answer)
        self._answers[answer.account, answer.key] = answer

    def _take(self, step: Step) -> None:
        self._steps.append(step)
        self._count(step.before, -1)
        self._count(step.after, +1)
        self._note(step.after)

    def _note(self, row: Row) -> None:
        """Where else a row can be found: with its session, in its queue, under its key."""
        if isinstance(row, Lease | Task) and row.session is not None:
            self._carriers.setdefault((row.account, row.session), set()).add(row.key)
        if isinstance(row, Task):
            self._queues.add(row)
            if row.unique_key is not None and row.state in LIVE_STATES:
                self._live_keys[row.account, row.unique_key] = row.id

    # -- leaving behind --------------------------------------------------------------------------------------

    @property
    def changed(self) -> bool:
        """Whether anything must be saved."""
        return bool(self._steps or self._new_answers)

    def changes(self, tokens: list[int]) -> Changes:
        """Everything this batch did, with real tokens in their places."""
        changes = Changes({}, {}, {}, self._first, {}, {}, [], [], {})
        last: dict[Key, Step] = {}
        touched = changes.touched
        for step in self._steps:
            after = with_token(step.after, tokens)
            changed = difference(with_token(step.before, tokens), after)
            changes.events.append(tell(changed, after, step.kind, step.cause, self.now))
            key = after.key
            touched[key] = (*touched[key], *changed) if key in touched else tuple(changed)
            last[key] = step if after is step.after else replace(step, after=after)
        counts: Counter[tuple[str, str, str]] = Counter()
        # In the order in which rows are locked: two servers that insert the same new rows then wait for each other
        # in turn, never in a circle.
        for key, step in sorted(last.items(), key=lambda item: item[0]):
            first, row = self._first.get(key), step.after
            if step.removed:
                target = changes.deletes if first is not None else None
            else:
                target = changes.inserts if first is None else changes.updates
            if target is not None:
                target.setdefault(row.table, []).append(row)
            if isinstance(row, Task):
                if isinstance(first, Task):
                    counts[first.account, first.type, first.state] -= 1
                if not step.removed:
                    counts[row.account, row.type, row.state] += 1
        # New tasks wait for each other at their unique keys, so that is their order.
        changes.inserts.get(Task.table, []).sort(key=_by_unique_key)
        changes.counts = {key: counts[key] for key in sorted(counts) if counts[key]}
        changes.answers = sorted(self._new_answers, key=lambda answer: (answer.account, answer.key))
        for account, cycle, _ in sorted(self._charges, key=lambda charge: charge[:2]):
            changes.created[account] = changes.created.get(account, Usage()).plus(Usage(cycle, 1))
        return changes

    def freed(self) -> list[Key]:
        """Names that had a holder and have none now: somebody in line may want them."""
        return [
            step.after.key
            for step in self._steps
            if isinstance(step.before, Lease)
            and isinstance(step.after, Lease)
            and step.before.proof
            and not step.after.proof
        ]

    def offered(self) -> dict[tuple[str, str], int]:
        """(account, type): how many tasks became claimable and still are: so many waiters may want them."""
        counts: dict[tuple[str, str], int] = {}
        for key in {step.after.key for step in self._steps if isinstance(step.after, Task)}:
            now, before = self._rows.get(key), self._first.get(key)
            if not isinstance(now, Task) or not is_claimable(now, self.now):
                continue
            if not isinstance(before, Task) or not is_claimable(before, self.now) or not before.ready:
                counts[now.account, now.type] = counts.get((now.account, now.type), 0) + 1
        return counts

    def taken(self) -> list[Step]:
        """Every change, in order."""
        return self._steps

    def touched(self) -> set[Key]:
        """Every row that changed, for those who watch one."""
        return {step.after.key for step in self._steps}

    def nearest_deadline(self) -> Instant | None:
        """The first moment at which something this batch changed runs out or comes due."""
        deadlines = []
        for step in self._steps:
            row = step.after
            at = deadline(row) if isinstance(row, Task) else getattr(row, "expires_at", None)
            if at is not None:
                deadlines.append(at)
        return min(deadlines, default=None)

    def _count(self, row: Row, step: int) -> None:
        if isinstance(row, Task) and row.account in self._workers and is_live(row, self.now):
            self._workers[row.account] += step
        if not isinstance(row, Lease):
            return
        owner = (row.account, row.principal or "")
        if owner in self._locks_of and counts_for(row, LOCK, self.now):
            self._locks_of[owner] += step
        if row.account in self._rooms and counts_for(row, ELECTION, self.now):
            self._rooms[row.account] += step


def _by_unique_key(row: Row) -> tuple[str, str, str]:
    assert isinstance(row, Task)
    return (row.account, row.unique_key or "", row.id)


_TOKENED = (Lease, Task, Session)


def with_token(row: R, tokens: list[int]) -> R:
    """Put the token drawn by the store where decide left a place for it."""
    if isinstance(row, _TOKENED) and row.token < 0:
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
