"""Fronts: a request is answered in the same way whichever process receives it."""

import json

from tests.compat.octostore.expect import eventually
from tests.faults.raw_socket import connect, read_answer
from tests.http.job_client import Callers, claimed, fresh, held, ok, root
from tests.streams.reading import follow
from tests.support import wait_until
from tests.telemetry.conftest import Watch


def test_a_job_is_claimed_renewed_and_released(alice):
    job = fresh()
    lease = claimed(alice.claim(job, "me", metadata={"a": 1}))
    assert held(alice.claim(job, "you"))["owner"] == "me"
    assert ok(alice.heartbeat(job, lease["lease_id"], checkpoint={"page": 2}))["status"] == "claimed"
    assert ok(alice.release_job(job, lease["lease_id"]))["previous"]["checkpoint"] == {"page": 2}


def test_a_task_is_created_claimed_and_completed(alice):
    made = alice.post("/v1/tasks", {"type": fresh("type"), "payload": {"n": 1}})
    assert made.status == 201
    claim = alice.post("/v1/tasks/claim", {"type": made.json["type"]})
    assert claim.json["id"] == made.json["id"]
    done = alice.post(f"/v1/tasks/{made.json['id']}/complete", {"lease_id": claim.json["leaseId"], "result": {"n": 2}})
    assert done.status == 200
    assert alice.get(f"/v1/tasks/{made.json['id']}").json["result"] == {"n": 2}


def test_a_request_of_http_1_0_has_no_host_and_keeps_the_connection_if_it_asks(fronted):
    with connect(fronted.port) as connection:
        for _ in range(2):
            connection.sendall(b"GET /health HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")
            answer = read_answer(connection)
            assert (answer.status, answer.header("Connection")) == (200, "keep-alive")


def test_a_batch_has_the_result_of_each_item(alice):
    items = [{"op": "create", "type": "work", "payload": {}}, {"op": "cancel", "id": "tsk_00000000000000000000000000"}]
    results = ok(alice.post("/v1/tasks/batch", {"items": items}))["results"]
    assert [result["status"] for result in results] == [201, 404]


def test_files_are_renewed_together_with_a_job_by_a_key_that_covers_them(alice, fronted):
    made = root(fronted).post("/v1/keys", {"name": "k", "scopes": ["jobs"], "prefix": "team/"}).json
    limited = alice.with_headers(Authorization=f"Bearer {made['apiKey']}")
    name = f"team/{fresh()}"
    lease = claimed(limited.claim(name, "me"))
    leases = [{"job_id": name, "lease_id": lease["lease_id"]}]
    for caller, space in ((limited, name), (root(fronted), fresh("other"))):
        reserved = ok(caller.post("/v1/reservations", {"space": space, "owner": "me", "paths": ["src/**"]}))
        leases.append({field: reserved[field] for field in ("reservation_id", "lease_id")})
    for caller, statuses in ((limited, [200, 200, 404]), (root(fronted), [200, 200, 200])):
        results = ok(caller.post("/v1/heartbeats", {"leases": leases}))["results"]
        assert [result["status"] for result in results] == statuses


def test_a_lock_is_acquired_and_refused(alice, fronted):
    name = fresh("lock")
    lease = alice.acquire(name)
    assert lease.json["status"] == "acquired"
    assert root(fronted).acquire(name).json["status"] == "held"
    assert alice.release(name, lease.json["lease_id"]).status == 200


def test_errors_are_those_of_the_engine(alice):
    refused = alice.heartbeat(fresh(), "00000000-0000-4000-8000-000000000000")
    assert (refused.status, refused.json["error"]) == (409, "lease_lost")
    assert alice.claim(fresh(), "").status == 400
    assert alice.post("/v1/nothing", {}).status == 404


def test_a_claim_that_waits_gets_the_job_and_shows_how_many_wait(alice):
    job = fresh()
    lease = claimed(alice.claim(job, "me"))
    with Callers() as callers:
        waiter = callers.send(alice.claim, job, "you", wait_seconds=15)
        eventually(lambda: held(alice.claim(job, "looking"))["waiting"], lambda seen: seen == 1, within=5)
        ok(alice.release_job(job, lease["lease_id"]))
        assert claimed(waiter.result(5)[0])["owner"] == "you"


def test_a_repeated_request_gets_the_first_answer(alice):
    job, once = fresh(), alice.under_key(fresh("key"))
    first = once.claim(job, "me")
    again = once.claim(job, "me")
    assert again.json["lease_id"] == first.json["lease_id"]
    assert again.header("Idempotency-Replayed") == "true"


def test_a_name_written_with_escapes_is_still_a_wait(alice):
    job = fresh()
    claimed(alice.claim(job, "me"))
    body = '{"owner": "you", "wait\\u005fseconds": 1}'
    answer = alice.send("POST", f"/v1/jobs/{job}/claim", body.encode())
    assert "waiting_id" in json.loads(answer.raw)


def test_pages_streams_heads_and_large_bodies_are_forwarded(alice):
    job = fresh()
    with follow(alice) as stream:
        claimed(alice.claim(job, "me"))
        while job not in stream.frame():
            pass
    head = alice.send("HEAD", f"/v1/jobs/{job}", b"")
    assert (head.status, head.raw) == (200, b"")
    assert alice.get("/v1/events?limit=500").status == 200
    large = alice.post("/v1/tasks", {"type": "work", "payload": {"text": "x" * 200_000}})
    assert (large.status, large.json["error"]) == (400, "invalid_request")


def test_a_revoked_key_is_refused_by_every_process(alice, fronted):
    boss = root(fronted)
    made = boss.post("/v1/keys", {"name": "k", "scopes": ["jobs"]}).json
    caller = alice.with_headers(Authorization=f"Bearer {made['apiKey']}")
    claimed(caller.claim(fresh(), "me"))
    ok(boss.delete(f"/v1/keys/{made['keyId']}"))
    assert caller.claim(fresh(), "me").status == 401


def test_requests_of_all_processes_are_counted_together(alice, fronted):
    watch = Watch(fronted)
    for _ in range(5):
        claimed(alice.claim(fresh(), "me"))
    assert watch.more("holdfast_claims_total", family="job", outcome="granted") == 5
    assert watch.value("holdfast_workers") == 2


def test_a_lone_caller_is_answered_by_the_engine_process(fronted):
    assert fronted.accepts_at_front()
    fronted.free_engine()
    wait_until(lambda: not fronted.accepts_at_front())
    fronted.occupy_engine()
