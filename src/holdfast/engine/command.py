"""A verb: what it must see, and what it decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import IdempotencyConflict
from holdfast.core.event import Cause
from holdfast.core.lease import Lease
from holdfast.core.row import Instant, Key
from holdfast.engine.steps import with_token
from holdfast.engine.view import View
from holdfast.store.changes import Answer
from holdfast.store.needs import Needs

T = TypeVar("T")

Queue = tuple[str, str]
"""(account, type of task); type "" stands for all."""


class Once(msgspec.Struct, frozen=True):
    """An Idempotency-Key: the same request under it has one effect and one answer."""

    key: str
    fingerprint: str
    render: Callable[[Any], tuple[int, bytes]]
    """Status and body of an outcome; pure."""


class Command(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One request to change something. `decide` is pure: same view, same answer."""

    urgent: ClassVar[bool] = False
    """Holders' writes go before new work: a late renewal costs somebody their lease."""
    claims: ClassVar[str] = ""
    """The family of what it claims: job, lock, election or task; nothing if it is no claim."""

    account: str
    cause: Cause
    once: Once | None = None

    def needs(self) -> Needs:
        """What must be locked and loaded."""
        raise NotImplementedError  # pragma: no cover - every verb has its own

    def decide(self, view: View) -> T:
        """Read the view, change it, say what came of it; or raise Refused, and nothing was changed."""
        raise NotImplementedError  # pragma: no cover - every verb has its own

    def replay(self, view: View, answer: Answer) -> T | Replayed:  # noqa: ARG002 - grants look at the view
        """The answer to a repetition: what was answered the first time."""
        return Replayed(answer.status, answer.body.encode())

    def size(self) -> int:
        """About how many bytes it carries, so that a batch stays small."""
        return 0

    def line(self) -> Key | None:
        """The row in whose line it may wait, if it may wait at all."""
        return None

    def queues(self) -> tuple[Queue, ...]:
        """The queues of tasks in which it may wait for work, if it asks for any."""
        return ()

    def weight(self) -> int:
        """About how many rows it touches."""
        return 1

    def giving_way(self) -> Self:
        """Itself, for a caller without patience who finds others in line: it must not pass them."""
        return self

    def once_keys(self) -> tuple[tuple[str, str], ...]:
        """(account, Idempotency-Key) of everything it must find answered if it was asked before."""
        return () if self.once is None else ((self.account, self.once.key),)

    def all_needs(self) -> Needs:
        """What the verb needs, and the answer under its Idempotency-Key."""
        needs = self.needs()
        return needs if self.once is None else replace(needs, answers=self.once_keys())

    def run(self, view: View) -> T | Replayed:
        """Decide, or replay if this request was answered before."""
        if self.once is not None:
            answer = view.answer(self.account, self.once.key)
            if answer is not None:
                if answer.fingerprint != self.once.fingerprint:
                    raise IdempotencyConflict("this Idempotency-Key was used for a different request")
                return self.replay(view, answer)
        return self.decide(view)

    def remember(self, outcome: Any, now: Instant) -> Answer:
        """What to keep for whoever repeats this request."""
        assert self.once is not None
        status, body = self.once.render(outcome)
        return Answer(self.account, self.once.key, self.once.fingerprint, status, body.decode(), now)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a command, at the store's time."""

    waits: ClassVar[bool] = False
    """For a caller with patience this means: not yet."""

    now: Instant

    @property
    def binding(self) -> bool | None:
        """Whether whoever repeats the request must hear the same; None means: if it changed anything."""
        return False if self.waits else None

    def with_tokens(self, tokens: list[int]) -> Self:  # noqa: ARG002 - for those that show tokens
        """Itself, with the tokens that were drawn for it."""
        return self


class LeaseOutcome(Outcome, frozen=True):
    """What came of a command about one lease."""

    lease: Lease

    def with_tokens(self, tokens: list[int]) -> Self:
        """Itself, with the token that was drawn for it."""
        return self if self.lease.token >= 0 else replace(self, lease=with_token(self.lease, tokens))


class Held(LeaseOutcome, frozen=True):
    """Somebody else has it. For a caller with patience this means: stand in line."""

    waits = True


class Replayed(msgspec.Struct, frozen=True):
    """The answer that was given the first time."""

    status: int
    body: bytes
