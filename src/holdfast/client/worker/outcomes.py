"""Reports how tasks ended. Outcomes that are ready at the same moment are sent in one request."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError, Invalid, error_of
from holdfast.client.leases.types import COMPLETE_SECONDS, TaskLease
from holdfast.operations.bounds import BATCH_ITEMS

log = logging.getLogger("holdfast.worker")


class Outcome(NamedTuple):
    """How the attempt at a task ended."""

    lease: TaskLease
    verb: str
    """`complete`, `fail` or `release`."""
    fields: dict[str, Any]
    """Fields of the operation."""

    @classmethod
    def of_handler(cls, lease: TaskLease, error: BaseException | None) -> Outcome:
        """The outcome of a handler that returned or raised. A result that is not JSON is a failure."""
        try:
            verb, fields = lease.outcome(error)
            msgspec.json.encode(fields)
        except Exception as problem:  # noqa: BLE001 - what cannot be sent fails this attempt, and no other
            verb, fields = lease.outcome(problem)
        return cls(lease, verb, lease.terms.proof | lease.handover | fields)

    @classmethod
    def release(cls, lease: TaskLease) -> Outcome:
        """The task goes back to its queue, and the attempt is not counted."""
        return cls(lease, "release", lease.terms.proof | lease.handover)


class Outcomes:
    """A thread that reports outcomes. It never waits for more: what gathers during a request goes with the next.

    `on_reported` is called with the tasks of each report, whether it was accepted or not.
    """

    def __init__(self, client: Client, on_reported: Callable[[list[TaskLease]], None]) -> None:
        self._client = client
        self._on_reported = on_reported
        self._changed = threading.Condition()
        self._waiting: list[Outcome] = []
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="holdfast-worker-outcomes", daemon=True)
        self._thread.start()

    def add(self, outcome: Outcome) -> None:
        """Report an outcome soon."""
        with self._changed:
            self._waiting.append(outcome)
            self._changed.notify()

    def close(self, timeout: float) -> None:
        """Stop after the outcomes that were added before, and wait for that."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(timeout)

    def report(self, outcomes: list[Outcome]) -> None:
        """Report outcomes now, in this thread."""
        unsettled = [outcome for outcome in outcomes if not outcome.lease.is_settled]
        try:
            if len(unsettled) > 1:
                self._report_together(unsettled)
            else:
                self._report_separately(unsettled)
        except Exception:  # such as an answer of a proxy: the worker goes on
            log.exception("the outcomes of %d tasks were perhaps not recorded", len(unsettled))
        leases = [outcome.lease for outcome in outcomes]
        self._client.renewals.discard(*leases)  # a task whose outcome was not recorded is free after its lease
        self._on_reported(leases)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._is_closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                outcomes, self._waiting = self._waiting[: BATCH_ITEMS.most], self._waiting[BATCH_ITEMS.most :]
            self.report(outcomes)

    def _report_together(self, outcomes: list[Outcome]) -> None:
        items = [{"op": outcome.verb, **outcome.fields} for outcome in outcomes]
        try:
            document = self._client.call("batch_tasks", items=items, deadline=COMPLETE_SECONDS)
        except Invalid:  # all of them together are too large
            self._report_separately(outcomes)
        except HoldfastError as error:
            for outcome in outcomes:
                _log_failure(outcome, error)
        else:
            for outcome, result in zip(outcomes, document["results"], strict=True):
                self._take_result(outcome, result)

    def _take_result(self, outcome: Outcome, result: dict[str, Any]) -> None:
        """What the answer to a batch says about one task: a refusal concerns no other."""
        if result["status"] >= HTTPStatus.BAD_REQUEST:
            _log_failure(outcome, error_of(result["status"], result, {}))
        else:
            outcome.lease.is_settled = True

    def _report_separately(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            try:
                self._client.call(f"{outcome.verb}_task", **outcome.fields, deadline=COMPLETE_SECONDS)
            except HoldfastError as error:
                _log_failure(outcome, error)
            else:
                outcome.lease.is_settled = True


def _log_failure(outcome: Outcome, error: HoldfastError) -> None:
    log.warning("the outcome of %s was not recorded: %s", outcome.lease.terms.what, error)
