"""Embedded mode: the engine in this process, alone and beside others on the same file."""

import os
import subprocess
import sys
import threading

import pytest

import holdfast
from holdfast.client.errors import OutcomeUnknown, ServerError, Unreachable
from tests.client.ways import KEY, url_of
from tests.store_inspection import assert_store_is_consistent
from tests.support import wait_until


def ours():
    return [thread for thread in threading.enumerate() if thread.name.startswith("holdfast")]


def test_closing_stops_the_threads_and_later_calls_are_refused(tmp_path):
    before = set(ours())  # those of earlier tests may end meanwhile
    client = holdfast.open(tmp_path / "x.db")
    assert client.claim_job("a", "me")["status"] == "claimed"
    assert set(ours()) - before
    client.close()
    client.close()
    wait_until(lambda: not set(ours()) - before)
    with pytest.raises(Unreachable) as caught:
        client.get_job_owner("a")
    assert caught.value.code == "closed"


def test_a_reopened_file_has_everything_that_was_written(tmp_path):
    with holdfast.open(tmp_path / "x.db") as client:
        first = client.claim_job("a", "me")
        made = client.create_task("work", {"n": 1})
    with holdfast.open(str(tmp_path / "x.db")) as client:
        assert client.heartbeat_job("a", first["lease_id"])["status"] == "claimed"
        assert client.check_task_status(made["id"])["payload"] == {"n": 1}
    assert_store_is_consistent(f"sqlite:///{tmp_path}/x.db")


def test_the_default_is_the_file_that_a_server_would_open(tmp_path):
    program = "import holdfast; holdfast.open().claim_job('a', 'me')"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    environment = inherited | {"XDG_STATE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)
    with holdfast.open(tmp_path / "holdfast" / "holdfast.db") as client:
        assert client.get_job_owner("a")["owner"] == "me"


@pytest.mark.parametrize("path", [":memory:", "memory:", "sqlite:///:memory:"])
def test_a_store_in_memory_writes_no_file_and_ends_with_its_client(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with holdfast.open(path) as client, holdfast.open(path) as other:
        client.claim_job("a", "me")
        assert other.get_job_owner("a")["status"] == "free"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_store_raises_our_error(tmp_path):
    (tmp_path / "x.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(ServerError):
        holdfast.open(tmp_path / "x.db")


def test_a_waiter_that_gives_up_leaves_the_queue(tmp_path):
    with holdfast.open(tmp_path / "x.db") as client:
        held = client.claim_job("a", "first")
        with pytest.raises(OutcomeUnknown):  # 0.3 s of the 30 that it wanted to wait
            client.call("claim_job", job_id="a", owner="second", wait_seconds=30, timeout=-29.7, deadline=-29.7)
        wait_until(lambda: client.claim_job("a", "third")["waiting"] == 0)
        client.release_job("a", held["lease_id"])
        assert client.claim_job("a", "third")["status"] == "claimed"


def test_an_embedded_client_shares_its_file_with_a_server(tmp_path, new_server):
    server = new_server(f"sqlite:///{tmp_path}/x.db").start()
    with holdfast.open(tmp_path / "x.db") as inside, holdfast.Client(url_of(server), KEY) as outside:
        mine = inside.claim_job("a", "inside")
        assert outside.claim_job("a", "outside")["owner"] == "inside"
        waited = []
        waiting = threading.Thread(target=lambda: waited.append(outside.claim_job("a", "outside", wait_seconds=10)))
        waiting.start()
        wait_until(lambda: outside.metrics()["total_requests"] > 0)
        inside.release_job("a", mine["lease_id"])
        waiting.join()
        assert (waited[0]["status"], waited[0]["token"] > mine["token"]) == ("claimed", True)
        assert inside.get_job_owner("a")["owner"] == "outside"
