"""A ticket: one command in the engine, and the sink that receives its reply."""

from __future__ import annotations

from typing import Any, Protocol

from holdfast.core.row import Key
from holdfast.engine.command import Command, Queue
from holdfast.engine.timer import Alarm


class Sink(Protocol):
    """Receiver of replies. A whole batch is delivered in one call."""

    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        """Hand each outcome, or the exception raised instead, to the caller that waits for it."""


class Ticket:
    """A command, the sink of its reply, and its state while it waits for a name or for a task."""

    __slots__ = (
        "alarm",
        "command",
        "deadline",
        "is_caller_gone",
        "is_last_try",
        "is_submitted",
        "is_waiting",
        "locked_until",
        "queues",
        "sink",
        "slot",
        "try_again",
        "wait_key",
        "waiting_command",
    )

    def __init__(self, command: Command[Any], sink: Sink, slot: Any = None, deadline: float | None = None) -> None:
        self.command = command
        self.waiting_command = command
        """The command to submit once the ticket waits in a queue, where it can overtake no other waiter."""
        self.sink = sink
        self.slot = slot
        self.deadline = deadline
        """Until when, by the monotonic clock, the caller is willing to wait; None if it does not wait."""
        self.wait_key: Key | None = None if deadline is None else command.wait_key()
        """The row it waits for, if it may wait for one."""
        self.queues: tuple[Queue, ...] = () if deadline is None else command.queues()
        """The task queues it waits for, if it may wait for tasks."""
        self.is_waiting = False
        self.alarm: Alarm | None = None
        """Submits the last try at the deadline."""
        self.is_last_try = False
        self.is_submitted = False
        """Whether its claim is in the engine: it must not be submitted a second time."""
        self.try_again = False
        """Whether new work arrived while its claim was in the engine."""
        self.locked_until: float | None = None
        """Until when it is tried again because another transaction has locked its rows; None if that never happened."""
        self.is_caller_gone = False
        """Whether the caller disconnected: the ticket must not wait any more."""
