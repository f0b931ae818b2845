"""A damaged task fails alone where one request names several: in a batch, a repeated claim and a bulk operation."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest

from holdfast.core.errors import DamagedRow
from holdfast.core.task import DEAD, Task
from holdfast.engine.verbs.tasks.claiming import ReviewClaim
from holdfast.transport.dashboard import bulk
from tests.damaged_records import without_rules, write
from tests.http.in_process_app import InProcessServer
from tests.http.job_client import ROOT_KEY
from tests.support import ACCOUNT, CAUSE, START, DrivenClock, every, make_store, run, transact
from tests.task_commands import BASE, LEASE, complete, create, fail, lease_of, take

TASKS = ("t0", "t1", "t2")


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path, new_postgres_database):
    """A store with three tasks that the worker holds."""
    clock = DrivenClock()
    store = make_store(request.param, tmp_path, new_postgres_database, clock)
    store.clock = clock
    transact(store, *(create(name, payload="{}") for name in TASKS), take("work", limit=3))
    yield store
    store.close()


def damage(store, name):
    with without_rules(store):
        write(store, f"UPDATE tasks SET payload = '{{' WHERE id = '{name}'")


def test_a_damaged_task_fails_only_its_own_item_of_a_batch(store):
    damage(store, "t1")
    store.clock.advance(9)
    items = [{"op": "heartbeat", "id": name, "leaseId": lease_of(name)} for name in TASKS]
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {ROOT_KEY}"}
    server = InProcessServer(store)
    try:
        answer = server.answer("POST", "/v1/tasks/batch", json.dumps({"items": items}).encode(), headers)
    finally:
        server.close()
    assert answer.status == 200, answer.raw
    assert [result["status"] for result in answer.json["results"]] == [200, 500, 200]
    assert (answer.json["succeeded"], answer.json["failed"]) == (2, 1)
    failed = answer.json["results"][1]
    assert (failed["error"], failed["applied"]) == ("damaged_row", "no")
    with store.read() as reader:
        assert {reader.row(Task, ACCOUNT, name).expires_at for name in ("t0", "t2")} == {store.clock.now + LEASE}


def test_a_repeated_claim_returns_its_leases_beside_a_damaged_task(store):
    damage(store, "t0")
    review = ReviewClaim(**BASE, task_ids=TASKS, lease_ids=tuple(map(lease_of, TASKS)))
    assert [(each.task.id, each.lease_id) for each in run(store, review).taken] == [
        (name, lease_of(name)) for name in ("t1", "t2")
    ]
    transact(store, complete("t1"), complete("t2"))
    with pytest.raises(DamagedRow):  # none is held any more: the first failure is the answer
        run(store, review)


def test_a_bulk_operation_skips_damaged_tasks(store):
    transact(store, *(fail(name, permanent=True) for name in TASKS))
    damage(store, "t1")

    async def run_command(command):
        return run(store, command)

    by = SimpleNamespace(account=ACCOUNT)
    operation = bulk.BulkOperation("b1", bulk.VERBS["requeue"], None, by, CAUSE, "root", START, len(TASKS))
    operations = bulk.BulkOperations(SimpleNamespace(run=run_command), None)
    asyncio.run(operations._run_batch(operation, list(TASKS)))
    assert (operation.done, operation.skipped) == (2, 1)
    assert "damaged" in operation.skip_reason
    assert DEAD not in {task.state for task in every(store, Task)}
