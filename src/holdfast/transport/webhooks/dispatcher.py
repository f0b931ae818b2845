"""The dispatcher: one thread beside the engine that reads the log for every webhook and sends what it finds.

It has an event loop of its own, so a slow receiver slows nobody else; and it writes in few small transactions beside
the lanes, so that nobody who works waits for it. Any number of servers share the work: what one has taken in hand, the
others leave alone until its time is over.
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
from holdfast.core.webhooks.webhook import ACTIVE, Webhook
from holdfast.engine.change_signal import account_log_key
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.webhooks import DisableWebhook
from holdfast.settings import Settings
from holdfast.store.contract.deliveries import START, Capacity, PendingWork
from holdfast.telemetry import metric_names
from holdfast.transport.webhooks.log_reader import LogReader, Stretch

if TYPE_CHECKING:
    from holdfast.transport.webhooks.sender import Sender

PER_HOOK, PER_ACCOUNT, IN_ALL = 8, 16, 64
"""How many attempts run at once: to one webhook, for one account, and from one server."""
HOOKS_A_PASS = 256
POLL_SECONDS = 1.0
"""Others' commits, and what other servers let lie, are looked for at least this often."""
IDLE_SECONDS = 2.0
PASS_SECONDS = 0.02
"""Passes are at least so far apart: a busy log is read in stretches, not event by event."""
SOON = 60 * SECOND
TROUBLE_SECONDS = 1.0
MARGIN_SECONDS = 3.0
"""How much longer a delivery is ours than an attempt can take."""
STOP_SECONDS = 2.0
STUCK_SECONDS = 60.0
"""Later than this since the last pass, and `/readyz` says so."""

log = logging.getLogger("holdfast.webhooks")

T = TypeVar("T")

_CAUSE = Cause("webhooks", "")


class Dispatcher:
    """Sends until it is stopped."""

    def __init__(self, engine: Engine, settings: Settings, sender: Callable[[Settings], Sender] | None = None) -> None:
        self._engine = engine
        self._settings = settings
        self._new_sender = sender or _usual_sender
        self._sender: Sender | None = None
        self._reader = LogReader(engine.store)
        self._deliveries = engine.store.deliveries
        self._outcomes: list[FinishedAttempt] = []
        self._attempts: dict[asyncio.Task[None], WebhookKey] = {}
        self._after = START
        self._again = False
        """Whether somebody in this round has more to read."""
        self._listening: set[str] = set()
        self._rung = False
        self._stopping = False
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-webhooks", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._engine.loop_heartbeats.expect("webhooks", STUCK_SECONDS)
        self._thread.start()
        self._started.wait()

    def stop(self) -> None:
        """Let what is on its way arrive, for a moment; the rest is free for others at once."""
        self._stopping = True
        self.wake()
        self._thread.join()

    def wake(self) -> None:
        """There may be something to do. Called from any thread, often: only the first ring costs anything."""
        if not self._rung:
            self._rung = True
            with suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self._bell.set)

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        self._loop, self._bell = asyncio.get_running_loop(), asyncio.Event()
        self._store_thread = ThreadPoolExecutor(1, thread_name_prefix="holdfast-webhook-store")
        self._started.set()
        while not self._stopping:
            began = self._loop.time()
            if self._after == START:  # a ring during a round concerns those who had their turn as well
                self._rung = False
                self._bell.clear()
            patience = await self._try_pass()
            await asyncio.sleep(max(began + PASS_SECONDS - self._loop.time(), 0))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), patience)
        await self._end()

    async def _try_pass(self) -> float:
        """One pass, and how long nothing need be done after it."""
        try:
            patience = await self._pass()
        except HoldfastError as error:
            log.warning("webhooks have to wait: %s", error.message)
        except Exception:
            log.exception("webhooks have to wait")
        else:
            self._engine.loop_heartbeats.beat("webhooks")
            return patience
        return TROUBLE_SECONDS

    async def _pass(self) -> float:
        prospect = await self._aside(self._deliveries.pending_work, HOOKS_A_PASS, self._after)
        self._listen(prospect)
        self._reader.forget_all_but(prospect.active)
        read = Stretch(found=False, more=False)
        if prospect.behind:
            read = await self._aside(self._reader.read_on, prospect.behind)
        if read.found or prospect.is_due or self._outcomes:
            await self._turn(IN_ALL - len(self._attempts))
        if self._is_round_open(prospect, read):
            return 0.0
        return POLL_SECONDS if prospect.active or self._attempts else IDLE_SECONDS

    def _is_round_open(self, prospect: PendingWork, read: Stretch) -> bool:
        """Whoever is behind has a turn in every round, a page of them a pass; whether any of them need another now."""
        full = len(prospect.behind) == HOOKS_A_PASS
        again = self._again or read.more
        last = prospect.behind[-1].hook if full else None
        self._after = START if last is None else (last.account, last.id)
        self._again = full and again
        return full or again

    async def _turn(self, places: int) -> None:
        """Settle what is over and take in hand what there is room for."""
        outcomes, self._outcomes = self._outcomes, []
        began = self._loop.time()
        lasts = int((self._settings.webhook_timeout + MARGIN_SECONDS) * SECOND)
        room = Capacity(Counter(self._attempts.values()), PER_HOOK, PER_ACCOUNT, places, lasts)
        try:
            taken = await self._aside(self._deliveries.settle_and_claim, outcomes, room)
        except BaseException:
            self._outcomes = outcomes + self._outcomes
            raise
        if taken:
            hooks = await self._aside(self._hooks_of, {delivery.webhook_key for delivery in taken})
            # Whoever stood still after taking these may hold them no longer: then another sends them.
            late = self._loop.time() - began > MARGIN_SECONDS / 2
            for delivery in taken:
                self._begin(None if late else hooks.get(delivery.webhook_key), delivery)

    def _hooks_of(self, wanted: set[WebhookKey]) -> dict[WebhookKey, Webhook]:
        with self._engine.store.read() as reader:
            rows = {hook: reader.row(Webhook, *hook) for hook in wanted}
        return {hook: row for hook, row in rows.items() if row is not None and row.state == ACTIVE}

    def _begin(self, hook: Webhook | None, delivery: Delivery) -> None:
        if hook is None:
            self._over(FinishedAttempt(delivery, None))
            return
        self._sender = self._sender or self._new_sender(self._settings)
        attempt = self._loop.create_task(self._attempt(self._sender, hook, delivery))
        self._attempts[attempt] = delivery.webhook_key
        attempt.add_done_callback(self._attempts.pop)

    async def _attempt(self, sender: Sender, hook: Webhook, delivery: Delivery) -> None:
        verdict: AttemptResult | None = None
        try:
            verdict = await sender.send(hook, delivery)
            if verdict.gone:
                await self._aside(self._disable, hook)
        except Exception:
            log.exception("an attempt of webhook %s failed", hook.id)
            verdict = verdict or AttemptResult(arrived=False, error="internal error")
        finally:
            self._over(self._outcome(delivery, verdict))

    def _outcome(self, delivery: Delivery, verdict: AttemptResult | None) -> FinishedAttempt:
        if verdict is None or verdict.arrived:
            return FinishedAttempt(delivery, verdict)
        wait = retry_wait(delivery.attempts + 1, verdict, self._settings.webhook_retries, random.random())  # noqa: S311 - no secret
        if wait is not None and wait < SOON:  # whatever is later is found by looking
            self._loop.call_later(wait / SECOND + PASS_SECONDS, self.wake)
        return FinishedAttempt(delivery, verdict, wait)

    def _over(self, outcome: FinishedAttempt) -> None:
        self._outcomes.append(outcome)
        if outcome.verdict is not None:
            came_of_it = "delivered" if outcome.verdict.arrived else "dead" if outcome.wait is None else "failed"
            self._engine.board.add(metric_names.DELIVERIES, came_of_it)
        self.wake()

    def _disable(self, hook: Webhook) -> None:
        """The receiver said that it is gone for good. If it cannot be written down now, it will say so again."""
        reason = "the receiver answered 410"
        gone = DisableWebhook(account=hook.account, cause=_CAUSE, hook_id=hook.id, url=hook.url, reason=reason)
        with suppress(HoldfastError):
            self._engine.call(gone)

    def _listen(self, prospect: PendingWork) -> None:
        """Hear of commits in every account that has an active webhook, and in no other."""
        wanted = {account for account, _ in prospect.active}
        for account in wanted - self._listening:
            self._engine.change_signal.listen(account_log_key(account), self.wake, internal=True)
        for account in self._listening - wanted:
            self._engine.change_signal.forget(account_log_key(account), self.wake)
        self._listening = wanted

    async def _end(self) -> None:
        self._listen(PendingWork([], [], is_due=False))
        if self._attempts:
            await asyncio.wait(self._attempts, timeout=STOP_SECONDS)
        left = list(self._attempts)
        for attempt in left:
            attempt.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        if self._outcomes:
            with suppress(HoldfastError):  # what is not settled is tried again
                await self._turn(0)
        if self._sender is not None:
            await self._sender.close()
        self._store_thread.shutdown()

    async def _aside(self, work: Callable[..., T], *arguments: Any) -> T:
        """Whatever waits for the store waits on a thread of its own."""
        return await self._loop.run_in_executor(self._store_thread, work, *arguments)


@contextmanager
def dispatching(engine: Engine, settings: Settings) -> Iterator[Dispatcher]:
    """Send for as long as a server runs. An engine in somebody's script sends nothing."""
    dispatcher = Dispatcher(engine, settings)
    dispatcher.start()
    try:
        yield dispatcher
    finally:
        dispatcher.stop()


def _usual_sender(settings: Settings) -> Sender:
    from holdfast.transport.webhooks.sender import Sender  # noqa: PLC0415 - most servers have no webhooks

    private = settings.webhook_allow_private_networks
    return Sender(settings.webhook_timeout, private=private, ca_bundle=settings.ca_bundle)
