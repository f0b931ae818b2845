"""Sixty-four callers at once for the last of what a plan allows, over one server and over two: exact to the last."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.core.task import CLAIMED, Task
from tests.compat.orchestrion.account import Account, register
from tests.http.replies import done
from tests.store_inspection import assert_store_is_consistent, opened
from tests.support import every

CALLERS, LAST = 64, 10
QUOTA, WORKERS, READS, CREATES = 150, LAST, 200, 100

PLANS = f"""
[counted]
tasks_per_month = {QUOTA}
max_workers = {WORKERS}

[rated]
reads_per_hour = {READS}
creates_per_hour = {CREATES}
"""


@pytest.fixture
def servers(store, new_store_url, new_server, tmp_path):
    """Call it with a plan for the servers of a store: PostgreSQL has two."""
    plans = tmp_path / "plans.toml"
    plans.write_text(PLANS)

    def start(plan):
        url = new_store_url()
        return [new_server(url, PLANS=str(plans), PLAN=plan).start() for _ in range(2 if store == "postgres" else 1)]

    return start


def everywhere(servers):
    """The same account, knocking at each server."""
    account = register(servers[0].anyone)
    return [Account(server.port, account.headers, id=account.id) for server in servers]


def race(doors, call, callers=CALLERS):
    """All at once, evenly over the servers; what each was answered."""
    gate = threading.Barrier(callers)

    def run(place):
        gate.wait(20)
        return call(doors[place % len(doors)], place)

    with ThreadPoolExecutor(callers) as pool:
        return list(pool.map(run, range(callers)))


def told(answers):
    return Counter((answer.status, answer.json.get("error")) for answer in answers)


def fill(account, many):
    items = [{"op": "create", "type": "work", "payload": {}}] * many
    assert done(account.post("/v1/tasks/batch", {"items": items}))["succeeded"] == many


def test_of_64_who_want_the_last_ten_tasks_of_a_month_ten_get_one(servers):
    running = servers("counted")
    doors = everywhere(running)
    fill(doors[0], QUOTA - LAST)
    answers = race(doors, lambda ctx, _: ctx.create())
    assert told(answers) == {(201, None): LAST, (402, "quota_exceeded"): CALLERS - LAST}
    for ctx in doors:
        assert done(ctx.get("/v1/account"))["usage"] == {"tasksCreated": QUOTA, "tasksLeft": 0, "workersInUse": 0}
    with opened(running[0].store) as store:
        assert len(every(store, Task)) == QUOTA
    assert_store_is_consistent(running[0].store)


def test_repetitions_and_batches_race_for_the_last_ten_too(servers):
    """Half repeat each other under eight keys, half send three at a time: the month ends at its number all the same."""
    running = servers("counted")
    doors = everywhere(running)
    fill(doors[0], QUOTA - LAST)
    body = {"type": "work", "payload": {}}
    items = [{"op": "create", **body}] * 3

    def call(ctx, place):
        if place % 2:
            return ctx.post("/v1/tasks/batch", {"items": items})
        return ctx.saying(Idempotency_Key=f"key-{place % 16}").send_json("POST", "/v1/tasks", body)

    answers = race(doors, call, 32)
    assert {answer.status for answer in answers} <= {200, 201, 402}
    with opened(running[0].store) as store:
        assert len(every(store, Task)) == QUOTA
        with store.read() as reader:
            assert reader.usage(doors[0].id)[0].created == QUOTA
    assert_store_is_consistent(running[0].store)


def test_of_64_who_want_to_hold_a_task_as_many_do_as_the_plan_allows(servers):
    running = servers("counted")
    doors = everywhere(running)
    fill(doors[0], CALLERS)
    answers = race(doors, lambda ctx, place: ctx.claim(worker_id=f"w{place}"))
    assert told(answers) == {(200, None): WORKERS, (429, "max_workers_reached"): CALLERS - WORKERS}
    taken = [answer.json for answer in answers if answer.status == 200]
    assert len({task["id"] for task in taken}) == WORKERS
    # Half of them end, and everybody comes again, by id this time.
    for task in taken[: WORKERS // 2]:
        done(doors[-1].complete(task["id"], lease_id=task["leaseId"]))
    waiting = [task["id"] for task in done(doors[0].list("status=pending&limit=100"))["tasks"]]
    again = race(doors, lambda ctx, place: ctx.do("claim", waiting[place]), len(waiting))
    assert told(again) == {
        (200, None): WORKERS // 2,
        (429, "max_workers_reached"): len(waiting) - WORKERS // 2,
    }
    with opened(running[0].store) as store:
        assert sum(task.state == CLAIMED for task in every(store, Task)) == WORKERS
    assert_store_is_consistent(running[0].store)


def test_servers_share_a_budget_of_requests(servers):
    """Never more than the limit; and what one server keeps from the other is a tenth at most."""
    doors = everywhere(servers("rated"))
    served = Counter()
    lock = threading.Lock()

    def ask(ctx, place):
        while (answer := ctx.get("/v1/tasks?limit=1")).status == 200:
            with lock:
                served[ctx.port] += 1
        return answer

    answers = race(doors, ask, 16)
    assert told(answers) == {(429, "rate_limited"): 16}
    assert all(0 < int(answer.header("Retry-After")) <= 3600 for answer in answers)
    assert READS * 0.9 <= served.total() <= READS


def test_what_a_server_has_borrowed_and_not_spent_is_little(servers):
    doors = everywhere(servers("rated"))
    for ctx in doors[1:]:
        assert ctx.create().status == 201
    made = 0
    while doors[0].create().status == 201:
        made += 1
    assert made >= CREATES * 0.9
    for ctx in doors[1:]:
        while ctx.create().status == 201:
            made += 1
    assert made + len(doors[1:]) == CREATES


def test_servers_share_what_an_address_may_register(servers):
    callers = [server.anyone for server in servers("rated")]
    answers = race(callers, lambda caller, _: caller.post("/v1/keys/register"), 24)
    assert told(answers) == {(201, None): 10, (429, "rate_limited"): 14}
