"""`/readyz`: the state of each part of a server, and the names of parts that are stuck."""

import threading

import pytest

from holdfast.engine import lanes
from holdfast.settings import Settings
from holdfast.telemetry.heartbeats import LoopHeartbeats
from holdfast.telemetry.registry import Registry
from holdfast.transport.http.system import health
from tests.http.in_process_app import InProcessApp
from tests.support import claim, wait_until


@pytest.fixture
def app():
    app = InProcessApp(Settings(allow_insecure_http=True))
    yield app
    app.close()


def test_a_healthy_server_names_each_part_with_its_last_success(server):
    answer = server.anyone.get("/readyz")
    assert answer.status == 200
    assert answer.json["status"] == "ready"
    parts = answer.json["parts"]
    assert parts.keys() >= {"store", "lanes", "sweep", "retention", "uses"}
    assert all(part["ok"] for part in parts.values()), parts
    assert 0 <= parts["sweep"]["last_success_seconds_ago"] < 10
    assert parts["retention"]["last_success_seconds_ago"] is None or parts["retention"]["ok"]
    assert server.anyone.get("/healthz").json == {"status": "ok"}


def stuck(answer, part):
    assert answer.status == 503, answer.json
    assert answer.json["reason"] == f"stuck: {part}"
    assert answer.json["parts"][part]["ok"] is False
    assert answer.header("Retry-After") == "1"


def test_a_stuck_lane_is_named(app, monkeypatch):
    monkeypatch.setattr(lanes, "STUCK_SECONDS", 0.2)
    inside, go_on, load = threading.Event(), threading.Event(), app.engine.store.transaction

    def slow(lane=0):
        inside.set()
        go_on.wait(20)
        return load(lane)

    monkeypatch.setattr(app.engine.store, "transaction", slow)
    waiting = threading.Thread(target=app.engine.call, args=(claim("a", "l1"),))
    waiting.start()
    try:
        assert inside.wait(10)
        wait_until(lambda: app.ask("/readyz").status == 503)
        stuck(app.ask("/readyz"), "lanes")
        assert app.ask("/healthz").status == 200, "it is alive"
    finally:
        go_on.set()
        waiting.join()
    wait_until(lambda: app.ask("/readyz").status == 200)


def test_health_does_not_wait_for_a_store_that_does_not_answer(app, monkeypatch):
    monkeypatch.setattr(health, "STORE_SECONDS", 0.2)
    go_on, read = threading.Event(), app.engine.store.read

    def silent():
        assert go_on.wait(20)
        return read()

    monkeypatch.setattr(app.engine.store, "read", silent)
    give_up = threading.Timer(10, go_on.set)
    give_up.start()
    try:
        answer = app.ask("/health")
        assert not go_on.is_set()
        assert (answer.status, answer.json["status"], answer.json["leaseExpiryJob"]["staleSec"]) == (200, "ok", None)
        assert app.ask("/readyz").json["reason"] == "store_unavailable"
    finally:
        give_up.cancel()
        go_on.set()


def test_a_late_loop_is_named_until_it_has_caught_up(app):
    app.engine.loop_heartbeats.expect("webhooks", 0.0)
    wait_until(lambda: app.ask("/readyz").status == 503)
    stuck(app.ask("/readyz"), "webhooks")
    app.engine.loop_heartbeats.expect("webhooks", 60.0)
    app.engine.loop_heartbeats.beat("webhooks")
    assert app.ask("/readyz").json["parts"]["webhooks"]["last_success_seconds_ago"] < 60


def test_a_sweep_that_has_died_is_named(app):
    app.engine.sweep._stopped = True
    app.engine.sweep.wake()
    app.engine.sweep._thread.join(10)
    stuck(app.ask("/readyz"), "sweep")


def test_a_loop_is_stuck_after_its_allowed_silence():
    now = [100.0]
    loop_heartbeats = LoopHeartbeats(Registry(), lambda: now[0])
    loop_heartbeats.expect("sweep", 10)
    now[0] = 110.0
    assert (loop_heartbeats.report()["sweep"].seconds_ago, loop_heartbeats.report()["sweep"].stuck) == (None, False)
    now[0] = 110.5
    assert loop_heartbeats.report()["sweep"].stuck
    loop_heartbeats.beat("sweep")
    now[0] = 120.0
    assert (loop_heartbeats.report()["sweep"].seconds_ago, loop_heartbeats.report()["sweep"].stuck) == (9.5, False)
