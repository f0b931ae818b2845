"""A store in use is backed up, written to further, lost, and restored elsewhere.

No token is granted twice, and a client that follows the log gets every event once or an error.
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
from holdfast.core.log_gap import ACTOR, RESTORED
from holdfast.engine.verify import verify
from holdfast.settings import Settings
from tests.backup.sample_store import no_report, opened
from tests.compat.octostore.server import Server
from tests.http.job_client import ROOT_KEY, agent, claimed, ok, root
from tests.support import wait_until

WRITERS = 3
ROUNDS = 8
"""Rounds of each writer before the backup, and at least as many after it."""


@dataclass
class LostStore:
    """What clients saw of a store before it was lost."""

    backup: Path
    tokens: list[int]
    """Every token that was granted, also after the backup."""
    events: list[dict]
    """Every event that a follower received."""
    last_kept: int
    """The last event in the backup."""


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def lost(request, tmp_path_factory):
    """A store that was backed up by the command while clients wrote, and then lost."""
    folder = tmp_path_factory.mktemp("lost")
    url = request.getfixturevalue("database") if request.param == "postgres" else f"sqlite:///{folder}/x.db"
    server = Server(url, ROOT_KEY=ROOT_KEY).start()
    try:
        return use_and_back_up(server, url, folder / "b")
    finally:
        server.kill()
        server.close_files()


def use_and_back_up(server, url, file):
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
    events, after = [], 0
    while page := root(server).get(f"/v1/events?after={after}&limit=1000").json["events"]:
        events += page
        after = page[-1]["seq"]
    return LostStore(file, tokens, events, json.loads(done.stdout)["logs"]["default"])


@pytest.fixture(params=["sqlite", "postgres"])
def restored(request, lost, new_store_settings):
    """The same store, restored elsewhere."""
    target: Settings = new_store_settings(request.param)
    restore(target, lost.backup, no_report)
    client = holdfast.open(target.store)
    yield client, target
    client.close()


def test_no_token_or_event_number_is_reused_and_every_gap_is_reported(lost, restored):
    client, target = restored
    missing = [event["seq"] for event in lost.events if event["seq"] > lost.last_kept]
    assert missing, "something happened after the backup"
    again = [client.claim_job(f"new/{number}", "me")["token"] for number in range(20)]
    assert min(again) > max(lost.tokens)
    assert len(set(lost.tokens + again)) == len(lost.tokens + again), "no token was granted twice"
    with opened(target) as store:
        assert verify(store).differences == []

    log = follow(client, 0)
    assert log[: lost.last_kept] == lost.events[: lost.last_kept], "events in the backup are unchanged"
    mark = log[lost.last_kept]
    assert (mark["kind"], mark["data"]["after"]) == (RESTORED, lost.last_kept)
    following = log[lost.last_kept + 1 :]
    assert {event["kind"] for event in following if event["actor"] == ACTOR} <= {"lease.released"}
    assert [event["kind"] for event in following if event["actor"] != ACTOR] == ["lease.claimed"] * 20

    for cursor in (0, 1, lost.last_kept - 1, lost.last_kept):
        assert follow(client, cursor) == log[cursor:], f"from {cursor}: every event once"
    for cursor in (lost.last_kept + 1, *missing[:: max(len(missing) // 5, 1)], missing[-1], mark["seq"] - 2):
        with pytest.raises(holdfast.HoldfastError) as refused:
            follow(client, cursor)
        assert refused.value.code == "cursor_too_old"
        assert follow(client, refused.value.document["oldest"] - 1) == log[lost.last_kept :], "that is where to begin"
        with pytest.raises(holdfast.HoldfastError) as streamed:
            next(client.follow(after=cursor))
        assert (streamed.value.status, streamed.value.code) == (410, "cursor_too_old"), "refused before it begins"
    assert follow(client, mark["seq"]) == log[lost.last_kept + 1 :]


def follow(client, after):
    """Everything from a cursor on, in pages."""
    events = []
    while True:
        page = client.call("list_events", after=after, limit=17)
        events += page["events"]
        after = page["nextCursor"]
        if not page["hasMore"]:
            return events
