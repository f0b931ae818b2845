"""What every handler may use: the engine, who is asking, and a few counts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from holdfast.billing.provider import Payments
from holdfast.core import account as accounts
from holdfast.core.account import Account
from holdfast.core.budget import Budget, Terms
from holdfast.core.errors import Forbidden, HoldfastError, InFlight, Invalid, Overloaded, TaskMissing, Unauthenticated
from holdfast.core.names import DEFAULT_ACCOUNT, is_storable
from holdfast.core.plan import SELF_HOSTED, Allowance
from holdfast.core.principal import Principal
from holdfast.core.row import SECOND, Instant, Key
from holdfast.engine.backlog import Ticket
from holdfast.engine.command import Command
from holdfast.engine.engine import Engine
from holdfast.operations.table import DISCOVERY, HOLDFAST_API, ORCHESTRION, REGISTRATION
from holdfast.settings import Settings
from holdfast.store.contract import Reader, Store
from holdfast.telemetry.traces import Traces
from holdfast.transport.http.access.auth import CACHE_SECONDS, Authenticator, check_scope
from holdfast.transport.http.access.network import Network
from holdfast.transport.http.access.rate_limits import RateLimiter
from holdfast.transport.http.bodies.checks import check_key_in_query
from holdfast.transport.http.request import HttpRefusal, Request
from holdfast.transport.http.streams.hub import Hub
from holdfast.transport.http.streams.limits import Patrol, places_of
from holdfast.transport.http.system import process
from holdfast.transport.http.system.stats import Stats
from holdfast.transport.http.tracing import tell_queue

T = TypeVar("T")

READERS = 4
MAX_LOOKS = 1_000
IN_FLIGHT_SECONDS = 2.0
USES_SECONDS = 60.0
SAMPLE_SECONDS = 1.0
HOUR: Instant = 3600 * SECOND
KNOWN_ACCOUNTS = 10_000


class HandlerContext:
    """Between handlers and the engine: asynchronous on one side, plain on the other."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        payments: Payments | None = None,
        on_webhook: Callable[[], None] = lambda: None,
        traces: Traces | None = None,
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.payments = payments
        """Who takes money, if anybody does."""
        self.traces = traces
        """Where spans go, if anybody asked for traces."""
        self.stats = Stats(engine.board)
        self.on_webhook = on_webhook
        """Call it when a webhook has something to do that the log does not tell."""
        self.network = Network(settings)
        self._auth = Authenticator(self._find_principal, settings.admin_key)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="holdfast-reader")
        self._looking = 0
        self._watching = asyncio.Semaphore(READERS)
        self._in_flight: dict[tuple[str, str], asyncio.Future[Any]] = {}
        self._accounts: dict[str, tuple[Account, float]] = {}
        self.meter = RateLimiter(self._borrow)
        self._unlimited = accounts.allowance(Account(DEFAULT_ACCOUNT, DEFAULT_ACCOUNT), settings.plans, settings.plan)
        limited = settings.plan != SELF_HOSTED
        self._address_terms = {REGISTRATION: Terms(10, HOUR), DISCOVERY: Terms(60, 60 * SECOND)} if limited else {}
        self._uses: asyncio.Task[None] | None = None
        self._sampling: asyncio.Task[None] | None = None
        self.documents: dict[str, Any] = {}
        """What is shown to everybody alike, made when it is first asked for."""
        self._sink: LoopSink | None = None
        self.hub = Hub(engine.change_signal, self._look, settings.public_url or "urn:holdfast", engine.board)
        self.patrol = Patrol(self._auth.check)
        self.streams, self.account_streams, self.election_watches, self.watched = places_of(settings)

    def open(self) -> None:
        """Bind to the running event loop."""
        self._sink = LoopSink(asyncio.get_running_loop())
        self._uses = asyncio.ensure_future(self._note_uses())
        self.engine.loop_heartbeats.expect("uses", 10 * USES_SECONDS)
        if self.engine.board.together is not None:
            self._sampling = asyncio.ensure_future(self._sample())

    def close(self) -> None:
        """Let the readers finish."""
        self.hub.close()
        self.patrol.close()
        for loop in (self._uses, self._sampling):
            if loop is not None:
                loop.cancel()
        with suppress(HoldfastError):
            self._tell_uses()
        self._readers.shutdown()

    async def hang_up(self) -> None:
        """Let the payment provider go."""
        if self.payments is not None:
            await self.payments.close()

    async def authenticate(self, request: Request) -> None:
        """Who is asking, and whether they may."""
        assert request.operation is not None
        if request.operation.family in {HOLDFAST_API, ORCHESTRION}:
            check_key_in_query(request)
        await self._sign_in(request, self._auth.check)
        if request.operation.family == ORCHESTRION and not is_storable(request.parameter):
            raise TaskMissing("there is no such task")
        if request.operation.scope is not None:
            check_scope(request, request.operation.scope)
        if request.operation.path.startswith("/v1/jobs/") and not request.by.covers(request.parameter):
            raise Forbidden(f"your key covers only names that begin with {request.by.name_prefix}")
        if request.operation.family in {HOLDFAST_API, ORCHESTRION}:
            request.allowance = await self.allowance(request.by.account)
            if request.operation.limit is not None:
                await self.charge(request, request.operation.limit)

    async def charge(self, request: Request, limit_class: str, cost: int = 1) -> None:
        """Count the request against its account's plan, or refuse it: more keys are not more requests."""
        assert request.allowance is not None
        limit = request.allowance.in_force(wall_clock()).per_hour(limit_class)
        if limit is not None and cost > limit > 0:  # no hour is long enough: waiting would not help
            request.give_back()
            raise Invalid(f"your plan has {limit} {limit_class} requests an hour: send at most so many at once")
        if limit is not None:
            await self._spend(request, request.by.account, limit_class, Terms(limit, HOUR), cost)

    async def charge_as(self, request: Request, limit_class: str) -> None:
        """It turned out to be another kind of request: give back what was charged and count it there."""
        if request.purse is not None:
            request.give_back()
            await self.charge(request, limit_class)

    async def charge_address(self, request: Request, limit_class: str) -> None:
        """Count a request without a key against where it comes from."""
        terms = self._address_terms.get(limit_class)
        if terms is not None:
            await self._spend(request, f"ip:{self.network.client(request)}", limit_class, terms)

    async def _spend(self, request: Request, subject: str, limit_class: str, terms: Terms, cost: int = 1) -> None:
        request.purse = self.meter.purse(subject, limit_class, terms)
        await self.meter.spend(request.purse, cost)
        request.charges.append((request.purse, cost))

    async def allowance(self, account_id: str) -> Allowance:
        """What an account may do. The server's own account is never limited."""
        if account_id == DEFAULT_ACCOUNT:
            return self._unlimited
        return accounts.allowance(await self.account(account_id), self.settings.plans, self.settings.plan)

    async def erase(self, account: str) -> None:
        """Remove everything of an account that has been closed."""
        self._accounts.pop(account, None)
        await asyncio.get_running_loop().run_in_executor(self._readers, self.engine.store.erase, account)

    async def holder(self, key: str) -> Principal:
        """Whom a key stands for."""
        return await self._auth.holder(key)

    async def beside_the_log(self, act: Callable[[Store], T]) -> T:
        """Do something in the store that is no command, without holding up the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, act, self.engine.store)

    def forget_key(self, key: Principal) -> None:
        """A key changed: that holds here at once."""
        self._auth.forget(key)

    async def _borrow(self, subject: str, limit_class: str, terms: Terms) -> Budget:
        borrow = self.engine.store.borrow
        return await asyncio.get_running_loop().run_in_executor(self._readers, borrow, subject, limit_class, terms)

    async def _note_uses(self) -> None:
        """Tell the store once a minute which keys were seen."""
        while True:
            await asyncio.sleep(USES_SECONDS)
            with suppress(HoldfastError):
                await asyncio.get_running_loop().run_in_executor(self._readers, self._tell_uses)
                self.engine.loop_heartbeats.beat("uses")

    async def _sample(self) -> None:
        """Another worker may be asked how many wait here: let our row of the board say so."""
        while True:
            process.sample(self.engine)
            await asyncio.sleep(SAMPLE_SECONDS)

    def _tell_uses(self) -> None:
        seen = self._auth.seen()
        if seen:
            self.engine.store.save_key_uses(seen)

    async def authenticate_operator(self, request: Request) -> None:
        """Only whoever runs this server may go on."""
        await self._sign_in(request, self._auth.check_operator)

    async def _sign_in(self, request: Request, check: Callable[[Request], Awaitable[None]]) -> None:
        try:
            await check(request)
        except Unauthenticated:
            self.network.count_failure(request)
            raise

    async def run(self, command: Command[T]) -> T:
        """Submit a command and await what comes of it."""
        assert self._sink is not None
        future: asyncio.Future[Any] = self._sink.loop.create_future()
        began = time.time_ns()
        self.engine.submit(command, self._sink, future)
        outcome: T = await future
        if self.traces is not None:
            tell_queue(self.traces, command, outcome, began)
        return outcome

    async def run_once(self, command: Command[T]) -> T:
        """The same; but while an equal request is on its way, wait for its answer rather than ask a second time."""
        if command.once is None:
            return await self.run(command)
        key = (command.account, command.once.key)
        deadline = time.monotonic() + IN_FLIGHT_SECONDS
        while (first := self._in_flight.get(key)) is not None:
            done, _ = await asyncio.wait({first}, timeout=deadline - time.monotonic())
            if not done:
                raise InFlight("the first request under this Idempotency-Key still runs")
        running = self._in_flight[key] = asyncio.ensure_future(self.run(command))
        try:
            outcome: T = await running
            return outcome
        finally:
            del self._in_flight[key]

    async def watch(
        self,
        key: Key,
        look: Callable[[Reader], T],
        enough: Callable[[T], bool],
        wait_seconds: float,
        request: Request,
    ) -> T:
        """Look until it is enough, or until patience ends; a caller who goes away stops waiting."""
        request.patient = True
        loop = asyncio.get_running_loop()
        bell = asyncio.Event()
        gone = asyncio.ensure_future(_disconnected(request))

        def ring() -> None:
            loop.call_soon_threadsafe(bell.set)

        self.engine.change_signal.listen(key, ring)
        try:
            deadline = loop.time() + wait_seconds
            while True:
                bell.clear()
                async with self._watching:  # a ring for a thousand readers must not count as a thousand looks at once
                    found = await self._look(look)
                patience = deadline - loop.time()
                if patience <= 0 or enough(found) or self.engine.change_signal.draining:
                    return found
                rung = asyncio.ensure_future(bell.wait())
                try:
                    await asyncio.wait({rung, gone}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    rung.cancel()
                if gone.done():
                    raise HttpRefusal(499, "the caller went away", close=True)
        finally:
            gone.cancel()
            self.engine.change_signal.forget(key, ring)

    async def account(self, account_id: str) -> Account:
        """What an account has settled, at most five seconds old."""
        known = self._accounts.get(account_id)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        found = await self.read(lambda reader: reader.row(Account, account_id, account_id))
        account = found or Account(account_id, account_id)
        if len(self._accounts) >= KNOWN_ACCOUNTS:
            self._accounts.clear()
        self.remember_account(account)
        return account

    def remember_account(self, account: Account) -> None:
        """What it has settled just now holds here at once."""
        self._accounts[account.id] = (account, time.monotonic() + CACHE_SECONDS)

    def forget_account(self, account_id: str) -> None:
        """It has changed: whoever asks next looks again."""
        self._accounts.pop(account_id, None)

    async def run_patiently(
        self, command: Command[T], wait_seconds: float, request: Request, undo: Callable[[T], Command[Any] | None]
    ) -> T:
        """The same for a command that may stand in line. A caller who goes away leaves the line.

        A grant that nobody is left to hear of is undone at once.
        """
        request.patient = True
        assert self._sink is not None
        future: asyncio.Future[Any] = self._sink.loop.create_future()
        began = time.time_ns()
        ticket = self.engine.submit(command, self._sink, future, wait_seconds)
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait({future, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not future.done():  # the caller went away, or this server cannot wait any longer
                self.engine.leave(ticket)
                future.add_done_callback(lambda done: self._undo(done, undo))
            gone.cancel()
        if not future.done():
            raise HttpRefusal(499, "the caller went away", close=True)
        outcome: T = future.result()
        if self.traces is not None:
            tell_queue(self.traces, command, outcome, began)
        return outcome

    def _undo(self, done: asyncio.Future[Any], undo: Callable[[Any], Command[Any] | None]) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        command = undo(done.result())
        if command is not None:
            assert self._sink is not None
            with suppress(HoldfastError):  # a server that is going away leaves it to time
                self.engine.submit(command, self._sink, self._sink.loop.create_future())

    async def read(self, look: Callable[[Reader], T]) -> T:
        """Look at the committed state without holding up the event loop."""
        if self._looking >= MAX_LOOKS:
            raise Overloaded("too many are looking at the store")
        self._looking += 1
        try:
            return await self._look(look)
        finally:
            self._looking -= 1

    async def _look(self, look: Callable[[Reader], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self.engine.read, look)

    async def _find_principal(self, key_hash: str) -> Any:
        return await self.read(lambda reader: reader.principal(key_hash))


def wall_clock() -> Instant:
    """About what the store's clock says: good enough to know which plan is in force."""
    return time.time_ns() // 1000


class LoopSink:
    """Replies to coroutines: one wake-up of the event loop for a whole batch."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        """Called from the engine's threads."""
        self.loop.call_soon_threadsafe(_resolve, replies)


def _resolve(replies: list[tuple[Ticket, Any]]) -> None:
    for ticket, outcome in replies:
        future: asyncio.Future[Any] = ticket.slot
        if future.done():
            continue
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
            future.exception()  # seen: a caller who went away does not fetch it
        else:
            future.set_result(outcome)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
