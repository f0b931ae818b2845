"""Quotas and worker limits of plans: exact on every store; refused and repeated requests are not charged."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.core.errors import (
    IdempotencyConflict,
    Invalid,
    MaxWorkersReached,
    PlanExpired,
    QuotaExceeded,
    TaskMissing,
)
from holdfast.core.plan import CYCLE, Allowance, Plan, Usage
from holdfast.core.row import SECOND
from holdfast.core.task import CLAIMED, PENDING, Task
from holdfast.engine.command import Once, Replayed
from holdfast.engine.verbs.batch import Batch
from holdfast.engine.verbs.tasks.claiming import Claimed, Empty
from holdfast.engine.verbs.tasks.creating import Created
from tests.support import ACCOUNT, START, check_log, every, run, transact
from tests.task_commands import BASE, LEASE, begin, cancel, complete, create, fail, release_task, sweep, take, take_this

SMALL = Plan(id="small", name="Small", max_workers=2, tasks_per_month=3)
LARGE = Plan(id="large", name="Large", max_workers=4, tasks_per_month=6)
UNLIMITED = Plan(id="endless", name="Endless")
ALLOWED = Allowance(SMALL, SMALL, None, START)
EXPIRING = Allowance(LARGE, SMALL, START + 10 * SECOND, START)


def charged_create(task_id, allowance=ALLOWED, **more):
    return replace(create(task_id, **more), allowance=allowance)


def claim(limit=1, allowance=ALLOWED, **more):
    return take("work", limit=limit, allowance=allowance, **more)


def claim_this(task_id, allowance=ALLOWED, **more):
    return take_this(task_id, allowance=allowance, **more)


def batch(*items, **more):
    return Batch(**(BASE | {"items": items} | more))


def once(key="key-1", fingerprint="body-1"):
    return Once(key, fingerprint, lambda outcome: (201, outcome.task.id.encode()))


def types_of(outcomes):
    return [type(outcome) for outcome in outcomes]


def used(store, account=ACCOUNT):
    with store.read() as reader:
        return reader.usage(account)


def fill(store, count=6):
    """Create tasks without an allowance, which are not charged."""
    transact(store, *(create(f"free-{number}") for number in range(count)))


# -- creating ----------------------------------------------------------------------------------------------------


def test_the_quota_is_exact_for_single_commands(store):
    assert types_of([run(store, charged_create(f"t{number}")) for number in range(3)]) == [Created] * 3
    with pytest.raises(QuotaExceeded):
        run(store, charged_create("t3"))
    assert used(store) == (Usage(START, 3), 0)
    assert [task.id for task in every(store, Task)] == ["t0", "t1", "t2"]
    check_log(store)


def test_the_quota_is_exact_within_one_transaction(store):
    outcomes = transact(store, *(charged_create(f"t{number}") for number in range(5)))
    assert types_of(outcomes) == [Created] * 3 + [QuotaExceeded] * 2
    assert used(store) == (Usage(START, 3), 0)
    check_log(store)


def test_the_quota_is_exact_with_a_batch_command_beside_others(store):
    run(store, charged_create("t0"))
    count, alone = transact(store, batch(*(charged_create(f"b{number}") for number in range(4))), charged_create("t1"))
    assert types_of(count.each) == [Created, Created, QuotaExceeded, QuotaExceeded]
    assert isinstance(alone, QuotaExceeded)
    assert used(store)[0] == Usage(START, 3)
    check_log(store)


def test_an_existing_task_is_not_charged(store):
    run(store, charged_create("t1", unique_key="k"))
    for number in range(5):
        assert run(store, charged_create(f"again-{number}", unique_key="k")).deduplicated
    assert used(store)[0].created == 1
    transact(store, charged_create("t2"), charged_create("t3"))
    assert run(store, charged_create("late", unique_key="k")).task.id == "t1"
    with pytest.raises(QuotaExceeded):
        run(store, charged_create("other", unique_key="k2"))
    assert used(store)[0].created == 3


def test_a_repeated_create_is_not_charged_and_works_when_the_quota_is_used(store):
    run(store, charged_create("t1", once=once()))
    assert isinstance(run(store, charged_create("t2", once=once())), Replayed)
    assert used(store)[0].created == 1
    transact(store, charged_create("t3"), charged_create("t4"))
    assert run(store, charged_create("t5", once=once())).body == b"t1"
    with pytest.raises(IdempotencyConflict):
        run(store, charged_create("t6", once=once(fingerprint="another")))
    assert used(store)[0].created == 3


def test_a_refused_create_is_not_charged_and_its_unique_key_stays_free(store, clock):
    transact(store, *(charged_create(f"t{number}") for number in range(3)))
    with pytest.raises(QuotaExceeded):
        run(store, charged_create("t3", once=once()))
    clock.now = START + CYCLE
    assert isinstance(run(store, charged_create("t4", once=once())), Created)
    assert used(store)[0] == Usage(START + CYCLE, 1)


def test_an_invalid_create_is_not_charged(store):
    # Core refuses a time in the past: this task is not charged, the others of the batch are.
    wrong = charged_create("wrong", scheduled_at=START)
    assert types_of(run(store, batch(charged_create("t1"), wrong, cancel("t9"), charged_create("t2"))).each) == [
        Created, Invalid, TaskMissing, Created,
    ]  # fmt: skip
    assert used(store)[0].created == 2


def test_cancelled_tasks_still_count_toward_the_quota(store):
    for number in range(3):
        run(store, charged_create(f"t{number}"))
        run(store, cancel(f"t{number}"))
    with pytest.raises(QuotaExceeded):
        run(store, charged_create("t3"))


def test_accounts_do_not_share_a_quota(store):
    outcomes = transact(store, *(charged_create(f"{who}-{n}", account=who) for n in range(4) for who in ("one", "two")))
    assert types_of(outcomes) == [Created] * 6 + [QuotaExceeded] * 2
    assert used(store, "one")[0] == used(store, "two")[0] == Usage(START, 3)


def test_a_new_cycle_begins_at_its_exact_instant(store, clock):
    transact(store, *(charged_create(f"t{number}") for number in range(3)))
    clock.now = START + CYCLE - 1
    with pytest.raises(QuotaExceeded):
        run(store, charged_create("early"))
    clock.now = START + CYCLE
    outcomes = [*transact(store, *(charged_create(f"new-{number}") for number in range(4)))]
    assert types_of(outcomes) == [Created] * 3 + [QuotaExceeded]
    assert used(store)[0] == Usage(START + CYCLE, 3)


def test_a_task_that_the_lapsed_plan_allowed_is_refused_with_plan_expired(store, clock):
    transact(store, *(charged_create(f"t{number}", EXPIRING) for number in range(4)))
    clock.advance(10)
    with pytest.raises(PlanExpired):
        run(store, charged_create("t4", EXPIRING))
    assert used(store)[0].created == 4
    with pytest.raises(QuotaExceeded):
        run(store, charged_create("t4", Allowance(SMALL, SMALL, None, START)))


def test_tasks_of_an_unlimited_account_are_counted_too(store):
    free = Allowance(UNLIMITED, UNLIMITED, None, START)
    transact(store, *(charged_create(f"t{number}", free) for number in range(4)))
    assert used(store)[0] == Usage(START, 4)
    with pytest.raises(QuotaExceeded):
        run(store, charged_create("t4"))


# -- claiming ----------------------------------------------------------------------------------------------------


def test_the_worker_limit_is_exact_for_single_claims(store):
    fill(store)
    assert types_of([run(store, claim(seed=seed)) for seed in "ab"]) == [Claimed] * 2
    with pytest.raises(MaxWorkersReached) as refusal:
        run(store, claim(seed="c"))
    assert refusal.value.billing == {"plan": "small", "workers_in_use": 2, "workers_limit": 2}
    with pytest.raises(MaxWorkersReached):
        run(store, claim_this("free-5"))
    assert used(store)[1] == 2
    check_log(store)


def test_a_claim_for_more_than_the_free_workers_gets_the_free_ones(store):
    fill(store)
    run(store, claim(seed="a"))
    assert len(run(store, claim(limit=5, seed="b")).taken) == 1
    assert used(store)[1] == 2
    assert [task.state for task in every(store, Task)].count(CLAIMED) == 2


def test_claims_of_one_transaction_share_the_worker_limit(store):
    fill(store)
    outcomes = transact(store, claim(seed="a"), claim_this("free-4", seed="b"), claim(seed="c"), claim_this("free-5"))
    assert types_of(outcomes) == [Claimed, Claimed, MaxWorkersReached, MaxWorkersReached]
    assert used(store)[1] == 2
    check_log(store)


@pytest.mark.parametrize("verb", [complete, fail, release_task])
def test_a_finished_task_frees_its_worker_in_the_same_transaction(store, verb):
    fill(store)
    transact(store, claim_this("free-0"), claim_this("free-1"))
    before, _, after = transact(store, claim_this("free-2"), verb("free-0"), claim_this("free-2"))
    assert types_of([before, after]) == [MaxWorkersReached, Claimed]
    assert used(store)[1] == 2
    check_log(store)


@pytest.mark.parametrize("swept", [True, False])
def test_a_lapsed_lease_frees_its_worker_before_and_after_the_sweep(store, clock, swept):
    fill(store)
    run(store, claim(limit=2))
    clock.now = START + LEASE - 1
    with pytest.raises(MaxWorkersReached):
        run(store, claim_this("free-5"))
    clock.now = START + LEASE
    if swept:
        sweep(store)
    assert used(store)[1] == 0
    assert isinstance(run(store, claim_this("free-4", seed="b")), Claimed)
    assert isinstance(run(store, claim_this("free-5", seed="b")), Claimed)
    with pytest.raises(MaxWorkersReached):
        run(store, claim_this("free-3", seed="b"))
    assert used(store)[1] == 2
    sweep(store)
    assert used(store)[1] == 2
    check_log(store)


def test_a_lapsed_task_that_is_claimed_again_counts_once(store, clock):
    transact(store, create("t1"), create("t2"), claim(limit=2))
    clock.now = START + LEASE
    assert isinstance(run(store, claim_this("t1", seed="b")), Claimed)
    assert used(store)[1] == 1


def test_an_empty_queue_answers_empty_only_below_the_worker_limit(store):
    assert isinstance(run(store, claim()), Empty)
    transact(store, create("t1"), create("t2"), claim(limit=2))
    with pytest.raises(MaxWorkersReached):
        run(store, claim(seed="b"))


def test_a_claim_at_the_worker_limit_leaves_the_queue_unchanged(store):
    fill(store, 3)
    run(store, claim(limit=2))
    before = every(store, Task)
    with pytest.raises(MaxWorkersReached):
        run(store, claim(limit=3, seed="b"))
    assert every(store, Task) == before
    assert [task.state for task in before] == [CLAIMED, CLAIMED, PENDING]


def test_after_a_lapse_the_lower_worker_limit_is_refused_with_plan_expired(store, clock):
    fill(store)
    run(store, claim(limit=3, allowance=EXPIRING))
    clock.advance(10)
    with pytest.raises(PlanExpired):
        run(store, claim(allowance=EXPIRING, seed="b"))
    with pytest.raises(MaxWorkersReached):
        run(store, claim(seed="c"))


def test_tasks_of_a_session_count_as_held_until_it_ends(store, clock):
    fill(store)
    run(store, begin())
    run(store, claim(limit=2, session_id="s1"))
    with pytest.raises(MaxWorkersReached):
        run(store, claim(seed="b"))
    clock.advance(60)
    sweep(store)
    assert used(store)[1] == 0
    assert isinstance(run(store, claim(limit=2, seed="b")), Claimed)


def test_accounts_do_not_share_a_worker_limit(store):
    transact(store, *(create(f"{who}-{n}", account=who) for who in ("one", "two") for n in range(3)))
    for who in ("one", "two"):
        assert len(run(store, claim(limit=3, account=who)).taken) == 2
        with pytest.raises(MaxWorkersReached):
            run(store, claim(account=who, seed="b"))
