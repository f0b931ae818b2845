"""Dispatcher: a background thread that reads the event log for every webhook and sends the deliveries it finds.

It has its own event loop, so a slow receiver delays no other; and it writes few small transactions outside the lanes,
so that commands do not wait for it. Any number of servers share the work: a delivery that one server has claimed is
left alone by the others until the claim expires.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.core.errors import HoldfastError
from holdfast.core.event import Cause
from holdfast.core.row import SECOND
from holdfast.core.webhooks.delivery import AttemptResult, Delivery, FinishedAttempt, WebhookKey, retry_wait
from holdfast.core.webhooks.webhook import ACTIVE, Webhook, retry_schedule
from holdfast.engine.change_signal import account_log_key
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.webhooks import DisableWebhook
from holdfast.settings import Settings
from holdfast.store.contract.deliveries import START, Capacity, PendingWork
from holdfast.store.contract.reads import usable_row
from holdfast.telemetry import metric_names
from holdfast.transport.webhooks.log_reader import LogReader, ReadResult

if TYPE_CHECKING:
    from holdfast.transport.webhooks.sender import Sender

PER_HOOK, PER_ACCOUNT, IN_ALL = 8, 16, 64
"""Attempts that run at once: to one webhook, for one account, and from one server."""
HOOKS_PER_PASS = 256
POLL_SECONDS = 1.0
"""How often commits of other servers, and deliveries whose claim has expired, are looked up."""
IDLE_SECONDS = 2.0
PASS_SECONDS = 0.02
"""Minimum time between passes, so that a busy log is read in pages and not event by event."""
TIMER_LIMIT = 60 * SECOND
"""Retries due sooner than this get a timer; later ones are found by polling."""
ERROR_SECONDS = 1.0
MARGIN_SECONDS = 3.0
"""How much longer a delivery is claimed than an attempt can take."""
STOP_SECONDS = 2.0
STUCK_SECONDS = 60.0
"""`/readyz` reports the loop as stuck if its last pass was longer ago than this."""

log = logging.getLogger("holdfast.webhooks")

T = TypeVar("T")

_CAUSE = Cause("webhooks", "")
_jitter = random.SystemRandom()


class Dispatcher:
    """Sends deliveries until it is stopped."""

    def __init__(self, engine: Engine, settings: Settings, sender: Callable[[Settings], Sender] | None = None) -> None:
        self._engine = engine
        self._settings = settings
        self._make_sender = sender or _make_sender
        self._sender: Sender | None = None
        self._reader = LogReader(engine.store)
        self._deliveries = engine.store.deliveries
        self._outcomes: list[FinishedAttempt] = []
        self._attempts: dict[asyncio.Task[None], WebhookKey] = {}
        self._after = START
        self._has_more = False
        """Whether a webhook of this round has more to read."""
        self._listening: set[str] = set()
        self._is_signalled = False
        self._stopping = False
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-webhooks", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._engine.loop_heartbeats.expect("webhooks", STUCK_SECONDS)
        self._thread.start()
        self._started.wait()

    def stop(self) -> None:
        """Wait a moment for running attempts, then cancel the rest, which other servers may claim at once."""
        self._stopping = True
        self.wake()
        self._thread.join()

    def wake(self) -> None:
        """Start a pass soon. Thread-safe, and cheap when it has been called before since the last pass."""
        if not self._is_signalled:
            self._is_signalled = True
            with suppress(RuntimeError):  # the event loop has just been closed
                self._loop.call_soon_threadsafe(self._signal.set)

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        self._loop, self._signal = asyncio.get_running_loop(), asyncio.Event()
        self._store_thread = ThreadPoolExecutor(1, thread_name_prefix="holdfast-webhook-store")
        self._started.set()
        while not self._stopping:
            began = self._loop.time()
            if self._after == START:  # a signal during a round also concerns webhooks that the round has passed
                self._is_signalled = False
                self._signal.clear()
            wait = await self._try_pass()
            await asyncio.sleep(max(began + PASS_SECONDS - self._loop.time(), 0))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._signal.wait(), wait)
        await self._shut_down()

    async def _try_pass(self) -> float:
        """Run one pass; returns the seconds to wait before the next one."""
        try:
            wait = await self._pass()
        except HoldfastError as error:
            log.warning("webhook deliveries are delayed: %s", error.message)
        except Exception:
            log.exception("webhook deliveries are delayed")
        else:
            self._engine.loop_heartbeats.beat("webhooks")
            return wait
        return ERROR_SECONDS

    async def _pass(self) -> float:
        work = await self._in_store_thread(self._deliveries.pending_work, HOOKS_PER_PASS, self._after)
        self._listen(work)
        self._reader.forget_all_but(work.active)
        read = ReadResult(found=False, more=False)
        if work.behind:
            read = await self._in_store_thread(self._reader.read_on, work.behind)
        if read.found or work.is_due or self._outcomes:
            await self._exchange(IN_ALL - len(self._attempts))
        if self._is_round_open(work, read):
            return 0.0
        return POLL_SECONDS if work.active or self._attempts else IDLE_SECONDS

    def _is_round_open(self, work: PendingWork, read: ReadResult) -> bool:
        """Whether another pass is needed at once.

        A round reads a page of the log for every webhook that is behind, one page of webhooks per pass.
        """
        is_full = len(work.behind) == HOOKS_PER_PASS
        has_more = self._has_more or read.more
        last = work.behind[-1].hook if is_full else None
        self._after = START if last is None else (last.account, last.id)
        self._has_more = is_full and has_more
        return is_full or has_more

    async def _exchange(self, capacity: int) -> None:
        """Save the results of finished attempts, claim up to `capacity` due deliveries and start their attempts."""
        outcomes, self._outcomes = self._outcomes, []
        began = self._loop.time()
        claim_ttl = int((self._settings.webhook_timeout + MARGIN_SECONDS) * SECOND)
        limits = Capacity(Counter(self._attempts.values()), PER_HOOK, PER_ACCOUNT, capacity, claim_ttl)
        try:
            claimed = await self._in_store_thread(self._deliveries.save_outcomes_and_claim, outcomes, limits)
        except BaseException:
            self._outcomes = outcomes + self._outcomes
            raise
        if claimed:
            hooks = await self._in_store_thread(self._find_active, {delivery.webhook_key for delivery in claimed})
            # If this process was suspended, its claims may have expired: another server then sends these deliveries.
            is_late = self._loop.time() - began > MARGIN_SECONDS / 2
            for delivery in claimed:
                self._start_attempt(None if is_late else hooks.get(delivery.webhook_key), delivery)

    def _find_active(self, hooks: set[WebhookKey]) -> dict[WebhookKey, Webhook]:
        with self._engine.store.read() as reader:
            rows = {hook: usable_row(reader, Webhook, *hook) for hook in hooks}
        return {hook: row for hook, row in rows.items() if row is not None and row.state == ACTIVE}

    def _start_attempt(self, hook: Webhook | None, delivery: Delivery) -> None:
        if hook is None:
            self._finish(FinishedAttempt(delivery, None))
            return
        self._sender = self._sender or self._make_sender(self._settings)
        attempt = self._loop.create_task(self._attempt(self._sender, hook, delivery))
        self._attempts[attempt] = delivery.webhook_key
        attempt.add_done_callback(self._attempts.pop)

    async def _attempt(self, sender: Sender, hook: Webhook, delivery: Delivery) -> None:
        result: AttemptResult | None = None
        try:
            result = await sender.send(hook, delivery)
            if result.gone:
                await self._in_store_thread(self._disable, hook)
        except Exception:
            log.exception("an attempt of webhook %s failed", hook.id)
            result = result or AttemptResult(arrived=False, error="internal error")
        finally:
            self._finish(self._outcome(hook, delivery, result))

    def _outcome(self, hook: Webhook, delivery: Delivery, result: AttemptResult | None) -> FinishedAttempt:
        if result is None or result.arrived:
            return FinishedAttempt(delivery, result)
        schedule = retry_schedule(hook, self._settings.webhook_retries)
        wait = retry_wait(delivery.attempts + 1, result, schedule, _jitter.random())
        if wait is not None and wait < TIMER_LIMIT:
            self._loop.call_later(wait / SECOND + PASS_SECONDS, self.wake)
        return FinishedAttempt(delivery, result, wait)

    def _finish(self, outcome: FinishedAttempt) -> None:
        self._outcomes.append(outcome)
        if outcome.result is not None:
            label = "delivered" if outcome.result.arrived else "dead" if outcome.wait is None else "failed"
            self._engine.registry.add(metric_names.DELIVERIES, label)
        self.wake()

    def _disable(self, hook: Webhook) -> None:
        """Disable a webhook whose receiver answered 410. If that fails now, the receiver's next 410 repeats it."""
        reason = "the receiver answered 410"
        command = DisableWebhook(account=hook.account, cause=_CAUSE, hook_id=hook.id, url=hook.url, reason=reason)
        with suppress(HoldfastError):
            self._engine.call(command)

    def _listen(self, work: PendingWork) -> None:
        """Listen to commits of every account that has an active webhook, and of no other."""
        accounts = {account for account, _ in work.active}
        for account in accounts - self._listening:
            self._engine.change_signal.listen(account_log_key(account), self.wake, internal=True)
        for account in self._listening - accounts:
            self._engine.change_signal.forget(account_log_key(account), self.wake)
        self._listening = accounts

    async def _shut_down(self) -> None:
        self._listen(PendingWork([], [], is_due=False))
        if self._attempts:
            await asyncio.wait(self._attempts, timeout=STOP_SECONDS)
        left = list(self._attempts)
        for attempt in left:
            attempt.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        if self._outcomes:
            with suppress(HoldfastError):  # deliveries whose result is not saved are sent again
                await self._exchange(0)
        if self._sender is not None:
            await self._sender.close()
        self._store_thread.shutdown()

    async def _in_store_thread(self, call: Callable[..., T], *arguments: Any) -> T:
        """Call the store on its own thread, so that the event loop does not wait for it."""
        return await self._loop.run_in_executor(self._store_thread, call, *arguments)


@contextmanager
def dispatching(engine: Engine, settings: Settings) -> Iterator[Dispatcher]:
    """Run a dispatcher. Only servers do: an engine embedded in a program sends nothing."""
    dispatcher = Dispatcher(engine, settings)
    dispatcher.start()
    try:
        yield dispatcher
    finally:
        dispatcher.stop()


def _make_sender(settings: Settings) -> Sender:
    from holdfast.transport.webhooks.sender import Sender

    private = settings.webhook_allow_private_networks
    return Sender(settings.webhook_timeout, private=private, ca_bundle=settings.ca_bundle)
