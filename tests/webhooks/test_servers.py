"""Killed servers lose no delivery; several servers share the work."""

import time
from collections import Counter

import pytest

from tests.http.job_client import claimed, fresh, ok, root, together
from tests.http.replies import done
from tests.proof_size import sized
from tests.support import wait_until
from tests.webhooks.conftest import sending

pytestmark = pytest.mark.waits(25)

SUBJECTS = sized(10, 25)
EVENTS = sized(8, 40)
KILLS = sized(2, 5)


def work(admin, names):
    """Write some events about each name, in order: one claim, then renewals."""
    leases = {name: claimed(admin.claim(name, ttl_seconds=3600))["lease_id"] for name in names}
    for _ in range(EVENTS - 1):
        for name, lease in leases.items():
            ok(admin.heartbeat(name, lease))


def in_order(messages):
    """Whether every first message of an event came after all earlier ones of its subject."""
    newest = Counter()
    for message in messages:
        version = message.json["data"]["version"]
        assert version <= newest[message.subject] + 1, (
            f"{message.subject}: {version} came after {newest[message.subject]}"
        )
        newest[message.subject] = max(newest[message.subject], version)
    return newest


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_killed_server_loses_no_message_and_keeps_their_order(request, tmp_path, receiver, path, kind):
    url = f"sqlite:///{tmp_path}/x.db"
    if kind == "postgres":
        url = request.getfixturevalue("new_postgres_database")()
    server = sending(url, WEBHOOK_TIMEOUT="1").start()
    try:
        admin = root(server)
        webhook = done(admin.post("/v1/webhooks", {"url": receiver.url(path), "events": ["lease.*"]}), 201)
        where = f"/v1/webhooks/{webhook['webhook_id']}"
        ok(admin.send_json("PATCH", where, {"state": "paused"}))
        names = [fresh() for _ in range(SUBJECTS)]
        parts = [names[place::5] for place in range(5)]
        together(*[lambda part=part: work(admin, part) for part in parts])
        ok(admin.send_json("PATCH", where, {"state": "active"}))
        total = SUBJECTS * EVENTS
        for kill in range(KILLS):
            wait_until(lambda kill=kill: distinct(receiver.on(path)) >= total * (kill + 1) // (KILLS + 2), 60)
            assert distinct(receiver.on(path)) < total, "it was killed in the middle"
            server.kill()
            server.start()
        wait_until(lambda: distinct(receiver.on(path)) == total, 120)
        wait_until(lambda: ok(admin.get(where))["deliveries"] == {"delivered": total}, 30)
    finally:
        server.close()
    messages = receiver.on(path)
    assert in_order(messages) == {f"lease:{name}": EVENTS for name in names}
    for message in messages:
        message.verify(webhook["secret"])
    assert len(messages) < total + KILLS * 64, "only what was under way came twice"


def distinct(messages):
    return len({message.id for message in messages})


def test_two_servers_share_the_work_and_send_nothing_twice(new_postgres_database, receiver, path):
    url = new_postgres_database()
    servers = [sending(url).start() for _ in range(2)]
    try:
        admin, other = (root(server) for server in servers)
        url = receiver.url(path, receiver.late(204, 0.02))  # so that the other server looks while a message is sent
        webhook = done(admin.post("/v1/webhooks", {"url": url, "events": ["lease.*"]}), 201)
        names = [fresh() for _ in range(8)]
        together(*[lambda by=by, part=part: work(by, part) for by, part in ((admin, names[:4]), (other, names[4:]))])
        total = len(names) * EVENTS
        settled = f"/v1/webhooks/{webhook['webhook_id']}"
        wait_until(lambda: ok(admin.get(settled))["deliveries"] == {"delivered": total}, 60)
    finally:
        for server in servers:
            server.close()
    messages = receiver.on(path)
    assert (len(messages), distinct(messages)) == (total, total)
    assert in_order(messages) == {f"lease:{name}": EVENTS for name in names}


def test_a_stopping_server_returns_its_claimed_deliveries(tmp_path, receiver, path):
    """Its claims end at once: the next server need not wait until they expire."""
    url = f"sqlite:///{tmp_path}/x.db"
    server = sending(url, WEBHOOK_TIMEOUT="30").start()
    try:
        admin = root(server)

        def stall(request):
            time.sleep(4)

        done(admin.post("/v1/webhooks", {"url": receiver.url(path, stall, 204), "events": ["lease.*"]}), 201)
        claimed(admin.claim(fresh()))
        receiver.await_messages(path, 1)
        server.stop()
        server.start()
        first, second = receiver.await_messages(path, 2, 15)
    finally:
        server.close()
    assert first.id == second.id
