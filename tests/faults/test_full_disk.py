"""A full disk refuses growth, a read-only disk refuses writes; the server recovers from both without a restart."""

import os
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

import psutil
import pytest

from tests.compat.octostore.expect import eventually
from tests.http.job_client import agent, claimed, fresh, job_path, lost, ok, problem, unavailable
from tests.store_inspection import assert_store_is_consistent

HEAL_SECONDS = 5.0


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 3 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    mount_point = tmp_path / "disk"
    mount_point.mkdir()
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", mount_point], check=True)
    yield mount_point
    subprocess.run(["/bin/umount", "--lazy", mount_point], check=True)


def fill(mount_point: Path) -> Path:
    """Fill the disk."""
    ballast = mount_point / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return ballast


def test_a_full_disk_refuses_growth_and_nothing_else(small_disk, new_server):
    server = new_server(f"sqlite:///{small_disk}/x.db").start()
    worker = agent(server)
    kept = {}
    for number in range(20):
        name = fresh(f"before-{number}")
        kept[name] = claimed(worker.claim(name, "me", ttl_seconds=3600))["lease_id"]
    ballast = fill(small_disk)
    refused = grow_until_full(worker, kept)

    for name, lease_id in list(kept.items())[-5:]:
        assert worker.owner_of(name)["owner"] == "me", "reads still answer"
        assert lease_id not in str(worker.owner_of(name))
    assert len(worker.jobs("?limit=1000")["jobs"]) == len(kept)
    assert worker.owner_of(refused)["status"] == "free", "what was refused did not happen"
    assert worker.get("/health").status == 200
    answer = worker.acquire(fresh("lock"))
    assert (answer.status, answer.json["applied"]) == (507, "no")
    assert int(answer.header("Retry-After") or 0) >= 1
    assert "traceback" not in server.log().lower()

    ballast.unlink()
    eventually(
        lambda: worker.claim(refused, "me", ttl_seconds=3600).status, lambda status: status == 200, within=HEAL_SECONDS
    )
    assert worker.owner_of(refused)["owner"] == "me"
    all_there(worker, kept)
    server.kill()
    assert_store_is_consistent(server.store)
    server.start()
    all_there(worker, kept)


def grow_until_full(worker, kept):
    """Claim until the disk is full; the name that was refused."""
    for number in range(400):
        name = fresh(f"more-{number}")
        answer = worker.claim(name, "me", ttl_seconds=3600, metadata="x" * 4000)
        if answer.status == 507:
            body = problem(answer, 507, "storage_full")
            assert body["applied"] == "no"
            assert int(answer.header("Retry-After") or 0) >= 1
            assert body["agent_contract"]["retryable"] is True
            return name
        kept[name] = claimed(answer)["lease_id"]
    raise AssertionError("3 MiB never filled up")


def all_there(worker, kept):
    assert {found["job_id"] for found in worker.jobs("?limit=1000")["jobs"]} >= kept.keys()
    for name, lease_id in kept.items():
        assert worker.heartbeat(name, lease_id).status == 200, name


@pytest.fixture
def immutable():
    """Makes files immutable, also for processes that have them open."""
    chattr = shutil.which("chattr")
    if os.geteuid() != 0 or chattr is None:
        pytest.skip("only root may make a file immutable, with chattr")
    changed = []

    def change(sign, *paths):
        done = subprocess.run([chattr, f"{sign}i", *paths], check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"this file system knows no immutable files: {done.stderr.strip()}")
        changed.extend(paths)

    yield change
    for path in changed:
        if path.exists():
            subprocess.run([chattr, "-i", path], check=False)


@pytest.fixture
def disk_folder():
    """A folder on the disk: `tmp_path` may be in memory, where no file is immutable."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_a_file_that_became_read_only_refuses_writes_until_it_is_writable_again(
    disk_folder, new_server, immutable, job
):
    path = disk_folder / "x.db"
    server = new_server(f"sqlite:///{path}").start()
    worker = agent(server)
    lease = claimed(worker.claim(job, "me", ttl_seconds=3600))
    files = [path, path.with_name("x.db-wal")]
    immutable("+", *files)
    during(worker, job, lease)
    immutable("-", *files)
    after(server, worker, job, lease)


def test_a_disk_error_during_commit_is_reported_as_such(tmp_path, new_server, job):
    """The kernel refuses every write past a limit, as a broken disk would."""
    server = new_server(f"sqlite:///{tmp_path}/x.db").start()
    worker = agent(server)
    lease = claimed(worker.claim(job, "me", ttl_seconds=3600))
    process = psutil.Process(server.process.pid)
    before = process.rlimit(psutil.RLIMIT_FSIZE)
    process.rlimit(psutil.RLIMIT_FSIZE, (4096, before[1]))
    during(worker, job, lease)
    process.rlimit(psutil.RLIMIT_FSIZE, (resource.RLIM_INFINITY, before[1]))
    after(server, worker, job, lease)


def during(worker, job, lease):
    for _ in range(3):
        unavailable(worker.heartbeat(job, lease["lease_id"], ttl_seconds=1800))
        unavailable(worker.claim(fresh("refused"), "me"))
    seen = worker.owner_of(job)
    assert (seen["owner"], seen["expires_at"]) == ("me", lease["expires_at"]), "reads still answer"
    assert worker.get("/health").status == 200


def after(server, worker, job, lease):
    beat = lambda: worker.heartbeat(job, lease["lease_id"])
    eventually(lambda: beat().status, lambda status: status == 200, within=HEAL_SECONDS)
    assert worker.jobs("?prefix=refused")["jobs"] == []
    assert server.process.poll() is None
    server.kill()
    assert_store_is_consistent(server.store)
    server.start()
    ok(worker.release_job(job, lease["lease_id"]))
    lost(worker.heartbeat(job, lease["lease_id"]))
    assert worker.get(job_path(job)).json["status"] == "free"
