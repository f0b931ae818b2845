"""The webhook dispatcher of a simulated server, one pass at a time, and the receiver of its messages.

It uses the log reader and the deliveries as the real dispatcher does; only its event loop and its sender are replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.core.row import SECOND
from holdfast.core.webhooks.delivery import AttemptResult, Delivery, FinishedAttempt, retry_wait
from holdfast.core.webhooks.webhook import ACTIVE, Webhook
from holdfast.store.contract.deliveries import Capacity
from holdfast.transport.webhooks.log_reader import LogReader

if TYPE_CHECKING:
    from tests.simulation.server import Server

RETRIES = (5.0, 20.0, 20.0)
CLAIM_TTL = 18 * SECOND


class Dispatcher:
    """Reads the log for each webhook, and sends what is due."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._store = server.world.database
        self._reader = LogReader(self._store)
        self._finished: list[FinishedAttempt] = []
        self._under_way: list[Delivery] = []

    def run(self) -> bool:
        """One pass; returns whether it did anything."""
        work = self._store.deliveries.pending_work(100)
        self._reader.forget_all_but(work.active)
        did = False
        if work.behind:
            read = self._reader.read_on(work.behind)
            did = read.found or read.more
        self._receive_answers()
        outcomes, self._finished = self._finished, []
        if not outcomes and not work.is_due and not did:
            return bool(self._under_way)
        capacity = Capacity({}, 8, 16, 64, CLAIM_TTL)
        for delivery in self._store.deliveries.save_outcomes_and_claim(outcomes, capacity):
            hook = self._store.rows.get((Webhook.table, *delivery.webhook_key))
            if isinstance(hook, Webhook) and hook.state == ACTIVE:
                self._server.world.receiver.receive(delivery)
                self._under_way.append(delivery)
            else:
                self._finished.append(FinishedAttempt(delivery, None))
        return True

    def _receive_answers(self) -> None:
        """The receiver's answers to what was sent in an earlier pass; an answer may be lost, or refuse the message."""
        for delivery in self._under_way:
            arrived = not self._server.world.faults.loses_message()
            result = AttemptResult(arrived=arrived, status=200 if arrived else 503)
            wait = None if arrived else retry_wait(delivery.attempts + 1, result, RETRIES, 0.5)
            self._finished.append(FinishedAttempt(delivery, result, wait))
        self._under_way = []


class Receiver:
    """What the receiver of all webhooks got: each message may arrive more than once, in order for each subject."""

    def __init__(self) -> None:
        self.first_of_subject: dict[tuple[str, str, str], list[int]] = {}
        """By webhook and subject: the numbers of the messages in the order of their first arrival."""
        self.repeated = 0

    def receive(self, delivery: Delivery) -> None:
        numbers = self.first_of_subject.setdefault(delivery.ordering_key, [])
        if delivery.seq in numbers:
            self.repeated += 1
        else:
            numbers.append(delivery.seq)
