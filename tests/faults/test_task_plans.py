"""Plans while workers and servers are killed: every task starts after all it needs, and nobody is left waiting."""

import json
import random

import pytest

from tests.compat.octostore.expect import eventually
from tests.compat.orchestrion.account import register
from tests.compat.orchestrion.expect import claimed, created
from tests.faults.test_task_crews import PATIENCE_SECONDS, Works
from tests.http.replies import done
from tests.proof_size import sized
from tests.store_inspection import assert_store_is_consistent, events_by_task, events_of

pytestmark = pytest.mark.waits(25)

KILLS = sized(1, 12)
DEPENDENTS = sized(1_200, 10_000)


class Plan(Works):
    """One plan of tasks with random dependencies, sixteen workers on two servers."""

    tasks, workers = sized(30, 1_000), 8

    def make(self, count):
        rng = random.Random(count)
        names = [f"step-{number}" for number in range(count)]
        items = [
            {"op": "create", "type": "work", "payload": {}, "maxAttempts": 10, "ref": name}
            | {"dependsOn": rng.sample(names[:place][-40:], rng.randint(0, min(place, 3)))}
            for place, name in enumerate(names)
        ]
        rng.shuffle(items)
        results = done(self.account.post("/v1/tasks/batch", {"items": items}))["results"]
        ids = {item["ref"]: result["task"]["id"] for item, result in zip(items, results, strict=True)}
        self.needs = {ids[item["ref"]]: [ids[name] for name in item["dependsOn"]] for item in items}
        return list(ids.values())


@pytest.fixture
def plan(new_postgres_database, new_server):
    works = Plan(new_postgres_database(), new_server)
    yield works
    for each in works.all:
        each.end()


def test_every_task_of_a_plan_starts_after_all_it_needs_and_is_completed_once(plan):
    rng = random.Random(28)
    working = [plan.start() for _ in range(2)]
    for kill in range(1, KILLS + 1):
        plan.wait_for(plan.tasks * kill // (KILLS + 2))
        doomed = rng.choice(plan.wait_until_holding(working))
        working.remove(doomed)
        doomed.end()
        working.append(plan.start())
    plan.wait_for(plan.tasks)
    for each in plan.all:
        each.end()
    history = events_by_task(events_of(plan.url, plan.account.id))
    ended = {}
    for task_id, events in history.items():
        (ended[task_id],) = [event.seq for event in events if event.kind == "task.completed"]
    assert ended.keys() == plan.needs.keys()
    for task_id, needed in plan.needs.items():
        began = min(event.seq for event in history[task_id] if event.kind == "task.claimed")
        assert all(ended[each] < began for each in needed)
    assert_store_is_consistent(plan.url)


def test_all_dependents_are_ready_although_the_server_is_killed_after_the_completion(new_store_url, new_server):
    url = new_store_url()
    server = new_server(url).start()
    account = register(server.anyone)
    needed = created(account.create())
    item = {"op": "create", "type": "after", "payload": {}, "dependsOn": [needed["id"]]}
    for place in range(0, DEPENDENTS, 1000):
        items = [item] * min(1000, DEPENDENTS - place)
        assert done(account.post("/v1/tasks/batch", {"items": items}))["failed"] == 0
    held = claimed(account.do("claim", needed["id"]))
    assert account.complete(needed["id"], lease_id=held["leaseId"]).status == 200
    server.kill()
    server.start()

    def is_any_left():
        return bool(done(account.list("waiting=dependencies&limit=1"))["tasks"])

    eventually(is_any_left, lambda left: not left, within=PATIENCE_SECONDS)
    server.close()
    log = events_of(url, account.id)
    freed = [json.loads(event.data) for event in log if event.kind == "task.dependency_met"]
    assert (len(freed), {data["ready"] for data in freed}) == (DEPENDENTS, {True})
    assert_store_is_consistent(url)
