"""Servers that die in the middle of it, and servers that share the work."""

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
EVENTS = sized(15, 40)
KILLS = sized(2, 5)


def work(boss, names):
    """So many events about each name, in order: one claim, then renewals."""
    leases = {name: claimed(boss.claim(name, ttl_seconds=3600))["lease_id"] for name in names}
    for _ in range(EVENTS - 1):
        for name, lease in leases.items():
            ok(boss.heartbeat(name, lease))


def in_order(messages):
    """Whether nothing came for the first time before everything earlier of its subject had come."""
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
        boss = root(server)
        made = done(boss.post("/v1/webhooks", {"url": receiver.url(path), "events": ["lease.*"]}), 201)
        where = f"/v1/webhooks/{made['webhook_id']}"
        ok(boss.send_json("PATCH", where, {"state": "paused"}))
        names = [fresh() for _ in range(SUBJECTS)]
        parts = [names[place::5] for place in range(5)]
        together(*[lambda part=part: work(boss, part) for part in parts])
        ok(boss.send_json("PATCH", where, {"state": "active"}))
        total = SUBJECTS * EVENTS
        for kill in range(KILLS):
            wait_until(lambda kill=kill: distinct(receiver.on(path)) >= total * (kill + 1) // (KILLS + 2), 60)
            assert distinct(receiver.on(path)) < total, "it was killed in the middle"
            server.kill()
            server.start()
        wait_until(lambda: distinct(receiver.on(path)) == total, 120)
        wait_until(lambda: ok(boss.get(where))["deliveries"] == {"delivered": total}, 30)
    finally:
        server.close()
    told = receiver.on(path)
    assert in_order(told) == {f"lease:{name}": EVENTS for name in names}
    for message in told:
        message.verify(made["secret"])
    assert len(told) < total + KILLS * 64, "only what was under way came twice"


def distinct(messages):
    return len({message.id for message in messages})


def test_two_servers_share_the_work_and_send_nothing_twice(new_postgres_database, receiver, path):
    url = new_postgres_database()
    servers = [sending(url).start() for _ in range(2)]
    try:
        boss, other = (root(server) for server in servers)
        made = done(boss.post("/v1/webhooks", {"url": receiver.url(path), "events": ["lease.*"]}), 201)
        names = [fresh() for _ in range(8)]
        together(*[lambda by=by, part=part: work(by, part) for by, part in ((boss, names[:4]), (other, names[4:]))])
        total = len(names) * EVENTS
        settled = f"/v1/webhooks/{made['webhook_id']}"
        wait_until(lambda: ok(boss.get(settled))["deliveries"] == {"delivered": total}, 60)
    finally:
        for server in servers:
            server.close()
    told = receiver.on(path)
    assert (len(told), distinct(told)) == (total, total)
    assert in_order(told) == {f"lease:{name}": EVENTS for name in names}


def test_a_server_that_stops_leaves_nothing_in_hand(tmp_path, receiver, path):
    """What it was sending is free at once: its successor need not wait until the claim is over."""
    url = f"sqlite:///{tmp_path}/x.db"
    server = sending(url, WEBHOOK_TIMEOUT="30").start()
    try:
        boss = root(server)

        def stall(request):
            time.sleep(4)

        done(boss.post("/v1/webhooks", {"url": receiver.url(path, stall, 204), "events": ["lease.*"]}), 201)
        claimed(boss.claim(fresh()))
        receiver.await_messages(path, 1)
        server.stop()
        server.start()
        first, second = receiver.await_messages(path, 2, 15)
    finally:
        server.close()
    assert first.id == second.id
