"""HandlerContext: everything a request handler may use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from holdfast.billing.provider import PaymentProvider
from holdfast.core.errors import HoldfastError
from holdfast.core.plan import Allowance
from holdfast.core.principal import Principal
from holdfast.core.row import Instant, Key
from holdfast.engine.command import Command
from holdfast.engine.engine import Engine
from holdfast.settings import Settings
from holdfast.store.contract import Reader, Store
from holdfast.telemetry.traces import Traces
from holdfast.transport.http.access.admission import Admission
from holdfast.transport.http.access.network import Network
from holdfast.transport.http.overload.byte_budget import ByteBudget
from holdfast.transport.http.overload.unread_answers import UnreadAnswers
from holdfast.transport.http.reads import StoreReads
from holdfast.transport.http.request import Request
from holdfast.transport.http.streams.hub import Hub
from holdfast.transport.http.streams.limits import StreamKeyMonitor, StreamLimits
from holdfast.transport.http.submission import Submission
from holdfast.transport.http.system.stats import Stats, sample_process

T = TypeVar("T")

KEY_USE_SECONDS = 60.0
"""How often the last use of each key is written to the store."""
SAMPLE_SECONDS = 1.0
BODY_BUDGET = 64 * 1024 * 1024
"""Bytes of large request bodies in this process at once; more are refused with 503."""
ANSWER_BUDGET = 128 * 1024 * 1024
"""Bytes of large answers that are not sent yet; reads with more are refused with 503."""


class HandlerContext:
    """Connects the asynchronous handlers with the engine and the store, whose calls block or answer from threads."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        payments: PaymentProvider | None = None,
        on_webhook: Callable[[], None] = lambda: None,
        traces: Traces | None = None,
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.payments = payments
        """The payment provider, if one is configured."""
        self.traces = traces
        """The exporter of traces, if one is configured."""
        self.stats = Stats(engine.registry)
        self.on_webhook = on_webhook
        """To be called when a webhook has work that no event in the log announces."""
        self.network = Network(settings)
        self._reads = StoreReads(engine)
        self._submission = Submission(engine, traces)
        self.access = Admission(settings, self.network, self._reads)
        self.body_budget = ByteBudget(BODY_BUDGET)
        """The bytes of request bodies that arrive in several pieces, until they are answered."""
        self.unread_answers = UnreadAnswers(ANSWER_BUDGET)
        self.documents: dict[str, Any] = {}
        """Documents about the API, rendered once."""
        self.hub = Hub(
            engine.change_signal,
            self._reads.query,
            self._reads.query_recent,
            settings.public_url or "urn:holdfast",
            engine.registry,
        )
        self.stream_keys = StreamKeyMonitor(self.access.check_key)
        self.stream_limits = StreamLimits(settings)
        self._loops: list[asyncio.Task[None]] = []

    def open(self) -> None:
        """Bind to the running event loop and start the background loops."""
        self._submission.open(asyncio.get_running_loop())
        self._loops.append(asyncio.ensure_future(self._record_key_uses()))
        self.engine.loop_heartbeats.expect("uses", 10 * KEY_USE_SECONDS)
        if self.engine.registry.group is not None:
            self._loops.append(asyncio.ensure_future(self._sample_process()))

    def close(self) -> None:
        """Stop the background loops and let running reads finish."""
        self.hub.close()
        self.stream_keys.close()
        for loop in self._loops:
            loop.cancel()
        with suppress(HoldfastError):
            self.access.record_key_uses()
        self._reads.close()

    async def close_payments(self) -> None:
        """Close the connections to the payment provider."""
        if self.payments is not None:
            await self.payments.close()

    # -- commands and reads --------------------------------------------------------------------------------------

    def run(self, command: Command[T]) -> Awaitable[T]:
        """Submit a command and wait for its outcome."""
        return self._submission.run(command)

    def run_idempotent(self, command: Command[T]) -> Awaitable[T]:
        """Run a command; if one with the same Idempotency-Key is running, wait for that one instead."""
        return self._submission.run_idempotent(command)

    def run_waiting(self, command: Command[T], wait_seconds: float, request: Request) -> Awaitable[T]:
        """Run a command that may wait in a queue; if its caller disconnects, what it was granted is given back."""
        return self._submission.run_waiting(command, wait_seconds, request)

    def read(self, query: Callable[[Reader], T]) -> Awaitable[T]:
        """Read the committed state in a thread; refused if too many reads are under way."""
        return self._reads.read(query)

    def read_page(self, query: Callable[[Reader], T]) -> Awaitable[T]:
        """Read a page of a long list in a thread, when no other page is being read."""
        return self._reads.read_page(query)

    def wait_for(
        self,
        key: Key,
        query: Callable[[Reader], T],
        is_enough: Callable[[T], bool],
        wait_seconds: float,
        request: Request,
    ) -> Awaitable[T]:
        """Read again at each change of `key` until the result is enough or the time is over."""
        return self._reads.wait_for(key, query, is_enough, wait_seconds, request, check_key=self.access.check_key)

    def use_store(self, action: Callable[[Store], T]) -> Awaitable[T]:
        """Run something on the store that is not a command, in a thread."""
        return self._reads.in_thread(action, self.engine.store)

    # -- access --------------------------------------------------------------------------------------------------

    def authenticate(self, request: Request) -> Awaitable[None]:
        """Identify the caller, check its scope and charge its rate limit."""
        return self.access.authenticate(request)

    def identify(self, request: Request) -> Awaitable[None]:
        """Check the caller's key before the body is read; a refusal waits until `authenticate`."""
        return self.access.identify(request)

    def authenticate_operator(self, request: Request) -> Awaitable[None]:
        """Admit only the operator of this server."""
        return self.access.authenticate_operator(request)

    def charge(self, request: Request, limit_class: str, cost: int = 1) -> Awaitable[None]:
        """Charge a request to its account's plan."""
        return self.access.charge(request, limit_class, cost)

    def charge_instead(self, request: Request, limit_class: str) -> Awaitable[None]:
        """Refund what a request was charged, and charge it as another kind of request."""
        return self.access.charge_instead(request, limit_class)

    def charge_more(self, request: Request, cost: int) -> None:
        """Charge a request for what it was granted beyond one."""
        self.access.charge_more(request, cost)

    def charge_address(self, request: Request, limit_class: str) -> Awaitable[None]:
        """Charge a request without a key to its client's address."""
        return self.access.charge_address(request, limit_class)

    def allowance(self, account_id: str) -> Awaitable[Allowance]:
        """What an account's plan allows."""
        return self.access.allowance(account_id)

    def apply_key_change(self, key: Principal, now: Instant) -> None:
        """Let a key that was rotated or revoked take effect here at once: for requests and for those that wait."""
        self.access.note_key_change()
        self.engine.end_waits(key, now)

    async def erase(self, account: str) -> None:
        """Remove everything of a closed account from the store, in slices; the cleanup finishes what is interrupted."""
        self.access.accounts.note_change()
        while await self._reads.in_thread(self.engine.store.erase, account):
            pass  # others may write between two slices

    # -- background loops ----------------------------------------------------------------------------------------

    async def _record_key_uses(self) -> None:
        while True:
            await asyncio.sleep(KEY_USE_SECONDS)
            with suppress(HoldfastError):
                await self._reads.in_thread(self.access.record_key_uses)
                self.engine.loop_heartbeats.beat("uses")

    async def _sample_process(self) -> None:
        """Keep this worker's row of the shared registry current: another worker may be scraped."""
        while True:
            sample_process(self.engine)
            await asyncio.sleep(SAMPLE_SECONDS)
