"""A ticket: one command in the engine, the sink that receives its reply, and how its caller's thread is reached."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from holdfast.core.errors import Refused, UnknownKey
from holdfast.core.principal import Principal, accepts_key
from holdfast.core.row import Instant, Key
from holdfast.engine.command import Command, Queue
from holdfast.engine.timer import Alarm
from holdfast.engine.view import View
from holdfast.store.needs import Needs

log = logging.getLogger("holdfast.engine")

RunSoon = Callable[[Callable[[], None]], Any]
"""Calls a function on the caller's thread, soon: after what is ready there, so that one batch takes all of it."""


class Sink(Protocol):
    """Receiver of replies. A whole batch is delivered in one call."""

    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        """Hand each outcome, or the exception raised instead, to the caller that waits for it."""


class CallerKey(NamedTuple):
    """The key of a caller that waits: a claim that waited is granted only if its key still works then."""

    account: str
    principal: str
    key_hash: str

    def check(self, row: Principal | None, now: Instant) -> None:
        """Refuse a key that was revoked, rotated away or deleted with its account, or that has expired."""
        if row is None or not accepts_key(row, self.key_hash, now):
            raise UnknownKey("this key stopped working while its request waited")


class Ticket:
    """A command, the sink of its reply, and its state while it waits for a name or for a task.

    What only waiting callers set is an attribute of the class: setting all for each command took a microsecond.
    """

    capabilities = ""
    """What its worker can do, if it waits for tasks."""
    conflicting_ids: frozenset[str] = frozenset()
    """The ids of the conflicting reservations."""
    place: str | None = None
    """The row by which it waits for a reservation."""
    is_waiting = False
    arrival = 0
    """Its place in the queue of a name: smaller numbers are served first."""
    alarm: Alarm | None = None
    """Submits the last try at the deadline."""
    is_last_try = False
    is_submitted = False
    """Whether its claim is in the engine: it must not be submitted a second time."""
    try_again = False
    """Whether new work arrived while its claim was in the engine."""
    locked_until: float | None = None
    """Until when it is tried again because another transaction has locked its rows; None if that never happened."""
    is_caller_gone = False
    """Whether the caller disconnected: the ticket must not wait any more."""
    wait_keys: tuple[Key, ...] = ()
    """The rows it waits for, if it may wait for a name."""
    queues: tuple[Queue, ...] = ()
    """The task queues it waits for, if it may wait for tasks."""
    space: tuple[str, str] | None = None
    """(account, space) in which it waits, if it may wait for a reservation."""

    def __init__(
        self,
        command: Command[Any],
        sink: Sink,
        slot: Any = None,
        deadline: float | None = None,
        key: CallerKey | None = None,
    ) -> None:
        self.command = command
        self.waiting_command = command
        """The command to submit once the ticket waits in a queue, where it can overtake no other waiter."""
        self.sink = sink
        self.slot = slot
        self.deadline = deadline
        """Until when, by the monotonic clock, the caller is willing to wait; None if it does not wait."""
        self.key = key
        """The caller's key, to be checked again after a wait; None for callers without one."""
        if deadline is not None:
            self.wait_keys = command.wait_keys()
            self.queues = command.queues()
            self.space = command.space_waited_for()

    def needs(self) -> Needs:
        """The rows to load for its command; after a wait, also the caller's key."""
        needs = self.command.all_needs()
        if self.key is None or not self.is_waiting:
            return needs
        return replace(needs, rows=(*needs.rows, (Principal.table, self.key.account, self.key.principal)))

    def run(self, view: View) -> Any:
        """Run its command; after a wait, only if the caller's key still works.

        A caller that has left gets nothing: it may have asked again, and found nothing.
        """
        if self.is_caller_gone:
            raise Refused("the caller has left")
        if self.key is not None and self.is_waiting:
            self.key.check(view.find(Principal, self.key.account, self.key.principal), view.now)
        return self.command.run(view, may_wait=self.deadline is not None and not self.is_last_try)


def deliver(replies: list[tuple[Ticket, Any]]) -> None:
    """Deliver all replies of a sink in one call. A sink that fails does not affect the others."""
    by_sink: dict[int, list[tuple[Ticket, Any]]] = {}
    for reply in replies:
        by_sink.setdefault(id(reply[0].sink), []).append(reply)
    for group in by_sink.values():
        try:
            group[0][0].sink.deliver(group)
        except Exception:
            log.exception("%d replies could not be delivered", len(group))


class FutureSink:
    """Sink for callers that block on a future."""

    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        """Set the result of each future, or the exception raised instead."""
        for ticket, outcome in replies:
            if isinstance(outcome, BaseException):
                ticket.slot.set_exception(outcome)
            else:
                ticket.slot.set_result(outcome)


class _NoSink:
    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        pass


NO_SINK = _NoSink()
"""Sink of commands whose replies nobody needs."""


def run_now(run: Callable[[], None]) -> None:
    """Call a function at once: for callers without an event loop."""
    run()
