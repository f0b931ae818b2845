"""Sixty-four concurrent callers at the limit of a plan, over one server and over two: limits are exact."""

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
    """Starts the servers of a store with a plan: two on PostgreSQL."""
    plans = tmp_path / "plans.toml"
    plans.write_text(PLANS)

    def start(plan):
        url = new_store_url()
        return [new_server(url, PLANS=str(plans), PLAN=plan).start() for _ in range(2 if store == "postgres" else 1)]

    return start


def clients_of(servers):
    """Clients of one account, one for each server."""
    account = register(servers[0].anyone)
    return [Account(server.port, account.headers, id=account.id) for server in servers]


def race(clients, call, count=CALLERS):
    """Send all requests at once, evenly over the servers; the answers."""
    barrier = threading.Barrier(count)

    def run(number):
        barrier.wait(20)
        return call(clients[number % len(clients)], number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def count_answers(answers):
    return Counter((answer.status, answer.json.get("error")) for answer in answers)


def fill(account, many):
    items = [{"op": "create", "type": "work", "payload": {}}] * many
    assert done(account.post("/v1/tasks/batch", {"items": items}))["succeeded"] == many


def test_of_64_concurrent_creates_exactly_the_last_ten_of_the_month_succeed(servers):
    running = servers("counted")
    clients = clients_of(running)
    fill(clients[0], QUOTA - LAST)
    answers = race(clients, lambda client, _: client.create())
    assert count_answers(answers) == {(201, None): LAST, (402, "quota_exceeded"): CALLERS - LAST}
    for client in clients:
        assert done(client.get("/v1/account"))["usage"] == {"tasksCreated": QUOTA, "tasksLeft": 0, "workersInUse": 0}
    with opened(running[0].store) as store:
        assert len(every(store, Task)) == QUOTA
    assert_store_is_consistent(running[0].store)


def test_repeated_creates_and_batches_cannot_exceed_the_monthly_limit(servers):
    """Half of the callers repeat creates under eight keys, half send batches of three: the limit stays exact."""
    running = servers("counted")
    clients = clients_of(running)
    fill(clients[0], QUOTA - LAST)
    body = {"type": "work", "payload": {}}
    items = [{"op": "create", **body}] * 3

    def call(client, number):
        if number % 2:
            return client.post("/v1/tasks/batch", {"items": items})
        return client.with_headers(Idempotency_Key=f"key-{number % 16}").send_json("POST", "/v1/tasks", body)

    answers = race(clients, call, 32)
    assert {answer.status for answer in answers} <= {200, 201, 402}
    with opened(running[0].store) as store:
        assert len(every(store, Task)) == QUOTA
        with store.read() as reader:
            assert reader.usage(clients[0].id)[0].created == QUOTA
    assert_store_is_consistent(running[0].store)


def test_of_64_concurrent_claims_as_many_succeed_as_the_plan_allows(servers):
    running = servers("counted")
    clients = clients_of(running)
    fill(clients[0], CALLERS)
    answers = race(clients, lambda client, number: client.claim(worker_id=f"w{number}"))
    assert count_answers(answers) == {(200, None): WORKERS, (429, "max_workers_reached"): CALLERS - WORKERS}
    taken = [answer.json for answer in answers if answer.status == 200]
    assert len({task["id"] for task in taken}) == WORKERS
    # Half of the tasks are completed, and all callers claim again, this time by id.
    for task in taken[: WORKERS // 2]:
        done(clients[-1].complete(task["id"], lease_id=task["leaseId"]))
    waiting = [task["id"] for task in done(clients[0].list("status=pending&limit=100"))["tasks"]]
    again = race(clients, lambda client, number: client.do("claim", waiting[number]), len(waiting))
    assert count_answers(again) == {
        (200, None): WORKERS // 2,
        (429, "max_workers_reached"): len(waiting) - WORKERS // 2,
    }
    with opened(running[0].store) as store:
        assert sum(task.state == CLAIMED for task in every(store, Task)) == WORKERS
    assert_store_is_consistent(running[0].store)


def test_servers_share_a_budget_of_requests(servers):
    """The limit is never exceeded, and at most a tenth of it stays unused."""
    clients = clients_of(servers("rated"))
    served = Counter()
    lock = threading.Lock()

    def ask(client, number):
        while (answer := client.get("/v1/tasks?limit=1")).status == 200:
            with lock:
                served[client.port] += 1
        return answer

    answers = race(clients, ask, 16)
    assert count_answers(answers) == {(429, "rate_limited"): 16}
    assert all(0 < int(answer.header("Retry-After")) <= 3600 for answer in answers)
    assert READS * 0.9 <= served.total() <= READS


def test_a_server_reserves_only_a_small_part_of_the_budget(servers):
    clients = clients_of(servers("rated"))
    for client in clients[1:]:
        assert client.create().status == 201
    made = 0
    while clients[0].create().status == 201:
        made += 1
    assert made >= CREATES * 0.9
    for client in clients[1:]:
        while client.create().status == 201:
            made += 1
    assert made + len(clients[1:]) == CREATES


def test_servers_share_the_registration_limit_of_an_address(servers):
    clients = [server.anyone for server in servers("rated")]
    answers = race(clients, lambda client, _: client.post("/v1/keys/register"), 24)
    assert count_answers(answers) == {(201, None): 10, (429, "rate_limited"): 14}
