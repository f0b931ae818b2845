"""Simulated clients: each does several things in turn, one request at a time, and retries what was not answered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core.errors import Refused, Trouble
from holdfast.core.principal import WORK_SCOPES, Principal
from holdfast.core.row import SECOND, Instant
from holdfast.engine.command import Command, Once, Replayed
from holdfast.engine.verbs.reservation_claims import Reserved
from tests.simulation.request import Operation, Request
from tests.support import ACCOUNT, CAUSE

if TYPE_CHECKING:
    from tests.simulation.world import World

TTL = 5 * SECOND
BASE: dict[str, Any] = {"account": ACCOUNT, "cause": CAUSE}


class Client:
    """A program that uses the servers. It may pause, crash and forget everything, or repeat what it sent."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.random = world.random
        self.number = number
        self.principal = Principal(ACCOUNT, f"id-{number}", version=1, name=f"client-{number}", scopes=WORK_SCOPES)
        self.activities: list[Activity] = []
        self.operation: Operation | None = None
        self.paused_until: Instant = 0
        self._ids = 0

    def __str__(self) -> str:
        return f"client {self.number}"

    def new_id(self, what: str) -> str:
        self._ids += 1
        return f"{what}-{self.number}-{self._ids}"

    def step(self) -> None:
        """Do the next thing."""
        faults = self.world.faults
        if self.paused_until > self.world.time.now:
            return
        if faults.happens(faults.client_crash):
            self.crash()
        elif faults.happens(faults.client_pause):
            self.paused_until = self.world.time.now + self.random.randrange(2 * TTL)
            self.world.note(self, "pauses")
        elif self.operation is not None:
            self._continue(self.operation)
        else:
            activity = self.random.choice(self.activities)
            operation = activity.next_operation()
            if operation is not None:
                self.operation = operation
                self._send(operation)

    def crash(self) -> None:
        """Forget everything; what it holds is renewed by nobody."""
        self.world.note(self, "crashes and forgets what it holds")
        self.operation = None
        for activity in self.activities:
            activity.forget()

    def _continue(self, operation: Operation) -> None:
        """Send it again if it got no answer; a client may also lose patience and send it again, or give it up."""
        if not operation.must_retry and self.random.random() > 0.15:
            return
        if operation.tries < 4 and (operation.command.once is not None or self.random.random() < 0.3):
            self._send(operation)
        elif not operation.wait_seconds or operation.must_retry:
            self.operation = None

    def _send(self, operation: Operation) -> None:
        operation.tries += 1
        operation.must_retry = False
        self.world.network.send(self, operation)

    def receive(self, request: Request, outcome: Any) -> None:
        """An answer arrived; one to an operation that was given up is ignored."""
        operation = request.operation
        if operation is not self.operation:
            return
        if isinstance(outcome, Trouble):
            operation.must_retry = True
            return
        self.operation = None
        if operation.activity is not None:
            operation.activity.receive(request.command, outcome)


class Activity(ABC):
    """One kind of thing that a client does."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.random = client.random

    @abstractmethod
    def next_operation(self) -> Operation | None:
        """What the client does next; None if it has nothing to do."""

    def receive(self, command: Command[Any], outcome: Any) -> None:  # noqa: B027 - some activities learn nothing
        """Learn from an answer."""

    def forget(self) -> None:  # noqa: B027 - some activities remember nothing
        """The client crashed."""

    def operation(self, command: Command[Any], wait_seconds: float = 0.0, by: Principal | None = None) -> Operation:
        return Operation(self, command, wait_seconds, by)

    def maybe_once(self, chance: float = 0.4) -> Once | None:
        """An Idempotency-Key of its own, or none."""
        return Once(self.client.new_id("key"), "body", render) if self.random.random() < chance else None


def render(outcome: Any) -> tuple[int, bytes]:
    """The stored answer: what a client needs from it, and nothing that a replay may not show."""
    if isinstance(outcome, Reserved):
        return 200, msgspec.json.encode({"reservation_id": outcome.row.id, "lease_id": outcome.lease_id})
    if hasattr(outcome, "lease_id"):
        return 200, msgspec.json.encode({"job_id": outcome.lease.id, "lease_id": outcome.lease_id})
    if hasattr(outcome, "taken"):
        return 200, ",".join(f"{each.task.id}={each.lease_id}" for each in outcome.taken).encode()
    return 200, type(outcome).__name__.encode()


def is_granted(outcome: Any) -> bool:
    return not isinstance(outcome, Refused | Replayed)
