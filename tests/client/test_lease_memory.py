"""The file with the lease ids of an agent."""

import errno
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.client import lease_memory
from holdfast.client.lease_memory import JOB, KEPT_SECONDS, TASK, LeaseMemory

URL = "http://127.0.0.1:7700"


@pytest.fixture
def reports():
    return []


@pytest.fixture
def make(tmp_path, reports):
    """Factory of memories in one folder."""

    def make(owner="ann", url=URL, how=LeaseMemory):
        return how(url, owner, reports.append, tmp_path / "agents")

    return make


def test_what_is_remembered_is_found_by_another_program_of_the_same_agent(make, reports):
    make().remember(JOB, "deploy", "l1", 60)
    make().remember(TASK, "deploy", "l2", 60)
    assert (make().find(JOB, "deploy"), make().find(TASK, "deploy"), make().find(JOB, "x")) == ("l1", "l2", None)
    make().remember(JOB, "deploy", "l3", 60)
    assert make().find(JOB, "deploy") == "l3"
    assert reports == []


def test_each_server_and_each_agent_has_its_own(make):
    make().remember(JOB, "deploy", "l1", 60)
    assert make("bob").find(JOB, "deploy") is None
    assert make(url="http://127.0.0.1:7701").find(JOB, "deploy") is None


def test_only_the_lease_that_is_over_is_forgotten(make):
    make().remember(JOB, "deploy", "l2", 60)
    make().forget(JOB, "deploy", "l1")
    assert make().find(JOB, "deploy") == "l2"
    make().forget(JOB, "deploy", "l2")
    assert make().find(JOB, "deploy") is None


def test_the_files_are_readable_only_by_their_user(make):
    memory = make()
    old = os.umask(0)
    try:
        memory.remember(JOB, "deploy", "l1", 60)
        memory.path.chmod(0o644)
        memory.remember(JOB, "deploy", "l2", 60)
    finally:
        os.umask(old)
    assert {file.stat().st_mode & 0o777 for file in memory.path.parent.iterdir()} == {0o600}
    assert memory.path.parent.stat().st_mode & 0o777 == 0o700


def test_leases_that_ended_long_ago_are_removed(make, monkeypatch):
    make().remember(JOB, "old", "l1", 60)
    later = time.time() + KEPT_SECONDS + 61
    monkeypatch.setattr(lease_memory.time, "time", lambda: later)
    make().remember(JOB, "new", "l2", 60)
    assert (make().find(JOB, "old"), make().find(JOB, "new")) == (None, "l2")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[]", b'{"held":{}}', b'{"server":"","owner":"","held":{"job:x":{"lease_id":1}}}'],
)
def test_a_damaged_file_is_reported_and_replaced(make, reports, content):
    memory = make()
    memory.remember(JOB, "deploy", "l1", 60)
    memory.path.write_bytes(content)
    assert memory.find(JOB, "deploy") is None
    assert len(reports) == 1
    assert "damaged" in reports[0]
    memory.remember(JOB, "other", "l2", 60)
    reports.clear()
    assert make().find(JOB, "other") == "l2"
    assert reports == []


def test_a_folder_that_cannot_be_written_is_reported_and_stops_nothing(tmp_path, reports):
    (tmp_path / "agents").write_text("a file")
    for how in (LeaseMemory, LeaseMemory.of_process):
        memory = how(URL, "ann", reports.append, tmp_path / "agents")
        memory.remember(JOB, "deploy", "l1", 60)
        assert memory.find(JOB, "deploy") is None
    assert all(str(memory.path) in report for report in reports)
    assert len(reports) >= 4


def test_a_link_is_not_followed(make, reports, tmp_path):
    memory = make()
    memory.path.parent.mkdir()
    (tmp_path / "elsewhere").write_text("{}")
    memory.path.symlink_to(tmp_path / "elsewhere")
    assert memory.find(JOB, "deploy") is None
    assert len(reports) == 1


def test_programs_that_run_at_once_lose_nothing(make):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: make().remember(JOB, f"job-{number}", f"l{number}", 60), range(100)))
    assert [make().find(JOB, f"job-{number}") for number in range(100)] == [f"l{number}" for number in range(100)]


PROCESS = """
import sys
from pathlib import Path
from holdfast.client.lease_memory import LeaseMemory
print(LeaseMemory.of_process(sys.argv[1], "ann", print, Path(sys.argv[2])).owner, flush=True)
sys.stdin.read()
"""


def test_a_second_living_process_gets_a_memory_and_an_owner_of_its_own(make):
    folder = make().path.parent
    command = [sys.executable, "-c", PROCESS, URL, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "ann\n"
        second, third = (make(how=LeaseMemory.of_process) for _ in range(2))
        assert (second.owner, third.owner) == ("ann-2", "ann-3")
        assert len({make().path, second.path, third.path}) == 3
        second.close()
        assert make(how=LeaseMemory.of_process).owner == "ann-2"
        other.kill()
    first = make(how=LeaseMemory.of_process)
    assert first.owner == "ann"
    third.close()
    first.close()


def test_a_lease_id_that_was_replaced_during_a_renewal_stays(make, monkeypatch):
    """Another program resumes the session, which gives the lease a new id, while this one is about to write."""
    memory = make()
    memory.remember(JOB, "deploy", "l1", 60)
    find = memory.find

    def find_then_replace(kind, row_id):
        found = find(kind, row_id)
        make().reissue(JOB, "deploy", "l2", 60)
        return found

    monkeypatch.setattr(memory, "find", find_then_replace)
    memory.renew(JOB, "deploy", "l1", 600)
    assert make().find(JOB, "deploy") == "l2"
    make().remember(JOB, "deploy", "l1", 60)
    memory.forget(JOB, "deploy", "l1")
    assert make().find(JOB, "deploy") == "l2"
    memory.update({(JOB, "deploy"): ("l1", 600.0)}, [(JOB, "deploy", "l1")])
    assert make().find(JOB, "deploy") == "l2"


def test_a_file_that_cannot_be_read_at_this_moment_is_reported_and_kept(make, reports, monkeypatch):
    memory, open_file = make(), os.open
    memory.remember(JOB, "deploy", "l1", 60)

    def fail(path, *arguments, **more):
        if path == memory.path:
            raise OSError(errno.EIO, "Input/output error")
        return open_file(path, *arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(lease_memory.os, "open", fail)
        memory.remember(JOB, "other", "l2", 60)
        assert memory.find(JOB, "deploy") is None
    assert ["cannot remember" in report for report in reports] == [True, False]
    assert memory.find(JOB, "deploy") == "l1"
