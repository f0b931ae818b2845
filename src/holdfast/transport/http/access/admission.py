"""Admission of a request: who the caller is, what it may do, and what it is charged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from holdfast.core import account as accounts
from holdfast.core.account import Account
from holdfast.core.budget import Budget, Terms
from holdfast.core.errors import Invalid, RateLimited, TaskMissing, Unauthenticated
from holdfast.core.names import DEFAULT_ACCOUNT, is_storable, lock_name_problem
from holdfast.core.plan import SELF_HOSTED, Allowance
from holdfast.core.prefix_rule import NAMED, check_prefix
from holdfast.core.principal import Principal, check_not_rotated_away
from holdfast.core.row import SECOND, Instant
from holdfast.operations import bounds
from holdfast.operations.operation import DISCOVERY, HOLDFAST_API, OCTOSTORE, ORCHESTRION, REGISTRATION, Operation
from holdfast.settings import Settings
from holdfast.telemetry.metric_names import KEY_CHANGES
from holdfast.telemetry.registry import Registry
from holdfast.transport.http.access.auth import CACHE_SECONDS, Authenticator, check_scope
from holdfast.transport.http.access.network import Network, has_credential
from holdfast.transport.http.access.rate_limits import RateLimiter
from holdfast.transport.http.bodies.checks import check_key_in_query
from holdfast.transport.http.reads import StoreReads
from holdfast.transport.http.request import Request
from holdfast.transport.times import wall_clock

_OURS = frozenset({HOLDFAST_API, ORCHESTRION})
"""The APIs whose callers have plans."""
HOUR: Instant = bounds.HOUR * SECOND
MAX_CACHED_ACCOUNTS = 10_000
BUSY_GUESSES, SLOW_SECONDS = 8, 0.1
"""With so many look-ups under way, an unknown key is refused with a delay. Valid keys are not delayed."""
MAX_LATE_GUESSES = 4
"""Look-ups at which an address that failed too often gets no more; with fewer, a valid key of it is accepted."""
LATE_SECONDS = 5
ADDRESS_LIMITS = {
    name: Terms(rate.requests, rate.seconds * SECOND)
    for name, rate in (
        (REGISTRATION, bounds.REGISTRATIONS_PER_ADDRESS),
        (DISCOVERY, bounds.DOCUMENTS_PER_ADDRESS),
    )
}
"""Requests without a key, by address; they do not apply on a self-hosted plan."""


class Admission:
    """Checks keys and scopes and charges rate limits, with the plans of the accounts."""

    def __init__(self, settings: Settings, network: Network, reads: StoreReads) -> None:
        self._settings = settings
        self._network = network
        self._reads = reads
        self._auth = Authenticator(self._find_principal, settings.admin_key, reads.engine.registry)
        self.accounts = AccountCache(reads, reads.engine.registry)
        self.rate_limiter = RateLimiter(self._borrow)
        self._unlimited = accounts.allowance(Account(DEFAULT_ACCOUNT, DEFAULT_ACCOUNT), settings.plans, settings.plan)
        self._guessing = 0
        """Look-ups of unknown keys under way."""
        self._address_limits = {} if settings.plan == SELF_HOSTED else ADDRESS_LIMITS

    async def authenticate(self, request: Request) -> None:
        """Identify the caller, check its scope and its prefix, and charge its rate limit."""
        operation = _operation(request)
        is_ours = operation.family in _OURS
        if is_ours:
            check_key_in_query(request)
        if request.refusal is not None:
            raise request.refusal
        if request.principal is None and not self._auth.check_cached(request):
            await self._sign_in(request, self._auth.check)
        if operation.family == ORCHESTRION and not is_storable(request.parameter):
            raise TaskMissing("there is no such task")
        if operation.scope is not None:
            check_scope(request, operation.scope)
        _check_prefix(request, operation)
        if operation.is_about_keys:
            check_not_rotated_away(request.by, request.key_hash)
        if is_ours:
            if request.by.account == DEFAULT_ACCOUNT:  # without a coroutine
                request.allowance = self._unlimited
            else:
                request.allowance = await self.allowance(request.by.account)
            if operation.limit is not None and _limit(request, operation.limit) is not None:
                await self.charge(request, operation.limit)

    async def identify(self, request: Request) -> None:
        """Check the caller's key before the body is read; a refusal waits until `authenticate`."""
        try:
            await self._sign_in(request, self._auth.check)
        except Unauthenticated as refusal:
            request.refusal = refusal

    async def authenticate_operator(self, request: Request) -> None:
        """Admit only the operator of this server."""
        await self._sign_in(request, self._auth.check_operator)
        _check_prefix(request, _operation(request))

    async def _sign_in(self, request: Request, check: Callable[[Request], Awaitable[None]]) -> None:
        """Check a key. One that was not seen before waits for others like it, but no known key waits for it."""
        if self.known_account(request) is not None or not has_credential(request):
            try:
                await check(request)
            except Unauthenticated:
                self._network.count_failure(request)
                raise
            return
        is_counted, failed = self._network.begin_sign_in(request), False
        try:
            with self._guesses(late=not is_counted):
                await check(request)
        except Unauthenticated:
            failed = True
            if self._guessing >= BUSY_GUESSES:
                await asyncio.sleep(SLOW_SECONDS)  # it keeps its place, so that many guesses take long
            if not is_counted:
                self._network.count_failure(request)  # answers 429
            raise
        finally:
            if is_counted and not failed:
                self._network.uncount_failure(request)
        request.leave_place()  # the places of unknown keys are for look-ups

    @contextmanager
    def _guesses(self, *, late: bool) -> Iterator[None]:
        """Count look-ups of unknown keys, and bound those from addresses that failed too often.

        The request limiter bounds all look-ups of unknown keys together.
        """
        if late and self._guessing >= MAX_LATE_GUESSES:
            raise RateLimited("too many failed sign-ins from this address", retry_after=LATE_SECONDS)
        self._guessing += 1
        try:
            yield
        finally:
            self._guessing -= 1

    def known_account(self, request: Request) -> str | None:
        """The account of a key that was valid at its last use; None for any other caller."""
        return self._auth.known_account(request)

    # -- keys ----------------------------------------------------------------------------------------------------

    async def check_key(self, request: Request) -> None:
        """Check once more that the request's key works."""
        await self._auth.check(request)

    async def principal_of(self, key: str) -> Principal:
        """The principal of a key that was not sent in a header."""
        return await self._auth.principal_of(key)

    def note_key_change(self) -> None:
        """Let a changed key take effect in every worker process of this server at once."""
        self._auth.note_change()

    def record_key_uses(self) -> None:
        """Write to the store which keys were used since the last call. It blocks."""
        used = self._auth.take_uses()
        if used:
            self._reads.engine.store.save_key_uses(used)

    async def _find_principal(self, key_hash: str, known: bool) -> Principal | None:  # noqa: FBT001 - see `Find`
        read = self._reads.read_known if known else self._reads.read_unknown
        return await read(lambda reader: reader.principal(key_hash))

    # -- rate limits ---------------------------------------------------------------------------------------------

    async def allowance(self, account_id: str) -> Allowance:
        """What an account's plan allows. The server's own account is not limited."""
        if account_id == DEFAULT_ACCOUNT:
            return self._unlimited
        return accounts.allowance(await self.accounts.get(account_id), self._settings.plans, self._settings.plan)

    async def charge(self, request: Request, limit_class: str, cost: int = 1) -> None:
        """Charge a request to its account's plan, or refuse it. The keys of an account share its limit."""
        limit = _limit(request, limit_class)
        if limit is not None and cost > limit > 0:  # it never fits into one hour: waiting would not help
            request.refund()
            raise Invalid(f"your plan allows {limit} {limit_class} requests an hour; send at most {limit} at once")
        if limit is not None:
            await self._charge(request, request.by.account, limit_class, Terms(limit, HOUR), cost)

    async def charge_instead(self, request: Request, limit_class: str) -> None:
        """Refund what a request was charged, and charge it as another kind of request."""
        if request.rate_budget is not None:
            request.refund()
            await self.charge(request, limit_class)

    def charge_more(self, request: Request, cost: int) -> None:
        """Charge a request for what it was granted beyond one. It is not refused any more, but the next ones are."""
        if request.rate_budget is not None:
            request.rate_budget.remaining -= cost
            request.charges += ((request.rate_budget, cost),)

    async def charge_address(self, request: Request, limit_class: str) -> None:
        """Charge a request without a key to its client's address."""
        terms = self._address_limits.get(limit_class)
        if terms is not None:
            await self._charge(request, f"ip:{self._network.client(request)}", limit_class, terms)

    async def _charge(self, request: Request, subject: str, limit_class: str, terms: Terms, cost: int = 1) -> None:
        request.rate_budget = self.rate_limiter.budget_of(subject, limit_class, terms)
        await self.rate_limiter.spend(request.rate_budget, cost)
        request.charges += ((request.rate_budget, cost),)

    async def _borrow(self, subject: str, limit_class: str, terms: Terms) -> Budget:
        return await self._reads.borrow(subject, limit_class, terms)


def _limit(request: Request, limit_class: str) -> int | None:
    """How many requests of a class the caller's plan allows in an hour; None if it does not limit them."""
    assert request.allowance is not None
    return request.allowance.in_force(wall_clock()).per_hour(limit_class)


def _operation(request: Request) -> Operation:
    assert request.operation is not None
    return request.operation


def _check_prefix(request: Request, operation: Operation) -> None:
    """Apply the operation's prefix rule to a key that has a prefix."""
    if request.by.name_prefix is None:
        return
    if operation.family == OCTOSTORE and operation.prefix_rule == NAMED and lock_name_problem(request.parameter):
        return  # the handler refuses this name: OctoStore reports an invalid name before a namespace
    check_prefix(request.by, operation.prefix_rule, request.parameter)


class AccountCache:
    """Cache of accounts; an entry is used for at most five seconds, and not after a change by any worker process."""

    def __init__(self, reads: StoreReads, registry: Registry) -> None:
        self._reads = reads
        self._registry = registry
        self._cached: dict[str, tuple[Account, float]] = {}
        self._changes = 0.0
        """How many changes this cache has seen: a read that began before one may have read the account as it was."""

    async def get(self, account_id: str) -> Account:
        """The account, or the defaults if it has no row."""
        changes = self._registry.total(KEY_CHANGES)
        if changes != self._changes:
            self._changes = changes
            self._cached.clear()
        cached = self._cached.get(account_id)
        if cached is not None and cached[1] > time.monotonic():
            return cached[0]
        found = await self._reads.read_known(lambda reader: reader.row(Account, account_id, account_id))
        account = found or Account(account_id, account_id)
        if changes == self._registry.total(KEY_CHANGES):
            self._remember(account)
        return account

    def note_change(self) -> None:
        """Read accounts again at their next use, in every worker process of this server."""
        self._registry.add(KEY_CHANGES)

    def _remember(self, account: Account) -> None:
        if len(self._cached) >= MAX_CACHED_ACCOUNTS:
            self._cached.clear()
        self._cached[account.id] = (account, time.monotonic() + CACHE_SECONDS)
