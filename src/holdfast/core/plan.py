"""Plans: the limits of an account, and which limits apply when a paid plan has expired.

The limits of one plan must be consistent: an account must be able to finish as many tasks as it may claim, and all its
workers must be able to renew the shortest lease and to poll as often as the answers of empty queues advise.
`find_inconsistencies` checks this.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from holdfast.core.errors import MaxWorkersReached, PlanExpired, QuotaExceeded, Refused
from holdfast.core.row import SECOND, Instant

FREE, SELF_HOSTED = "free", "self-hosted"

DAY: Instant = 24 * 3600 * SECOND
CYCLE: Instant = 30 * DAY
"""Length of a quota cycle."""

RENEWALS_PER_HOUR = 360
"""A worker with the shortest lease, 30 seconds, renews at a third of it."""
POLLS_PER_HOUR = 720
"""An idle worker that follows the advice of empty queues polls every 5 seconds. Such polls are charged as reads."""

CREATE, CLAIM, READ, MUTATION, HEARTBEAT = "create", "claim", "read", "mutation", "heartbeat"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one plan. None means unlimited."""

    id: str
    name: str
    price_cents: int = 0
    duration_days: int = 30
    max_workers: int | None = None
    """Tasks held at once."""
    tasks_per_month: int | None = None
    creates_per_hour: int | None = None
    claims_per_hour: int | None = None
    reads_per_hour: int | None = None
    mutations_per_hour: int | None = None
    heartbeats_per_hour: int | None = None
    retention_days: int | None = None
    """How long finished tasks are kept; None means the server's setting."""

    def per_hour(self, limit_class: str) -> int | None:
        """How many requests of a class one key may send in an hour."""
        limit: int | None = getattr(self, f"{limit_class}s_per_hour")
        return limit

    @property
    def is_metered(self) -> bool:
        """Whether creating or claiming tasks must be counted first."""
        return self.max_workers is not None or self.tasks_per_month is not None


Catalogue = Mapping[str, Plan]
"""Plans by id; always with `free` and `self-hosted`."""


def derive_plan(
    plan_id: str, name: str, cents: int, *, workers: int, tasks: int, claims: int, creates: int, days: int
) -> Plan:
    """A plan whose other limits are derived from these, so that they are consistent."""
    return Plan(
        id=plan_id,
        name=name,
        price_cents=cents,
        max_workers=workers,
        tasks_per_month=tasks,
        claims_per_hour=claims,
        creates_per_hour=creates,
        reads_per_hour=3_000 + POLLS_PER_HOUR * workers,
        mutations_per_hour=max(600, 2 * claims),
        heartbeats_per_hour=max(1_800, RENEWALS_PER_HOUR * workers * 5 // 4),
        retention_days=days,
    )


PLANS: Catalogue = {
    plan.id: plan
    for plan in (
        derive_plan(FREE, "Free", 0, workers=2, tasks=200, claims=600, creates=120, days=7),
        derive_plan("basic", "Basic", 999, workers=10, tasks=5_000, claims=1_200, creates=500, days=30),
        derive_plan("pro", "Pro", 2_499, workers=25, tasks=25_000, claims=4_000, creates=2_000, days=60),
        derive_plan("agency", "Agency", 5_999, workers=50, tasks=150_000, claims=15_000, creates=7_500, days=90),
        Plan(id=SELF_HOSTED, name="Self-hosted"),
    )
}


def find_inconsistencies(plan: Plan) -> list[str]:
    """Where a plan's limits contradict each other."""
    workers, claims = plan.max_workers, plan.claims_per_hour
    minimums = (
        ("mutations_per_hour", 2 * claims if claims is not None else None, "every claim can be finished"),
        ("heartbeats_per_hour", RENEWALS_PER_HOUR * workers if workers is not None else None, "every worker can renew"),
        ("reads_per_hour", POLLS_PER_HOUR * workers if workers is not None else None, "every idle worker can poll"),
    )
    found = []
    for name, least, why in minimums:
        limit: int | None = getattr(plan, name)
        if least is not None and limit is not None and limit < least:
            found.append(f"{name} is {limit}; it must be at least {least} so that {why}")
    return found


class Usage(msgspec.Struct, frozen=True):
    """How much of its quota an account has used in a cycle."""

    cycle: Instant = 0
    """When the cycle began."""
    created: int = 0

    def in_cycle(self, cycle: Instant) -> int:
        """How many tasks were created in this cycle; a count of an earlier cycle is 0."""
        return self.created if self.cycle >= cycle else 0

    def plus(self, more: Usage) -> Usage:
        """The sum of two usages of one cycle; of two cycles, the later one. So no quota is granted twice."""
        if more.cycle > self.cycle:
            return more
        return Usage(self.cycle, self.created + more.created)


class Allowance(msgspec.Struct, frozen=True):
    """The limits of an account: its plan until that expires, then the fallback plan."""

    plan: Plan
    fallback: Plan
    until: Instant | None = None
    anchor: Instant = 0
    """When its first cycle began."""

    def in_force(self, now: Instant) -> Plan:
        """The plan that applies now."""
        return self.fallback if self.is_expired(now) else self.plan

    def is_expired(self, now: Instant) -> bool:
        """Whether the paid plan has expired."""
        return self.until is not None and self.until <= now

    @property
    def is_metered(self) -> bool:
        """Whether creating or claiming tasks must be counted first."""
        return self.plan.is_metered or self.fallback.is_metered

    def cycle(self, now: Instant) -> Instant:
        """When the current cycle began."""
        return now - (now - self.anchor) % CYCLE

    def check_quota(self, usage: Usage, now: Instant) -> None:
        """Refuse another task if the quota of this cycle is used up."""
        used = usage.in_cycle(self.cycle(now))
        limit = self.in_force(now).tasks_per_month
        if limit is not None and used >= limit:
            resets_in = (self.cycle(now) + CYCLE - now) // SECOND
            message = f"this month's {limit} tasks are used up; the next cycle begins in {resets_in} seconds"
            raise self._refusal(QuotaExceeded, self.plan.tasks_per_month, used, message, now)

    def free_workers(self, in_use: int, now: Instant) -> int | None:
        """How many more tasks may be held, None if unlimited; refuses if none may."""
        plan = self.in_force(now)
        if plan.max_workers is None:
            return None
        if in_use >= plan.max_workers:
            message = f"{in_use} tasks are held; the plan {plan.name} allows {plan.max_workers} at once"
            refusal = self._refusal(MaxWorkersReached, self.plan.max_workers, in_use, message, now)
            if isinstance(refusal, MaxWorkersReached):
                refusal.billing = {"plan": plan.id, "workers_in_use": in_use, "workers_limit": plan.max_workers}
            raise refusal
        return plan.max_workers - in_use

    def _refusal(self, kind: type[Refused], bought_limit: int | None, used: int, message: str, now: Instant) -> Refused:
        """PlanExpired if the plan would have allowed the request, else an error of this kind."""
        if self.is_expired(now) and (bought_limit is None or used < bought_limit):
            return PlanExpired(f"the plan {self.plan.name} has expired: {message}")
        return kind(message)
