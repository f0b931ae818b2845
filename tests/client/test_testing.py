"""The pytest plugin: an empty engine in memory for each test, whose time a test moves."""

import subprocess
import sys

import pytest

import holdfast

pytest_plugins = ["holdfast.testing"]


@pytest.mark.parametrize("test", [1, 2])
def test_every_test_has_an_empty_engine(holdfast_client, test):
    assert holdfast_client.list_tasks()["tasks"] == []
    holdfast_client.create_task("x", {})


def test_a_retry_is_run_after_its_time(holdfast_client):
    worker, attempts = holdfast.Worker(holdfast_client), []

    @worker.task("fetch")
    def fetch(context):
        attempts.append(context.previous and context.previous["errorCode"])
        if len(attempts) < 3:
            raise holdfast.Retry("the service is down", after=600)

    task = holdfast_client.create_task("fetch", {})
    assert [worker.run_until_idle() for _ in range(2)] == [1, 0]
    holdfast_client.advance(590)
    assert worker.run_until_idle() == 0
    holdfast_client.advance(10)
    assert worker.run_until_idle() == 1
    holdfast_client.advance(3600)
    assert worker.run_until_idle() == 1
    assert holdfast_client.check_task_status(task["id"])["status"] == "completed"
    assert attempts == [None, "Retry", "Retry"]


def test_a_scheduled_task_is_ready_when_it_is_due(holdfast_client):
    worker = holdfast.Worker(holdfast_client)
    worker.task("report")(lambda context: None)
    holdfast_client.create_task("report", {}, scheduled_at="2026-01-02T00:00:00Z")
    assert worker.run_until_idle() == 0
    holdfast_client.advance(24 * 3600)
    assert worker.run_until_idle() == 1


def test_a_lease_expires_when_its_time_has_passed(holdfast_client):
    holdfast_client.claim_job("deploy", "first", ttl=60)
    holdfast_client.advance(59)
    assert holdfast_client.get_job_owner("deploy")["owner"] == "first"
    holdfast_client.advance(1)
    assert holdfast_client.claim_job("deploy", "second", ttl=60)["status"] == "claimed"
    task = holdfast_client.create_task("x", {})
    assert holdfast_client.claim_task(type="x")["task"]["id"] == task["id"]
    holdfast_client.advance(300)
    assert holdfast_client.claim_task(type="x")["task"]["attemptCount"] == 2
    with pytest.raises(ValueError, match="does not go back"):
        holdfast_client.advance(-1)


def test_a_worker_imports_neither_pytest_nor_pydantic():
    program = "import sys, holdfast; holdfast.Worker; print({'pytest', 'pydantic'} & sys.modules.keys())"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"
