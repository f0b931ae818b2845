"""`POST /v1/recover`: expired leases end now, and each is reported once."""

import time

from tests.compat.orchestrion.account import Account, register
from tests.http.job_client import Callers, agent, job_path, problem
from tests.http.replies import done, events, nothing_changes
from tests.http.session_client import begin

pytest_plugins = ["tests.http.fresh_accounts"]

JOBS = 60


def test_where_nothing_has_run_out_nothing_is_recovered(account):
    begin(account)
    with nothing_changes(account):
        body = done(account.post("/v1/recover"))
    assert (body["recovered"], body["tasks"], body["sessions"], body["jobs"]) == (0, [], [], [])


def test_only_an_admin_recovers(server):
    assert problem(agent(server).post("/v1/recover"), 403, "forbidden")["scope"] == "admin"


def test_two_servers_recover_everything_once_and_report_it_once(postgres_server, second_postgres_server):
    here = register(postgres_server.anyone)
    assert_recovered_once(here, Account(second_postgres_server.port, here.headers))


def test_callers_of_one_server_recover_everything_once_and_report_it_once(account):
    assert_recovered_once(account, account)


def assert_recovered_once(here, there):
    """Jobs run out one after the other while four callers recover as fast as they can, beside the sweep."""
    first = time.monotonic()
    for number in range(JOBS):
        done(here.post(job_path(f"job-{number}", "/claim"), {"owner": "me", "ttl_seconds": 1}))
    time.sleep(max(0.0, first + 1 - time.monotonic()))

    def recover(caller):
        told = []
        while len(events(here, "kind=lease.expired")) < JOBS:
            answer = caller.post("/v1/recover")
            body = done(answer)
            assert body["recovered"] == len(body["jobs"])
            told += [(answer.header("X-Request-Id"), f"lease:{name}") for name in body["jobs"]]
        return told

    with Callers() as callers:
        calls = [callers._pool.submit(recover, caller) for caller in (here, there) * 2]
        told = [each for call in calls for each in call.result(15)]
    ended = events(here, "kind=lease.expired")
    assert sorted(event["subject"] for event in ended) == sorted(f"lease:job-{number}" for number in range(JOBS))
    by_callers = [(event["request_id"], event["subject"]) for event in ended if event["actor"] != "sweep"]
    assert sorted(told) == sorted(by_callers), "each caller tells what it ended itself, and nothing else"
