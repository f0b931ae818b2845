"""One run of a worker, from its start until it is stopped.

One thread claims as many tasks as there are free places, one thread for each place runs handlers, and one thread
reports their outcomes. A claim and a report are one request each, for one task or for many.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import AuthError, CancelRequested, HoldfastError, Invalid, LeaseLost
from holdfast.client.leases.claims import TaskClaim
from holdfast.client.leases.types import TaskLease
from holdfast.client.retry import CLOSED, FIRST_PAUSE, LONGEST_PAUSE, doubled
from holdfast.client.tracing import is_recording, processing
from holdfast.client.worker.claims import CLAIM_SECONDS, AbandonableClaims
from holdfast.client.worker.errors import Asked
from holdfast.client.worker.handlers import POLL_SECONDS, Handler
from holdfast.client.worker.outcomes import Outcome, Outcomes

WAIT_SECONDS = 20.0
"""How long one claim waits for a task."""
PLAN_IS_FULL = "max_workers_reached"
"""Code of the refusal of a plan that allows to hold no more tasks: the next one can be claimed when a task ends."""
STOP_SECONDS = 1.0
"""How long handlers of released tasks have to stop. A plain function that never checks runs until the process ends."""

log = logging.getLogger("holdfast.worker")


class WorkerRun:
    """The threads and the tasks of one run. A handler that outlives it acts on nothing of the next one."""

    def __init__(
        self,
        client: Client,
        handlers: dict[str, Handler],
        name: str,
        *,
        concurrency: int,
        drain_seconds: float,
        until_idle: bool,
        capabilities: list[str],
    ) -> None:
        self._client = client
        self._handlers = handlers
        self._name = name
        self._concurrency = concurrency
        self._drain_seconds = drain_seconds
        self._until_idle = until_idle
        self._more: dict[str, Any] = {"capabilities": capabilities} if capabilities else {}
        self.started = 0
        """How many tasks were given to their handlers."""
        self._stopping = threading.Event()
        self._places = threading.Condition()
        """Notified when a task has ended."""
        self._running: set[TaskLease] = set()
        """Tasks that take a place: from their claim until their outcome is recorded."""
        self._claimed: queue.SimpleQueue[TaskLease | None] = queue.SimpleQueue()
        """Tasks to run; None ends a thread."""
        self._claims = AbandonableClaims(client)
        self._error: Exception | None = None
        self._is_interrupted = False

    def work(self) -> None:
        """Claim and run tasks until `stop()`, then finish the running ones. Raises the error that ended it."""
        self._outcomes = Outcomes(self._client, self._free_places)
        self._loop = asyncio.new_event_loop()
        loop = _start_thread(self._loop.run_forever, "loop")
        runners = [_start_thread(self._run_tasks, str(number)) for number in range(self._concurrency)]
        self._claimer = _start_thread(self._claim_tasks, "claims")
        while not self._is_interrupted and not self._stopping.wait(POLL_SECONDS):
            pass
        self.stop()
        self._drain(runners)
        asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        loop.join()
        self._loop.close()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Claim no more tasks; `work()` returns when the running ones are done."""
        self._stopping.set()
        self._claims.abandon()
        with self._places:
            self._places.notify_all()

    def interrupt(self) -> None:
        """Stop soon. Only a flag is set: a signal, which calls this, may interrupt any code."""
        self._is_interrupted = True

    # -- claiming ------------------------------------------------------------------------------------------------

    def _claim_tasks(self) -> None:
        """Claim as many tasks as there are free places, whenever there are any."""
        failures = 0
        while (held := self._wait_until_fewer(self._concurrency)) is not None:
            try:
                has_claimed = self._claim(self._concurrency - held)
                failures = 0
            except HoldfastError as error:
                if self._ends_run(error):
                    self._end(error)
                    return
                log.warning("cannot claim a task: %s", error)
                self._pause(held if error.code == PLAN_IS_FULL else 0, failures, error.retry_after or 0.0)
                failures += 1
            except Exception as error:
                log.exception("cannot claim a task")
                if self._until_idle:
                    self._end(error)
                    return
                self._pause(0, failures)
                failures += 1
            else:
                if self._until_idle and not has_claimed:
                    self._look_again_after(held)

    def _end(self, error: Exception) -> None:
        """End the run with an error."""
        self._error = error
        self.stop()

    def _pause(self, most: int, failures: int, seconds: float = 0.0) -> None:
        """Wait before the next claim: longer after each failure, but only until fewer than `most` are held."""
        self._wait_until_fewer(most, seconds + random.uniform(0.0, doubled(FIRST_PAUSE, failures, LONGEST_PAUSE)))

    def _ends_run(self, error: HoldfastError) -> bool:
        """Whether a refused claim ends the run: retrying does not help, or nobody waits for tasks that come later."""
        if isinstance(error, AuthError | Invalid) or error.code == CLOSED:
            return True
        return self._until_idle and error.code != PLAN_IS_FULL

    def _look_again_after(self, held: int) -> None:
        """No task was ready. The end of one of the `held` tasks may make others ready; with none, this is idle."""
        if held == 0:
            self.stop()
        else:
            self._wait_until_fewer(held)

    def _wait_until_fewer(self, most: int, seconds: float | None = None) -> int | None:
        """Wait until fewer than `most` tasks are held, or for some seconds; how many are. None after `stop()`."""
        with self._places:
            self._places.wait_for(lambda: self._stopping.is_set() or len(self._running) < most, seconds)
            return None if self._stopping.is_set() else len(self._running)

    def _claim(self, limit: int) -> bool:
        """Claim tasks and hand each to a thread that waits for one; whether there were any."""
        claim = TaskClaim(tuple(self._handlers), self._name, self._more)
        leases = self._claims.claim(claim, limit, 0.0 if self._until_idle else WAIT_SECONDS)
        if not leases:
            return False
        if not self._stopping.is_set():
            self._client.renewals.renew_stale(leases)
        if self._stopping.is_set():
            self._outcomes.report([Outcome.release(lease) for lease in leases])
            return True
        try:
            self._client.renewals.add(*leases)
        except BaseException:  # such as no more threads: nobody would renew or run them
            self._outcomes.report([Outcome.release(lease) for lease in leases])
            raise
        with self._places:
            self._running.update(leases)
            self.started += len(leases)
        for lease in leases:
            self._claimed.put(lease)
        return True

    def _free_places(self, leases: list[TaskLease]) -> None:
        with self._places:
            self._running.difference_update(leases)
            self._places.notify_all()

    # -- running -------------------------------------------------------------------------------------------------

    def _run_tasks(self) -> None:
        """Run one task after the other. A child that a handler forked ends here: it reports and takes no tasks."""
        process = os.getpid()
        while (lease := self._claimed.get()) is not None:
            with processing(lease.document):
                outcome = self._run_task(lease)
                if os.getpid() != process:
                    return
                if is_recording():  # within the trace of this task, to which no other outcome belongs
                    self._outcomes.report([outcome])
                else:
                    self._outcomes.add(outcome)

    def _run_task(self, lease: TaskLease) -> Outcome:
        try:
            lease.result = self._handlers[lease.document["type"]].run(lease, self._loop)
        except BaseException as raised:
            if not isinstance(raised, CancelRequested | LeaseLost | Asked):
                log.info("%s failed", lease.terms.what, exc_info=raised)
            return Outcome.of_handler(lease, raised)
        return Outcome.of_handler(lease, None)

    # -- shutdown ------------------------------------------------------------------------------------------------

    def _drain(self, runners: list[threading.Thread]) -> None:
        until = time.monotonic() + self._drain_seconds
        self._claimer.join(CLAIM_SECONDS)  # it would claim what is released
        with self._places:
            self._places.wait_for(lambda: not self._running, max(0.0, until - time.monotonic()))
            late = list(self._running)
        self._outcomes.report([Outcome.release(lease) for lease in late])
        for lease in late:
            if lease.is_settled:  # its handler, which still runs, must stop
                lease.state.refused(LeaseLost(f"{lease.terms.what} was returned to its queue"))
        for _ in runners:
            self._claimed.put(None)
        until = time.monotonic() + CLAIM_SECONDS + STOP_SECONDS
        for runner in runners:
            runner.join(max(0.0, until - time.monotonic()))
        self._outcomes.close(max(0.0, until - time.monotonic()))


def _start_thread(target: Callable[[], Any], name: str) -> threading.Thread:
    thread = threading.Thread(target=target, name=f"holdfast-worker-{name}", daemon=True)
    thread.start()
    return thread


async def _cancel_all() -> None:
    """Cancel everything that still runs on the event loop."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=STOP_SECONDS)
