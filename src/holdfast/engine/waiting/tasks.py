"""Waiters for tasks: n new tasks wake the first n tickets, in order of arrival.

Unlike for names, several tickets may be served at once, and one ticket may wait for several task types. A try that
finds nothing keeps its position. A task wakes only tickets that have all the capabilities that it requires. A task
that has just failed goes to its own worker only if no other waits.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count, islice
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from holdfast.core.task.capabilities import may_take
from holdfast.engine.command import Offered, Outcome, Queue
from holdfast.engine.ticket import Ticket
from holdfast.engine.timer import Timer
from holdfast.engine.verbs.tasks.claiming import ClaimTasks, Empty
from holdfast.engine.waiting.waiters import Deliver, SetWaiting, Submit, Waiters

Kind = tuple[str, str, str]
"""(account, task type, capabilities) of tickets that wait."""

Workers = Mapping[Offered, Collection[str]]
NO_WORKERS: Workers = MappingProxyType({})
MORE_PROBES = 2
"""How many tickets try next after a probe found work of another process."""


class TaskWaiters(Waiters):
    """Every caller of this process that waits for tasks."""

    def __init__(self, submit: Submit, deliver: Deliver, set_waiting: SetWaiting, timer: Timer) -> None:
        super().__init__(submit, deliver, set_waiting, timer)
        self._waiting: dict[Queue, dict[str, dict[Ticket, int]]] = {}
        """The tickets of each queue, by their capabilities, with their positions."""
        self._positions: dict[Ticket, int] = {}
        self._woken_for: dict[Ticket, Offered] = {}
        """The queue whose new task a ticket was woken for, until its claim is answered, also if its caller has left."""
        self._probes: set[Ticket] = set()
        """Tickets that try because another process may have created tasks."""
        self._owed: dict[Ticket, Offered] = {}
        """The queue whose new task belongs to a ticket that was trying already, for another reason."""
        self._owed_probes: set[Ticket] = set()
        """Tickets that were trying when another process may have created tasks."""
        self._arrivals = count()
        self._closed: set[Queue] = set()
        """Queues that were paused or full, or had full keys or tasks whose deadline had passed, when a waiting claim
        looked into them."""

    def handle_not_granted(self, ticket: Ticket, outcome: Outcome) -> None:
        """Handle a claim that found no task: it waits for those that require no more than it was made with."""
        if isinstance(outcome, Empty):
            closed = {(ticket.command.account, name) for name in outcome.closed}
            if not ticket.is_waiting:
                ticket.capabilities = outcome.capabilities
            elif not closed <= self._closed:  # a place that became free during this try was not reported to it
                ticket.try_again = True
            self._closed |= closed
        super().handle_not_granted(ticket, outcome)

    def offer(self, queues: Mapping[Offered, int], failing: Workers = NO_WORKERS) -> None:
        """Wake as many tickets as there are new tasks; those of workers that have just failed one come last."""
        with self._lock:
            tries = self._wake(queues, failing)
        self._submit_all(tries)

    @property
    def is_empty(self) -> bool:
        """Whether nobody waits; read without the lock."""
        return not self._waiting

    def join(self, queues: Mapping[Offered, int], most: int, once_keys: set[tuple[str, str]]) -> list[Ticket]:
        """The first tickets for tasks that a batch is about to create, at most so many: they claim in that batch.

        Behind a ticket that is trying already nobody joins: the task is for that one. `once_keys` are those of the
        batch, in which no two commands may have the same.
        """
        with self._lock:
            joined: list[Ticket] = []
            for queue, count in queues.items():
                joined += self._join(queue, min(count, most - len(joined)), once_keys)
            return joined

    def reopen(self, queues: Mapping[Queue, int]) -> None:
        """Wake tickets for the places that became free in queues or keys that were full, or whose settings changed.

        Or for tasks that those behind which they stood no longer hide.
        """
        if self._closed.isdisjoint(queues):
            return
        with self._lock:
            reopened = {queue: max(places, 1) for queue, places in queues.items() if queue in self._closed}
            self._closed.difference_update(reopened)
            names = {queue: ((queue[0], name) for name in (queue[1], "")) for queue in reopened}
            kinds = {
                (*queue, capabilities): places
                for queue, places in reopened.items()
                for waited_for in names[queue]
                for capabilities in self._waiting.get(waited_for, ())
            }
            tries = self._wake_probes(kinds)
        self._submit_all(tries)

    def kinds(self, account: str) -> list[tuple[str, str]]:
        """(type, capabilities) of the callers of an account that wait; the type is empty if any will do."""
        with self._lock:
            return [
                (name, words) for (owner, name), sets in self._waiting.items() if owner == account for words in sets
            ]

    def probe(self) -> None:
        """Wake one ticket of each kind: another process may have created tasks of any type."""
        with self._lock:
            kinds = [(*queue, capabilities) for queue, alike in self._waiting.items() for capabilities in alike]
            tries = self._wake_probes(dict.fromkeys(kinds, 1))
        self._submit_all(tries)

    def _wake(self, queues: Mapping[Offered, int], failing: Workers = NO_WORKERS) -> list[Ticket]:
        woken = []
        for queue, limit in queues.items():
            owed = self._owe(queue, limit)
            woken += self._first(queue, limit - owed, failing.get(queue, ()))
        return woken

    def _wake_probes(self, kinds: Mapping[Kind, int]) -> list[Ticket]:
        """Let the first tickets of each kind try, or try once more: later ones must not overtake them."""
        woken = []
        for kind, limit in kinds.items():
            for ticket in islice(self._alike(kind), limit):
                if ticket.is_submitted:
                    ticket.try_again = True
                    self._owed_probes.add(ticket)
                else:
                    ticket.is_submitted = True
                    self._probes.add(ticket)
                    woken.append(ticket)
        return woken

    def _probed_by(self, ticket: Ticket) -> Iterable[Kind]:
        """The kinds of tickets that one stood for: one that waits for any type stood for those of every type."""
        account = ticket.command.account
        queues: Iterable[Queue] = ticket.queues
        if (account, "") in ticket.queues:
            queues = [queue for queue in self._waiting if queue[0] == account]
        return [(*queue, ticket.capabilities) for queue in queues]

    def _owe(self, queue: Offered, limit: int) -> int:
        """Let the first tickets try once more that try already and were woken for no task; returns how many.

        Otherwise a task that arrives during a probe would go to a ticket that arrived later.
        """
        owed = 0
        for ticket in self._in_order(queue):
            if owed == limit or not ticket.is_submitted:
                break
            if not (ticket in self._woken_for or ticket in self._owed or ticket.is_last_try):
                self._owed[ticket] = queue
                ticket.try_again = True
                owed += 1
        return owed

    def _join(self, queue: Offered, limit: int, once_keys: set[tuple[str, str]]) -> list[Ticket]:
        joined: list[Ticket] = []
        for ticket in self._in_order(queue):
            if len(joined) == limit:
                break
            if ticket in self._woken_for or ticket in self._owed or ticket.is_last_try:
                continue  # it has a task of its own, or waits no longer
            keys = ticket.command.once_keys()
            if ticket.is_submitted or not once_keys.isdisjoint(keys):
                break
            once_keys.update(keys)
            ticket.is_submitted = True
            joined.append(ticket)
        return joined

    def _first(self, queue: Offered, limit: int, failing: Collection[str]) -> list[Ticket]:
        """Take the first idle tickets, in order of arrival, that wait for this type."""
        idle: list[Ticket] = []
        last: list[Ticket] = []
        busy: list[Ticket] = []
        for ticket in self._in_order(queue):
            if len(idle) == limit:
                break
            if ticket.is_submitted:
                busy.append(ticket)
            else:
                (last if _worker(ticket) in failing else idle).append(ticket)
        idle += last[: limit - len(idle)]
        for ticket in idle:
            ticket.is_submitted = True
            self._woken_for[ticket] = queue
        if len(idle) < limit:  # more tasks than idle tickets: the busy tickets try once more
            for ticket in busy:
                ticket.try_again = True
        return idle

    def _in_order(self, queue: Offered) -> Iterator[Ticket]:
        """The tickets that wait for this type or for any and have what its tasks require, in order of arrival."""
        account, task_type, requires = queue
        return _merge(
            tickets
            for name in {task_type, ""}
            for capabilities, tickets in self._waiting.get((account, name), {}).items()
            if may_take(capabilities, requires)
        )

    def _alike(self, kind: Kind) -> Iterator[Ticket]:
        """The tickets that wait for this type or for any with exactly these capabilities, in order of arrival."""
        account, task_type, capabilities = kind
        return _merge(self._waiting.get((account, name), {}).get(capabilities, {}) for name in {task_type, ""})

    def _tickets(self) -> Iterable[Ticket]:
        return self._positions

    def _enqueue(self, ticket: Ticket) -> list[Ticket]:
        kinds = [(*queue, ticket.capabilities) for queue in ticket.queues]
        has_idle = all(any(not each.is_submitted for each in self._alike(kind)) for kind in kinds)
        self._positions[ticket] = position = next(self._arrivals)
        for queue in ticket.queues:
            self._waiting.setdefault(queue, {}).setdefault(ticket.capabilities, {})[ticket] = position
        if has_idle:
            return []  # a task that was offered before this ticket waited woke an earlier one
        # A task that was offered before this ticket waited woke no ticket: try once more.
        ticket.is_submitted, ticket.try_again = True, False
        return [ticket]

    def _dequeue(self, ticket: Ticket) -> list[Ticket]:
        owed = self._owed.pop(ticket, None)
        del self._positions[ticket]
        for queue in ticket.queues:
            alike = self._waiting[queue]
            del alike[ticket.capabilities][ticket]
            if not alike[ticket.capabilities]:
                del alike[ticket.capabilities]
            if not alike:
                del self._waiting[queue]
        # Its try may have been too early for that task, or have found another one.
        tries = [] if owed is None else self._wake({owed: 1})
        if ticket in self._owed_probes:
            self._owed_probes.discard(ticket)
            tries += self._wake_probes(dict.fromkeys(self._probed_by(ticket), 1))
        return tries

    def _keep_waiting(self, ticket: Ticket) -> list[Ticket]:
        if ticket in self._owed:
            self._woken_for[ticket] = self._owed.pop(ticket)
        if ticket in self._owed_probes:
            self._owed_probes.discard(ticket)
            self._probes.add(ticket)
        ticket.is_submitted, ticket.try_again = ticket.try_again, False
        return [ticket] if ticket.is_submitted else []

    def _clear_wakeup(self, ticket: Ticket) -> None:
        self._probes.discard(ticket)
        self._woken_for.pop(ticket, None)

    def _mark_out_of_turn(self, ticket: Ticket) -> None:
        """Do nothing: `is_submitted` of the ticket is the only record."""

    def _settle(self, ticket: Ticket, outcome: Any) -> list[Ticket]:
        """Remove the ticket; a task it was woken for and did not take is offered to the next one.

        Where a probe found work of another process there may be more.
        """
        woken_for = self._woken_for.pop(ticket, None)
        tries = self._remove(ticket)
        if ticket in self._probes:
            self._probes.discard(ticket)
            tries += self._wake_probes(dict.fromkeys(self._probed_by(ticket), MORE_PROBES))
        if woken_for is not None and not _took_from(outcome, woken_for):
            tries += self._wake({woken_for: 1})
        return tries


def _took_from(outcome: Any, queue: Offered) -> bool:
    """Whether a claim took any of these tasks."""
    taken = getattr(outcome, "taken", ())
    return any((each.task.type, each.task.requires or "") == queue[1:] for each in taken)


def _worker(ticket: Ticket) -> str | None:
    return ticket.command.worker if isinstance(ticket.command, ClaimTasks) else None


def _merge(groups: Iterable[Mapping[Ticket, int]]) -> Iterator[Ticket]:
    """The tickets of several groups, in order of arrival."""
    return map(itemgetter(0), heapq.merge(*(tickets.items() for tickets in groups), key=itemgetter(1)))
