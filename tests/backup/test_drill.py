"""The drill: a served store is backed up, goes on, is lost, and comes back elsewhere.

No token that was ever granted is granted again, and whoever followed the log gets every event once or is told.
"""

import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

import holdfast
from holdfast.backup.restore import restore
from holdfast.core.log_gap import RESTORED
from holdfast.engine.verify import verify
from holdfast.settings import Settings
from tests.backup.filled import opened, quiet
from tests.compat.octostore.server import Server
from tests.http.agent import agent, claimed, ok
from tests.support import wait_until

WRITERS = 3
ROUNDS = 8
"""Rounds of each writer before the backup, and at least as many after it."""


@dataclass
class Life:
    """What became known of a store before it was lost."""

    backup: Path
    tokens: list[int]
    """Every token that was granted, also after the backup."""
    told: list[dict]
    """Every event that a follower was told."""
    kept: int
    """The last event in the backup."""


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def life(request, tmp_path_factory):
    """A store that lived, was backed up by the program itself while it was at work, and is gone."""
    folder = tmp_path_factory.mktemp("life")
    url = request.getfixturevalue("database") if request.param == "postgres" else f"sqlite:///{folder}/x.db"
    server = Server(url).start()
    try:
        return live(server, url, folder / "b")
    finally:
        server.kill()
        server.output.close()


def live(server, url, file):
    tokens, stop = [], threading.Event()

    def write(number):
        worker, rounds = agent(server, f"alice-{number + 1}"), 0
        while not stop.is_set():
            lease = claimed(worker.claim(f"job/{number}/{rounds % 5}", "me", ttl_seconds=600))
            tokens.append(lease["token"])
            ok(worker.release_job(f"job/{number}/{rounds % 5}", lease["lease_id"]))
            rounds += 1

    writers = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        wait_until(lambda: len(tokens) > WRITERS * ROUNDS, 30)
        before = len(tokens)
        command = [sys.executable, "-m", "holdfast", "backup", str(file), "--store", url, "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        wait_until(lambda: len(tokens) > before + WRITERS * ROUNDS, 30)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    told, after = [], 0
    while page := agent(server, "alice-1").get(f"/v1/events?after={after}&limit=1000").json["events"]:
        told += page
        after = page[-1]["seq"]
    return Life(file, tokens, told, json.loads(done.stdout)["logs"]["default"])


@pytest.fixture(params=["sqlite", "postgres"])
def restored(request, life, new_place):
    """The same store somewhere else."""
    target: Settings = new_place(request.param)
    restore(target, life.backup, quiet)
    client = holdfast.open(target.store)
    yield client, target
    client.close()


def test_nothing_comes_twice_and_nobody_is_left_in_the_dark(life, restored):
    client, target = restored
    lost = [event["seq"] for event in life.told if event["seq"] > life.kept]
    assert lost, "something happened after the backup"
    again = [client.claim_job(f"new/{number}", "me")["token"] for number in range(20)]
    assert min(again) > max(life.tokens)
    assert len(set(life.tokens + again)) == len(life.tokens + again), "no token was granted twice"
    with opened(target) as store:
        assert verify(store).differences == []

    log = follow(client, 0)
    assert log[: life.kept] == life.told[: life.kept], "what was kept is told as it was"
    mark = log[life.kept]
    assert (mark["kind"], mark["data"]["after"]) == (RESTORED, life.kept)
    assert [event["kind"] for event in log[life.kept + 1 :]] == ["lease.claimed"] * 20

    for cursor in (0, 1, life.kept - 1, life.kept):
        assert follow(client, cursor) == log[cursor:], f"from {cursor}: every event once"
    for cursor in (life.kept + 1, *lost[:: max(len(lost) // 5, 1)], lost[-1], mark["seq"] - 2):
        with pytest.raises(holdfast.HoldfastError) as refused:
            follow(client, cursor)
        assert refused.value.code == "cursor_too_old"
        assert follow(client, refused.value.document["oldest"] - 1) == log[life.kept :], "that is where to begin"
        with pytest.raises(holdfast.HoldfastError) as streamed:
            next(client.follow(after=cursor))
        assert (streamed.value.status, streamed.value.code) == (410, "cursor_too_old"), "refused before it begins"
    assert follow(client, mark["seq"]) == log[life.kept + 1 :]


def follow(client, after):
    """Everything from a cursor on, in pages."""
    told = []
    while True:
        page = client.call("list_events", after=after, limit=17)
        told += page["events"]
        after = page["nextCursor"]
        if not page["hasMore"]:
            return told
