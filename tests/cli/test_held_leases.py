"""Verbs remember the lease ids of what they claimed, and `mine` lists what the key holds."""

import itertools
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cli.shell import Shell

queues = itertools.count(1)


@pytest.fixture
def queue():
    """An unused type of tasks."""
    return f"remembered-{next(queues)}"


def memory_files(shell):
    return sorted(shell.home.rglob("agents/*.json"))


def agent(shell, name):
    return Shell(shell.port, shell.key, shell.home, {"HOLDFAST_OWNER": name})


def test_a_job_is_kept_and_released_by_its_name_alone(shell, job):
    lease = shell("claim", job, "-o", "json").json["lease_id"]
    (file,) = memory_files(shell)
    assert file.stat().st_mode & 0o777 == 0o600
    assert lease in file.read_text()
    assert shell("heartbeat", job, "--note", "half").status == 0
    assert shell("guard", job).status == 0
    assert shell("release", job).status == 0
    assert lease not in file.read_text()
    again = shell("release", job)
    assert (again.status, "--lease is required" in again.err) == (2, True)


def test_any_of_several_jobs_is_remembered_under_its_own_name(shell, job):
    assert shell("claim", "--any", f"{job}-a,{job}-b").status == 0
    assert shell("release", f"{job}-a").status == 0


def test_a_task_is_completed_by_its_id_alone(shell, queue):
    for verbs in (["complete"], ["heartbeat", "complete"], ["fail"], ["release"]):
        made = shell("task", "create", queue, "-o", "json").json["id"]
        assert shell("next", queue, "--worker", "ann").status == 0
        for verb in verbs:
            refused = shell("task", verb, made)
            assert refused.status == 2, "another worker of this machine has it"
            assert "but ann did; if that is you, add --worker ann" in refused.err
            assert shell("task", verb, made, "--worker", "ann").status == 0
        assert shell("task", verbs[-1], made, "--worker", "ann").status == 2
        shell("task", "cancel", made)
    made = shell("task", "create", queue, "-o", "json").json["id"]
    assert shell("task", "claim", made).status == 0
    assert shell("task", "complete", made).status == 0


def test_a_given_lease_id_comes_first(shell, job):
    shell("claim", job)
    unknown = "00000000-0000-4000-8000-000000000000"
    assert shell("release", job, "--lease", unknown).status == 5
    assert shell("release", job).status == 0, "only the lease that was lost is forgotten"


def test_an_agent_does_not_release_what_another_agent_of_the_machine_claimed(shell, job):
    ann, bob = agent(shell, "ann"), agent(shell, "bob")
    assert ann("claim", job).status == 0
    refused = bob("release", job)
    assert (refused.status, "bob claimed no such job" in refused.err) == (2, True)
    assert "but ann did; if that is you, add --owner ann" in refused.err
    assert shell("release", job).status == 2
    assert bob("release", job, "--owner", "ann").status == 0


def test_inside_run_the_lease_of_run_is_for_its_job_only(shell, job):
    shell("claim", f"{job}-other")
    inside = Shell(shell.port, shell.key, shell.home, {"HOLDFAST_JOB": job, "HOLDFAST_LEASE": "of-run"})
    assert inside("release", f"{job}-other").status == 0
    assert "lease_id" in inside("release", job).err, "the lease of run, which is no UUID here"


def test_a_lease_that_was_lost_is_forgotten(shell, job):
    lease = shell("claim", job, "-o", "json").json["lease_id"]
    assert shell("force-release", job, "--reason", "stuck").status == 0
    (file,) = memory_files(shell)
    assert lease in file.read_text()
    lost = shell("heartbeat", job)
    assert (lost.status, "lease_lost" in lost.err) == (5, True)
    assert lease not in file.read_text()
    assert shell("heartbeat", job).status == 2


def test_a_damaged_memory_is_reported_and_stops_no_verb(shell, job):
    lease = shell("claim", job, "-o", "json").json["lease_id"]
    (file,) = memory_files(shell)
    file.write_text("{")
    refused = shell("release", job)
    assert refused.status == 2
    assert "is damaged" in refused.err
    claimed = shell("claim", f"{job}-b")
    assert (claimed.status, "is damaged" in claimed.err) == (0, True)
    assert shell("release", f"{job}-b").err == ""
    assert shell("release", job, "--lease", lease).status == 0


def test_a_state_folder_that_cannot_be_written_stops_no_claim(shell, job):
    (shell.home / "state").write_text("a file")
    claimed = shell("claim", job, "-o", "json")
    assert claimed.status == 0
    assert "cannot remember" in claimed.err
    assert shell("release", job, "--lease", claimed.json["lease_id"]).status == 0


def test_verbs_that_run_at_once_lose_no_lease(shell, job):
    names = [f"{job}-{number}" for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert {claimed.status for claimed in pool.map(lambda name: shell("claim", name), names)} == {0}
    (file,) = memory_files(shell)
    assert set(json.loads(file.read_text())["held"]) == {f"job:{name}" for name in names}
    for name in names:
        assert shell("release", name).status == 0


# -- mine --------------------------------------------------------------------------------------------------------


def test_mine_lists_what_the_key_holds(shell, job, queue):
    shell("claim", job, "--owner", queue, "--ttl", 60)
    shell("heartbeat", job, "--owner", queue, "--note", "half done")
    shell("task", "create", queue)
    task = shell("next", queue, "--worker", queue, "-o", "json").json["id"]
    rows = [line.split("\t") for line in shell("mine", "--owner", queue).out.splitlines()]
    assert [(row[0], row[1], row[3], row[4]) for row in rows] == [
        (job, "job", queue, "half done"),
        (task, "task", queue, "-"),
    ]
    assert 0 < int(rows[0][2]) <= 60
    assert [each["id"] for each in shell("mine", "--owner", queue, "-o", "json").json["held"]] == [job, task]
    assert shell("mine", "--owner", queue, "--limit", 1).err.startswith("there are more: --cursor ")
    assert shell("mine", "--owner", "nobody").out == ""


def test_mine_shows_the_lease_ids_of_a_session_by_its_secret(shell, job):
    session = shell("session", "open", job, "-o", "json").json
    bound = ["--session", session["session_id"], "--session-lease", session["lease_id"]]
    lease = shell("claim", job, *bound, "-o", "json").json["lease_id"]
    shown = shell("mine", "--session", session["session_id"], "-o", "json").json["held"]
    assert not any("lease_id" in each for each in shown)
    by_secret = ["mine", "--session", session["session_id"], "--secret-file", "-", "-o", "json"]
    shown = shell(*by_secret, stdin=session["secret"] + "\n").json["held"]
    assert [each["lease_id"] for each in shown] == [session["lease_id"], lease]
    assert shell(*by_secret, stdin="wrong\n").status == 4
