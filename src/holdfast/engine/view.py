"""The working set of a batch: the loaded rows, and the changes of its commands so far.

Commands read and change the View one after another; a refused command is undone here, before anything reaches the
store. After the last command the engine saves what changed as one set of Changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar, cast

from msgspec.structs import replace

from holdfast.core.deadlines import Held, session_of, with_effective_deadline
from holdfast.core.event import SNAPSHOT, Cause
from holdfast.core.lease import Lease
from holdfast.core.plan import Usage
from holdfast.core.reservation.patterns import Pattern
from holdfast.core.reservation.row import Reservation, SpaceUse, may_overlap_any
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import LIVE_STATES, Task, is_in_queue, within_limits
from holdfast.core.webhooks.webhook import LimitGroup, Webhook, is_in_group
from holdfast.engine.batches.indexes import Indexes
from holdfast.engine.batches.live_counts import LiveCounts
from holdfast.engine.batches.queue_limits import QueueLimits
from holdfast.engine.batches.ready_heap import ReadyHeap, count_loaded
from holdfast.engine.batches.steps import Step, build_changes, offered_tasks
from holdfast.store.changes import Answer, Changes
from holdfast.store.rows import Rows

R = TypeVar("R", bound=Row)


class View:
    """The rows as the next command of the batch sees them."""

    def __init__(self, rows: Rows) -> None:
        self.now = rows.now
        self.wall = rows.now if rows.wall is None else rows.wall
        """The wall clock: people schedule by it. Leases run on the store's clock, which is never set."""
        self.cause = Cause("", "")
        self.steps: list[Step] = []
        """Every change so far, in order."""
        self.tokens_drawn = 0
        self.token_floor = 0
        """Every token from this batch on is larger. A refused command leaves it: a gap between tokens does no harm."""
        self.has_unfilled_claim = False
        """Whether a claim got fewer tasks than it asked for."""
        self.dependents, self.new_dependents = rows.dependents, dict[tuple[str, str], list[str]]()
        """(account, task): ids of tasks that depend on it, those that were loaded and those that this batch made."""
        self._damaged, self._has_skipped = rows.damaged, rows.skipped
        self._loaded = rows.rows
        self._rows = dict(rows.rows)
        self._webhook_counts = rows.webhook_counts
        self._answers = {(answer.account, answer.key): answer for answer in rows.answers}
        self._new_answers: list[Answer] = []
        self._versions = rows.versions
        self._usage = rows.usage
        self._counts = LiveCounts(rows)
        self._charges: list[tuple[str, Instant, Usage | None]] = []
        """(account, cycle, usage before) of each task created."""
        self.queues = QueueLimits(self._rows, rows.damaged, rows.running, rows.running_by_key)
        self.ready = ReadyHeap(self.wall, self._rows, self.queues.is_key_full)
        self._indexes = Indexes(self._rows)
        for row in self._rows.values():
            self._index(row)
        self._undo_to = self._tokens_before = self._charges_before = 0

    # -- reading ---------------------------------------------------------------------------------------------

    def lease(self, account: str, name: str) -> Lease:
        """The lease row of a name; a blank one if it was never claimed."""
        return self.find(Lease, account, name) or Lease(account, name)

    def find(self, row_type: type[R], account: str, row_id: str) -> R | None:
        """The row, if there is one."""
        return cast("R | None", self.at((row_type.table, account, row_id)))

    def effective(self, row: Held) -> Held:
        """The row with the earlier of its own deadline and that of its session, as answers show it."""
        session_id = session_of(row)
        if session_id is None:
            return row
        session = self._rows.get((Session.table, row.account, session_id))
        return with_effective_deadline(row, session if isinstance(session, Session) else None)

    def at(self, key: Key) -> Row | None:
        """The row of any kind under a key; a damaged one fails the command."""
        row = self._rows.get(key)
        if row is None and key in self._damaged:
            raise self._damaged[key]
        return row

    def leases_of(self, account: str, session: str) -> list[Lease]:
        """The ephemeral leases that a session holds."""
        return self._indexes.held_by_session(Lease, account, session)

    def tasks_of(self, account: str, session: str) -> list[Task]:
        """The tasks that a session holds."""
        return self._indexes.held_by_session(Task, account, session)

    def reservations_of(self, account: str, session: str) -> list[Reservation]:
        """The reservations that a session holds."""
        return self._indexes.held_by_session(Reservation, account, session)

    def open_reservations(self, account: str, space: str, patterns: Iterable[Pattern] = ()) -> list[Reservation]:
        """The loaded reservations of a space that are held or wait; fails for a damaged one that may overlap."""
        for error in self._damaged.values():
            is_here, columns = error.table == Reservation.table and error.key[0] == account, error.columns
            is_open = columns.get("ended_at") is None or columns.get("proof") or columns.get("waits_until")
            if not is_here or not is_open or columns.get("space") != space:
                continue
            if may_overlap_any(columns.get("paths"), patterns):
                raise error
        return self._indexes.open_in_space(account, space)

    def space_use(self, account: str, space: str) -> SpaceUse:
        """How many reservations of a space are held or wait, this batch's included."""
        return self._counts.spaces[account, space]

    def next_ready(self, account: str, types: tuple[str, ...], capabilities: str = "") -> Task | None:
        """The first claimable task of these queues, or of all queues if none is named, for these capabilities."""
        return self.ready.first(account, types, capabilities, self.queues.closed(account))

    def live_task_under(self, account: str, unique_key: str) -> Task | None:
        """The live task under a unique key."""
        for error in self._damaged.values():
            is_live = error.table == Task.table and error.columns.get("state") in LIVE_STATES
            if is_live and error.key[0] == account and error.columns.get("unique_key") == unique_key:
                raise error
        return self._indexes.task_under(account, unique_key)

    def has_locked_tasks(self, counted: dict[tuple[str, str, str], int]) -> bool:
        """Whether a queue has more claimable tasks than were loaded: other servers have locked the rest."""
        rows = (row for row in self._loaded.values() if isinstance(row, Task) and is_in_queue(row, self.wall))
        loaded = Counter((row.account, row.type, row.requires or "") for row in rows)
        for error in self._damaged.values():
            loaded[error.key[0], str(error.columns.get("type")), str(error.columns.get("requires") or "")] += 1
        return self._has_skipped or any(count > count_loaded(loaded, queue) for queue, count in counted.items())

    def live_locks(self, account: str, principal: str) -> int:
        """How many live locks the principal has, this batch's included."""
        return self._counts.locks[account, principal]

    def live_elections(self, account: str) -> int:
        """How many elections of the account have a leader, this batch's included."""
        return self._counts.elections[account]

    def webhooks(self, group: LimitGroup) -> int:
        """How many webhooks count toward a limit, this batch's included."""
        own = [step for step in self.steps if isinstance(step.after, Webhook) and is_in_group(step.after, group)]
        return self._webhook_counts[group] + sum(step.new - step.removed for step in own)

    def usage(self, account: str) -> Usage:
        """What the account has used, this batch's creations included."""
        return self._usage[account]

    def held_tasks(self, account: str) -> int:
        """How many tasks of the account are held, this batch's included."""
        return self._counts.held_tasks[account]

    def answer(self, account: str, key: str) -> Answer | None:
        """The stored answer under an Idempotency-Key."""
        if ("answers", account, key) in self._damaged:
            raise self._damaged["answers", account, key]
        return self._answers.get((account, key))

    # -- changing --------------------------------------------------------------------------------------------

    def token(self) -> int:
        """A negative placeholder for a fencing token; real ones are drawn once for the whole batch (`with_token`)."""
        self.tokens_drawn += 1
        return -self.tokens_drawn

    def advance_tokens(self, floor: int) -> None:
        """Let every token that is granted from this batch on be larger than `floor`."""
        self.token_floor = max(self.token_floor, floor)

    def charge(self, account: str, cycle: Instant) -> None:
        """Count a created task in its account's cycle."""
        before = self._usage.get(account)
        self._charges.append((account, cycle, before))
        if before is not None:
            self._usage[account] = before.plus(Usage(cycle, 1))

    def put(self, row: R, kind: str) -> R:
        """Insert or update a row, with an event of this kind. No lease of a task outlasts the limit of its attempt."""
        if isinstance(row, Task):
            row = cast("R", within_limits(row))
        key = row.key
        before = self._rows.get(key)
        new = before is None
        if before is None:
            before = type(row)(row.account, row.id, version=self._versions.get(key, 0))
        after = replace(row, version=before.version + 1, changed_at=max(self.now, before.changed_at))
        self._rows[key] = after
        self._add_step(Step(before, after, kind, self.cause, new))
        return after

    def touch(self, row: R) -> None:
        """Change columns that the log leaves out, without an event and without a new version."""
        before = self._rows[row.key]
        self._rows[row.key] = row
        self._add_step(Step(before, row, "", self.cause))

    def remove(self, row: Row, kind: str) -> None:
        """Delete a row, with an event of this kind."""
        before = self._rows.pop(row.key)
        after = replace(before, version=before.version + 1)
        self._versions[row.key] = after.version
        self._add_step(Step(before, after, kind, self.cause, removed=True))

    def snapshot(self, row: Row) -> None:
        """Write the whole row to the log, so that it can be rebuilt from this event on; only its version changes."""
        before = self._rows[row.key]
        after = replace(before, version=before.version + 1)
        self._rows[after.key] = after
        self._add_step(Step(before, after, SNAPSHOT, self.cause))

    def keep(self) -> None:
        """Accept the command: its changes stay."""
        self._undo_to = len(self.steps)
        self._tokens_before = self.tokens_drawn
        self._charges_before = len(self._charges)

    def undo(self) -> None:
        """Refuse the command: drop its changes."""
        while len(self.steps) > self._undo_to:
            step = self.steps.pop()
            if step.new:
                del self._rows[step.after.key]
            else:
                self._rows[step.after.key] = step.before
            self._counts.add(step.after, -1)
            self._counts.add(step.before, +1)
            self._index(step.before)
        self.tokens_drawn = self._tokens_before
        while len(self._charges) > self._charges_before:
            account, _, before = self._charges.pop()
            if before is not None:
                self._usage[account] = before

    def mark(self) -> tuple[int, int, int, int]:
        """The current position, for `rewind`."""
        return len(self.steps), self.tokens_drawn, len(self._charges), len(self._new_answers)

    def rewind(self, mark: tuple[int, int, int, int]) -> None:
        """Drop all changes since `mark`, also those of accepted commands."""
        self._undo_to, self._tokens_before, self._charges_before, answers = mark
        self.undo()
        for answer in self._new_answers[answers:]:
            del self._answers[answer.account, answer.key]
        del self._new_answers[answers:]

    def remember(self, answer: Answer) -> None:
        """Save an answer for repetitions of the request."""
        self._new_answers.append(answer)
        self._answers[answer.account, answer.key] = answer

    def _add_step(self, step: Step) -> None:
        self.steps.append(step)
        if self._counts.is_needed:
            self._counts.add(step.before, -1)
            self._counts.add(step.after, +1)
        self._index(step.after)

    def _index(self, row: Row) -> None:
        """Make a row findable by its session, its space, its queue and its unique key."""
        self._indexes.add(row)
        if type(row) is Task:
            self.ready.add(row)

    # -- saving ----------------------------------------------------------------------------------------------

    @property
    def has_changes(self) -> bool:
        """Whether anything must be saved."""
        return bool(self.steps or self._new_answers or self.token_floor)

    def changes(self, tokens: list[int]) -> Changes:
        """Everything this batch changed, with real tokens instead of placeholders."""
        changes = build_changes(self.steps, self._loaded, tokens, self.now)
        changes.answers = sorted(self._new_answers, key=lambda answer: (answer.account, answer.key))
        for account, cycle, _ in sorted(self._charges, key=lambda charge: charge[:2]):
            changes.created[account] = changes.created.get(account, Usage()).plus(Usage(cycle, 1))
        return changes

    def offered(self) -> dict[tuple[str, str, str], int]:
        """(account, type, required words): how many tasks waiters may take now, to wake as many."""
        return offered_tasks(self.steps, self._rows, self._loaded, self.wall)

    def touched(self) -> set[Key]:
        """The keys of every row that changed."""
        return {step.after.key for step in self.steps}
