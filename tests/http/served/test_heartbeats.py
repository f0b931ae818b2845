"""Many leases renewed in one request: one transaction, and for each lease the outcome it would have had alone."""

import pytest

from tests.compat.orchestrion.account import Account
from tests.compat.orchestrion.states import held
from tests.http.job_client import fresh, job_path
from tests.http.replies import caused_by, done, nothing_changes, refused_as_problem
from tests.http.session_client import begin

pytest_plugins = ["tests.http.fresh_accounts"]


def heartbeats(account, *leases):
    return account.post("/v1/heartbeats", {"leases": leases})


def results(answer):
    body = done(answer)
    statuses = [result["status"] for result in body["results"]]
    assert body["succeeded"] == statuses.count(200)
    assert body["failed"] == len(statuses) - body["succeeded"]
    best = body["agent_contract"]["next_actions"][0]["action"]
    assert best == ("stop_work" if body["failed"] else "heartbeat_leases")
    return body["results"]


def a_job(account, **fields):
    claimed = done(account.post(job_path(fresh(), "/claim"), {"owner": "me", **fields}))
    return {"job_id": claimed["job_id"], "lease_id": claimed["lease_id"]}


def a_task(account, **fields):
    claimed = held(account, **fields)
    return {"task_id": claimed["id"], "lease_id": claimed["leaseId"]}


def some_files(account, space="acme/shop", **fields):
    body = {"space": space, "owner": "me", "paths": [fresh()], **fields}
    reserved = done(account.post("/v1/reservations", body))
    return {"reservation_id": reserved["reservation_id"], "lease_id": reserved["lease_id"]}


def owner(account, job):
    return done(account.get(job_path(job["job_id"])))


def key_of(account, *scopes, **fields):
    made = done(account.post("/v1/keys", {"name": "limited", "scopes": scopes, **fields}), 201)
    return Account(account.port, {"Authorization": f"Bearer {made['apiKey']}"})


def test_jobs_tasks_and_files_are_renewed_in_one_transaction(account):
    job, task = a_job(account, ttl_seconds=90), a_task(account, leaseDurationSeconds=60)
    files, short = some_files(account), a_job(account, ttl_seconds=1)
    answer = heartbeats(account, job, task, files, short)
    assert results(answer) == [
        {"status": 200, "expires_in_seconds": 90, "heartbeat_every_seconds": 30},
        {"status": 200, "expires_in_seconds": 60, "heartbeat_every_seconds": 20, "cancel_requested": False},
        {"status": 200, "expires_in_seconds": 900, "heartbeat_every_seconds": 300},
        {"status": 200, "expires_in_seconds": 1, "heartbeat_every_seconds": pytest.approx(0.333)},
    ]
    events = caused_by(account, answer)
    kinds = ["lease.renewed", "task.renewed", "reservation.renewed", "lease.renewed"]
    assert [event["kind"] for event in events] == kinds
    assert len({event["at"] for event in events}) == 1
    assert owner(account, job)["expires_at"] == next(event["data"]["expires_at"] for event in events)


def test_a_note_is_kept_for_the_next_holder(account):
    job, task = a_job(account), a_task(account)
    results(heartbeats(account, job | {"note": "half way"}, task | {"note": "tests pass"}))
    results(heartbeats(account, job, task))
    assert owner(account, job)["note"] == "half way"
    assert done(account.read_task(task["task_id"]))["note"] == "tests pass"


def test_a_lease_that_is_refused_does_not_affect_the_others(account):
    mine, lost, task, late = a_job(account), a_job(account), a_task(account), a_task(account)
    done(account.post(job_path(lost["job_id"], "/force-release"), {"reason": "we need it"}))
    done(account.post(job_path(lost["job_id"], "/claim"), {"owner": "another"}))
    done(account.do("cancel", late["task_id"], mode="force"))
    done(account.do("cancel", task["task_id"], mode="request"))
    nobody = {"lease_id": mine["lease_id"]}
    found = results(
        heartbeats(
            account,
            *(lost, late, nobody | {"job_id": fresh()}, nobody | {"task_id": "tsk_nobody"}),
            *(nobody, mine | {"task_id": "x"}, {"job_id": "..", "lease_id": "x"}, mine | {"note": "x" * 4097}),
            *(mine, task),
        )
    )
    assert [(result["status"], result.get("error")) for result in found] == [
        *((409, "lease_lost"), (409, "lease_superseded"), (409, "lease_lost"), (404, "task_not_found")),
        *((400, "invalid_request"),) * 4,
        *((200, None), (200, None)),
    ]
    assert (found[0]["held_by"], found[-1]["cancel_requested"]) == ("another", True)
    assert not any(lease["lease_id"] in str(found) for lease in (lost, late, mine, task))


def test_each_lease_needs_the_scope_and_the_prefix_of_its_own_operation(account):
    job, task = a_job(account), a_task(account)
    inside = {"owner": "me"}
    for key, expected in (
        (key_of(account, "jobs"), [200, 403]),
        (key_of(account, "tasks:work"), [403, 200]),
        (key_of(account, "jobs", "tasks", prefix="team/"), [403, 403]),
    ):
        assert [result["status"] for result in results(heartbeats(key, job, task))] == expected
    limited = key_of(account, "jobs", prefix="team/")
    name = f"team/{fresh()}"
    claimed = done(limited.post(job_path(name, "/claim"), inside))
    (result,) = results(heartbeats(limited, {"job_id": name, "lease_id": claimed["lease_id"]}))
    assert result["status"] == 200
    refused_as_problem(heartbeats(key_of(account, "read"), job), 403, "forbidden")


def test_files_that_are_lost_or_not_there_do_not_affect_the_others(account):
    mine, lost = some_files(account), some_files(account)
    done(account.post(f"/v1/reservations/{lost['reservation_id']}/force-release", {"reason": "we need them"}))
    wrong = [
        lost,
        mine | {"lease_id": lost["lease_id"]},
        mine | {"reservation_id": lost["lease_id"]},
        mine | {"reservation_id": "x"},
        mine | {"note": "half way"},
        mine | {"job_id": "x"},
    ]
    *found, last = results(heartbeats(account, *wrong, mine))
    assert [(result["status"], result["error"]) for result in found] == [
        *((409, "lease_lost"),) * 2,
        *((404, "reservation_not_found"),) * 2,
        *((400, "invalid_request"),) * 2,
    ]
    assert (found[0]["ended"], found[0]["reason"], last["status"]) == ("forced", "we need them", 200)


def test_files_need_a_key_that_covers_their_space(account):
    inside, outside = some_files(account, "team/shop"), some_files(account, "acme/shop")
    upper = outside | {"reservation_id": outside["reservation_id"].upper()}
    for key, expected in (
        (key_of(account, "jobs", prefix="team/"), [200, 404, 404]),
        (key_of(account, "jobs"), [200, 200, 200]),
        (key_of(account, "tasks:work"), [403, 403, 403]),
    ):
        assert [result["status"] for result in results(heartbeats(key, inside, outside, upper))] == expected


@pytest.mark.parametrize("leases", [[], [{"job_id": "x", "lease_id": "x"}] * 501, [{"job_id": "x"}], "x", [7]])
def test_a_list_of_the_wrong_length_or_form_is_refused_as_a_whole(account, leases):
    with nothing_changes(account):
        refused_as_problem(account.post("/v1/heartbeats", {"leases": leases}), 400, "invalid_request")


def test_five_hundred_leases_are_renewed_at_once(account):
    job = a_job(account)
    answer = heartbeats(account, *[job] * 500)
    assert {result["status"] for result in results(answer)} == {200}


def test_a_lease_lasts_no_longer_than_the_session_it_was_claimed_for(account):
    session = begin(account, fresh("agent"), ttl_seconds=10)
    job = a_job(account, ttl_seconds=120, session_id=session["session_id"])
    (result,) = results(heartbeats(account, job))
    assert result["expires_in_seconds"] <= 10
    assert result["heartbeat_every_seconds"] <= 3
