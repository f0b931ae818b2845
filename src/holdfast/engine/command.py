"""Commands and their outcomes. A command names the rows it needs, and decides over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import IdempotencyConflict
from holdfast.core.event import Cause
from holdfast.core.lease import Lease
from holdfast.core.row import Instant, Key
from holdfast.engine.batches.dependencies import update_dependents
from holdfast.engine.batches.steps import with_token
from holdfast.engine.session_renewal import ActingSession, needs_of, renew_by_write
from holdfast.engine.view import View
from holdfast.store.changes import Answer
from holdfast.store.needs import Needs

T = TypeVar("T")

Queue = tuple[str, str]
"""(account, task type); type "" means every type."""
Offered = tuple[str, str, str]
"""(account, task type, required words): the tasks of a queue that require the same capabilities."""


class Once(msgspec.Struct, frozen=True):
    """An Idempotency-Key: a request repeated under it has one effect and one answer."""

    key: str
    fingerprint: str
    render: Callable[[Any], tuple[int, bytes]]
    """Renders an outcome as (status, body); pure."""


class Command(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One request to change something. `decide` is pure: the same view gives the same answer."""

    urgent: ClassVar[bool] = False
    """Whether it runs before new work. Writes by holders do: a late renewal costs the holder its lease."""
    waits_for_locks: ClassVar[bool] = True
    """Whether it is tried again for seconds while another transaction has locked its rows."""
    claims: ClassVar[str] = ""
    """What it claims: "job", "lock", "election", "task" or "reservation"; empty if it is no claim."""

    account: str
    cause: Cause
    once: Once | None = None

    def needs(self) -> Needs:
        """The rows to lock and load."""
        raise NotImplementedError  # pragma: no cover - every command has its own

    def decide(self, view: View) -> T:
        """Read and change the view, and return the outcome; raising Refused undoes every change."""
        raise NotImplementedError  # pragma: no cover - every command has its own

    def replay(self, view: View, answer: Answer) -> T | Replayed:
        """Answer a repeated request: by default with the first answer."""
        return Replayed(answer.status, answer.body.encode())

    @property
    def stores_answer(self) -> bool:
        """Whether its answer is stored for repetitions under its Idempotency-Key."""
        return True

    def size(self) -> int:
        """About how many bytes it carries, which limits the size of a batch."""
        return 0

    def wait_keys(self) -> tuple[Key, ...]:
        """The rows that it may wait for, if it may wait for a name or for any of several."""
        return ()

    def waiting_place(self) -> str | None:
        """The id of the place that its caller kept in the queues of those rows."""
        return None

    def space_waited_for(self) -> tuple[str, str] | None:
        """(account, space) in which it may wait, if it may wait for a reservation."""
        return None

    def queues(self) -> tuple[Queue, ...]:
        """The task queues that it may wait for, if it claims tasks."""
        return ()

    def new_tasks(self) -> tuple[Offered, ...]:
        """The queues of the tasks that it creates, one entry for each that can be claimed at once."""
        return ()

    def weight(self) -> int:
        """About how many rows it touches."""
        return 1

    def yield_to_waiters(self, keys: frozenset[Key]) -> Self:
        """The command to run instead while other callers wait for these rows: it must not overtake them."""
        return self

    def give_back(self, outcome: T) -> Command[Any] | None:
        """The command that gives back what was granted if the answer cannot be delivered; None if nothing was."""
        return None

    def acting_session(self) -> ActingSession | None:
        """The session that it is sent for: its success renews what that session holds."""
        return None

    def once_keys(self) -> tuple[tuple[str, str], ...]:
        """(account, Idempotency-Key) of every stored answer it must load."""
        return () if self.once is None else ((self.account, self.once.key),)

    def all_needs(self) -> Needs:
        """The rows to load, with those of the session it is sent for, and the answer under its Idempotency-Key."""
        needs, acting = self.needs(), self.acting_session()
        if acting is not None:
            needs = Needs.joined((needs, needs_of(self.account, acting)))
        return needs if self.once is None else replace(needs, answers=self.once_keys())

    def run(self, view: View, *, may_wait: bool = False) -> T | Replayed:
        """Decide, or replay the stored answer of a repeated request; then tasks learn of the end of those they need.

        With `may_wait` the caller may go on waiting.
        """
        first = len(view.steps)
        outcome = self._decide_or_replay(view, may_wait=may_wait)
        update_dependents(view, first)
        return outcome

    def _decide_or_replay(self, view: View, *, may_wait: bool) -> T | Replayed:
        if self.once is not None:
            answer = view.answer(self.account, self.once.key)
            if answer is not None:
                if answer.fingerprint != self.once.fingerprint:
                    raise IdempotencyConflict("this Idempotency-Key was used for a different request")
                return self.replay(view, answer)
        acting = self.acting_session()
        if acting is None:
            return self.decide(view)
        if may_wait:  # a claim that waits takes effect when it is answered, and renews then
            mark, outcome = view.mark(), self.decide(view)
            if isinstance(outcome, Outcome) and outcome.waits:
                return outcome
            view.rewind(mark)
        renew_by_write(view, self.account, acting)
        return self.decide(view)

    def keeps_answer(self, outcome: Any, *, has_changed: bool) -> bool:
        """Whether the answer is stored for repetitions of this request, which changed something or not."""
        if self.once is None or not self.stores_answer:
            return False
        binding = outcome.binding if isinstance(outcome, Outcome) else None
        return has_changed if binding is None else binding

    def remember(self, outcome: Any, now: Instant) -> Answer:
        """The answer to store for repetitions of this request."""
        assert self.once is not None
        status, body = self.once.render(outcome)
        return Answer(self.account, self.once.key, self.once.fingerprint, status, body.decode(), now)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a command, with the time of its batch by the store's clock."""

    waits: ClassVar[bool] = False
    """Whether a caller that is willing to wait goes on waiting."""

    now: Instant

    @property
    def binding(self) -> bool | None:
        """Whether a repeated request must get the same answer; None means: if it changed anything."""
        return False if self.waits else None

    def with_tokens(self, tokens: list[int]) -> Self:
        """The outcome with the tokens drawn for it."""
        return self


class LeaseOutcome(Outcome, frozen=True):
    """The result of a command about one lease."""

    lease: Lease

    def with_tokens(self, tokens: list[int]) -> Self:
        """The outcome with the token drawn for it."""
        return self if self.lease.token >= 0 else replace(self, lease=with_token(self.lease, tokens))


class Held(LeaseOutcome, frozen=True):
    """Another holder has it. A caller that is willing to wait joins the queue."""

    waits = True
    waiting: int = 0
    """How many callers wait for it in this server."""
    waiting_id: str | None = None
    """Keeps the place of a caller that waited for as long as it wanted to, if it asks again soon."""

    @property
    def leases(self) -> tuple[Lease, ...]:
        """Every lease that the caller may wait for."""
        return (self.lease,)


class Replayed(msgspec.Struct, frozen=True):
    """The stored answer to a repeated request."""

    status: int
    body: bytes
