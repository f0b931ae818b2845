"""Answered requests are freed at once: what waits for the garbage collector keeps its body and its batch in memory."""

import gc
import json
from collections import Counter

import pytest

from tests.http.served_app import ServedApp, request
from tests.support import wait_until

REQUESTS = 30
LEASE = "00000000-0000-4000-8000-000000000000"
KINDS = {
    "claim": request("POST", "/v1/jobs/job/claim", b'{"owner": "me"}'),
    "read": request("GET", "/v1/jobs/job"),
    "wrong key": request("POST", "/v1/jobs/job/claim", b'{"owner": "me"}', key="a-key-that-does-not-exist"),
    "lost lease": request("POST", "/v1/jobs/job/heartbeat", json.dumps({"lease_id": LEASE}).encode()),
    "large body": request("POST", "/v1/jobs/job/claim", json.dumps({"owner": "x" * 100_000}).encode()),
    "unknown path": request("POST", "/v1/nothing"),
}


@pytest.fixture(scope="module")
def app():
    with ServedApp() as app:
        yield app


def send(app, content, count, *, reconnects):
    """Send requests one after another, on one connection or on a new one each."""
    connection = app.connect()
    for _ in range(count):
        if reconnects:
            connection.close()
            connection = app.connect()
        connection.sendall(content)
        assert connection.recv(65_536)
    connection.close()
    wait_until(lambda: app.connections() == 0)


def garbage(work):
    """The types of the objects that only the garbage collector could free after it."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        work()
        gc.collect()
        return Counter(type(each).__name__ for each in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("reconnects", [False, True], ids=["one connection", "many connections"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_answered_request_leaves_nothing_to_the_garbage_collector(app, kind, reconnects):
    send(app, KINDS[kind], 5, reconnects=reconnects)
    found = garbage(lambda: send(app, KINDS[kind], REQUESTS, reconnects=reconnects))
    often = {name: count for name, count in found.items() if count >= REQUESTS}
    assert not often, often
