"""Plans: which plan applies, its exact limits, and consistent limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core import account as accounts
from holdfast.core.account import Account
from holdfast.core.errors import MaxWorkersReached, PlanExpired, QuotaExceeded
from holdfast.core.plan import (
    CLAIM,
    CREATE,
    CYCLE,
    FREE,
    HEARTBEAT,
    MUTATION,
    PLANS,
    READ,
    SELF_HOSTED,
    Allowance,
    Plan,
    Usage,
    find_inconsistencies,
)
from holdfast.core.row import SECOND
from tests.support import START

SMALL = Plan(id="small", name="Small", max_workers=2, tasks_per_month=3)
LARGE = Plan(id="large", name="Large", max_workers=4, tasks_per_month=6)
UNLIMITED = Plan(id="endless", name="Endless")
LATER = START + 10 * SECOND


def make_allowance(plan=LARGE, until=LATER, fallback=SMALL):
    return Allowance(plan, fallback, until, START)


# -- which plan is in force --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("now", "plan"), [(LATER - 1, LARGE), (LATER, SMALL), (LATER + 1, SMALL)])
def test_a_plan_applies_until_the_instant_it_expires(now, plan):
    assert make_allowance().in_force(now) is plan
    assert make_allowance().is_expired(now) is (plan is SMALL)


def test_a_plan_without_an_expiry_never_lapses():
    assert make_allowance(until=None).in_force(2**62) is LARGE


@pytest.mark.parametrize(
    ("plan_id", "plan", "fallback"), [("", FREE, FREE), ("pro", "pro", FREE), ("no longer sold", FREE, FREE)]
)
def test_an_account_without_a_purchase_has_the_default_plan(plan_id, plan, fallback):
    account = Account("acct_1", "acct_1", created_at=START, plan=plan_id)
    allowance = accounts.allowance(account, PLANS, FREE)
    assert (allowance.plan.id, allowance.fallback.id, allowance.anchor) == (plan, fallback, START)


@pytest.mark.parametrize(
    ("plan", "fallback", "metered"),
    [(UNLIMITED, UNLIMITED, False), (SMALL, UNLIMITED, True), (UNLIMITED, SMALL, True)],
)
def test_an_allowance_is_metered_if_either_plan_has_limits(plan, fallback, metered):
    assert make_allowance(plan, fallback=fallback).is_metered is metered


def test_every_class_of_requests_has_its_own_limit():
    plan = Plan(
        id="p",
        name="P",
        creates_per_hour=1,
        claims_per_hour=2,
        reads_per_hour=3,
        mutations_per_hour=4,
        heartbeats_per_hour=5,
    )
    assert [plan.per_hour(name) for name in (CREATE, CLAIM, READ, MUTATION, HEARTBEAT)] == [1, 2, 3, 4, 5]


# -- tasks of a month --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("used", range(6))
def test_the_quota_allows_its_last_task_and_not_one_more(used):
    allowance = make_allowance(SMALL, until=None)
    if used < 3:
        allowance.check_quota(Usage(START, used), LATER)
    else:
        with pytest.raises(QuotaExceeded):
            allowance.check_quota(Usage(START, used), LATER)


@pytest.mark.parametrize(("used", "refusal"), [(2, None), (3, PlanExpired), (5, PlanExpired), (6, QuotaExceeded)])
def test_a_task_that_the_lapsed_plan_allowed_is_refused_with_plan_expired(used, refusal):
    if refusal is None:
        make_allowance().check_quota(Usage(START, used), LATER)
    else:
        with pytest.raises(refusal):
            make_allowance().check_quota(Usage(START, used), LATER)
    if used < 6:
        make_allowance().check_quota(Usage(START, used), LATER - 1)


def test_a_lapsed_unlimited_plan_is_always_refused_with_plan_expired():
    with pytest.raises(PlanExpired):
        make_allowance(UNLIMITED).check_quota(Usage(START, 10**9), LATER)


def test_a_quota_refusal_contains_the_start_of_the_next_cycle():
    with pytest.raises(QuotaExceeded, match=f"in {CYCLE // SECOND - 10} seconds"):
        make_allowance(SMALL, until=None).check_quota(Usage(START, 3), LATER)


# -- tasks held at once ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("in_use", "free"), [(0, 2), (1, 1)])
def test_free_workers_is_the_limit_minus_the_held_tasks(in_use, free):
    assert make_allowance(SMALL, until=None).free_workers(in_use, START) == free


@pytest.mark.parametrize("in_use", [2, 3])
def test_a_worker_refusal_contains_the_plan_and_the_counts(in_use):
    with pytest.raises(MaxWorkersReached) as refusal:
        make_allowance(SMALL, until=None).free_workers(in_use, START)
    assert refusal.value.billing == {"plan": "small", "workers_in_use": in_use, "workers_limit": 2}
    assert refusal.value.retry_after == 30


@pytest.mark.parametrize(("in_use", "refusal"), [(2, PlanExpired), (3, PlanExpired), (4, MaxWorkersReached)])
def test_after_a_lapse_the_worker_limit_of_the_fallback_plan_applies(in_use, refusal):
    with pytest.raises(refusal):
        make_allowance().free_workers(in_use, LATER)


def test_an_unlimited_plan_has_no_worker_limit():
    assert make_allowance(UNLIMITED, until=None).free_workers(10**9, START) is None


# -- cycles ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "began"),
    [
        (START, START),
        (START + CYCLE - 1, START),
        (START + CYCLE, START + CYCLE),
        (START + 12 * CYCLE + 5, START + 12 * CYCLE),
    ],
)
def test_a_cycle_begins_every_thirty_days_from_the_anchor(now, began):
    assert make_allowance().cycle(now) == began
    assert CYCLE == 30 * 24 * 3600 * SECOND


@given(st.integers(0, 2**53), st.integers(0, 2**53))
def test_now_is_always_within_its_cycle(anchor, now):
    began = Allowance(SMALL, SMALL, None, anchor).cycle(now)
    assert began <= now < began + CYCLE
    assert (began - anchor) % CYCLE == 0


def test_usage_of_an_earlier_cycle_counts_as_zero():
    full = Usage(START, 3)
    with pytest.raises(QuotaExceeded):
        make_allowance(SMALL, until=None).check_quota(full, START + CYCLE - 1)
    make_allowance(SMALL, until=None).check_quota(full, START + CYCLE)


@pytest.mark.parametrize(
    ("more", "sum_of_both"),
    [
        (Usage(START, 2), Usage(START, 5)),
        (Usage(START + 1, 2), Usage(START + 1, 2)),
        (Usage(START - 1, 2), Usage(START, 5)),
    ],
)
def test_the_sum_of_usages_keeps_only_the_later_cycle(more, sum_of_both):
    assert Usage(START, 3).plus(more) == sum_of_both


usages = st.builds(Usage, st.integers(0, 3), st.integers(0, 5))


@given(st.lists(usages, max_size=5), usages)
def test_adding_usage_never_returns_to_an_earlier_cycle(counted, first):
    total = first
    for more in counted:
        before, total = total, total.plus(more)
        assert total.cycle >= before.cycle
        assert total.in_cycle(before.cycle) >= (before.created if total.cycle == before.cycle else 0)


# -- consistent limits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_the_built_in_plans_are_consistent(plan):
    assert find_inconsistencies(plan) == []


@pytest.mark.parametrize("plan_id", [plan for plan in PLANS if plan != SELF_HOSTED])
def test_the_same_limits_for_every_plan_would_be_inconsistent(plan_id):
    """With 600 changes, 1,800 heartbeats and 3,000 reads an hour for every plan, no plan could use its claims."""
    flat = replace(PLANS[plan_id], mutations_per_hour=600, heartbeats_per_hour=1_800, reads_per_hour=3_000)
    found = {problem.split()[0] for problem in find_inconsistencies(flat)}
    assert "mutations_per_hour" in found
    assert ("heartbeats_per_hour" in found) is (flat.max_workers > 5)
    assert ("reads_per_hour" in found) is (flat.max_workers > 4)


@pytest.mark.parametrize(
    ("limits", "fits"),
    [
        ({"claims_per_hour": 10, "mutations_per_hour": 20}, True),
        ({"claims_per_hour": 10, "mutations_per_hour": 19}, False),
        ({"max_workers": 2, "heartbeats_per_hour": 720}, True),
        ({"max_workers": 2, "heartbeats_per_hour": 719}, False),
        ({"max_workers": 2, "reads_per_hour": 1_440}, True),
        ({"max_workers": 2, "reads_per_hour": 1_439}, False),
        ({"mutations_per_hour": 0, "heartbeats_per_hour": 0, "reads_per_hour": 0}, True),
    ],
)
def test_a_limit_is_inconsistent_one_below_its_minimum(limits, fits):
    assert (find_inconsistencies(Plan(id="p", name="P", **limits)) == []) is fits


def test_the_self_hosted_plan_has_no_limit_at_all():
    own = PLANS[SELF_HOSTED]
    assert not own.is_metered
    assert [own.per_hour(name) for name in (CREATE, CLAIM, READ, MUTATION, HEARTBEAT)] == [None] * 5
