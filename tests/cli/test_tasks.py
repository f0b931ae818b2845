"""Verbs about tasks and about the log."""

import itertools
import json
import select
import signal
import time

import pytest

numbers = itertools.count(1)


@pytest.fixture
def queue():
    """An unused queue."""
    return f"queue-{next(numbers)}"


def create(shell, queue, *words):
    return shell("task", "create", queue, *words, "-o", "json").json["id"]


def test_a_task_is_created_claimed_and_completed(shell, queue):
    made = create(shell, queue, "--payload", '{"n": 1}', "--priority", 7, "--tag", "nightly")
    taken = shell("next", queue, "--worker", "ann", "-o", "json").json
    assert (taken["id"], taken["payload"], taken["priority"]) == (made, {"n": 1}, 7)
    assert shell("task", "heartbeat", made, "--lease", taken["leaseId"], "--note", "half").status == 0
    done = shell("task", "complete", made, "--lease", taken["leaseId"], "--result", '{"ok": true}')
    assert (done.status, done.fields["status"]) == (0, "completed")
    assert shell("task", "get", made).fields["result"] == '{"ok": true}'
    kinds = [line.split("\t")[2] for line in shell("task", "history", made).out.splitlines()]
    assert kinds == ["task.created", "task.claimed", "task.renewed", "task.completed"]
    assert shell("task", "ls", "--type", queue).out.split("\t")[:3] == [made, queue, "completed"]


def test_a_task_is_claimed_under_the_same_name_as_a_job(shell, queue):
    ours = shell("claim", queue, "-o", "json").json["owner"]
    first, second = create(shell, queue), create(shell, queue)
    assert shell("next", queue, "-o", "json").json["claimedBy"] == ours
    assert shell("task", "claim", second, "-o", "json").json["claimedBy"] == ours
    assert shell("task", "complete", first).status == 0


def test_no_ready_task_is_status_3(shell, queue):
    empty = shell("next", queue)
    assert (empty.status, empty.out) == (3, "")
    assert "no task is ready" in empty.err


def test_next_waits_for_a_task(shell, queue):
    waiting = shell.start("next", queue, "-w", 20, "-o", "json")
    time.sleep(0.5)
    made = create(shell, queue)
    out, _ = waiting.communicate(timeout=10)
    assert json.loads(out)["id"] == made


def test_another_workers_task_is_status_1_and_a_lost_one_5(shell, queue):
    made = create(shell, queue)
    lease = shell("task", "claim", made, "-o", "json").json["leaseId"]
    assert shell("task", "claim", made).status == 1
    assert shell("task", "claim", made, "-E", 9).status == 9
    assert shell("task", "cancel", made).status == 1
    assert shell("task", "release", made, "--lease", lease, "--note", "not mine").status == 0
    assert shell("task", "complete", made, "--lease", lease).status == 5
    assert shell("task", "get", "tsk_00000000000000000000000000").status == 3


def test_dead_letters_are_awaited_and_requeued(shell, queue):
    made = create(shell, queue)
    lease = shell("next", queue, "-o", "json").json["leaseId"]
    assert "--lease is required" in shell("task", "fail", made, "--permanent", "--worker", "another").err
    waiting = shell.start("await", "task", made, "-o", "json")
    time.sleep(0.3)
    assert shell("task", "fail", made, "--lease", lease, "--reason", "broken", "--permanent").status == 0
    out, _ = waiting.communicate(timeout=10)
    assert waiting.returncode == 5
    assert json.loads(out)["deadLetterCause"] == "permanent"
    assert shell("task", "requeue", made).fields["status"] == "pending"
    assert shell("await", "task", made, "-w", "0.1").status == 1
    assert shell("task", "cancel", made).status == 0


def test_a_payload_may_come_from_a_file_or_stdin(shell, queue):
    (shell.home / "work.json").write_text('{"from": "file"}')
    shell("task", "create", queue, "--payload", "@work.json")
    assert shell("task", "create", queue, "--payload", "@-", stdin='{"from": "stdin"}').status == 0
    found = [shell("next", queue, "-o", "json").json["payload"]["from"] for _ in range(2)]
    assert found == ["file", "stdin"]
    assert shell("task", "create", queue, "--payload", "{").status == 2


def produce_events(shell, job, process):
    """Claim and release until the follower has received an event: it may connect too late for the first ones."""
    for _ in range(10):
        lease = shell("claim", job, "-o", "json").json["lease_id"]
        shell("release", job, "--lease", lease)
        if select.select([process.stdout], [], [], 2)[0]:
            return
    raise AssertionError("nothing was heard")


def test_the_log_is_followed(shell, job):
    following = shell.start("events", "--follow", "--subject", f"lease:{job}", "-o", "json")
    produce_events(shell, job, following)
    lease = shell("claim", job, "-o", "json").json["lease_id"]
    shell("release", job, "--lease", lease)
    followed = [json.loads(following.stdout.readline()) for _ in range(3)]
    following.send_signal(signal.SIGINT)
    following.communicate(timeout=10)
    assert following.returncode == 130
    assert [event["version"] - followed[0]["version"] for event in followed] == [0, 1, 2]
    shown = [int(line.split("\t")[0]) for line in shell("events", "--subject", f"lease:{job}").out.splitlines()]
    position = shown.index(followed[0]["seq"])
    assert shown[position : position + 3] == [event["seq"] for event in followed]


def test_an_event_is_awaited(shell, job):
    waiting = shell.start("await", "event", "--subject", f"lease:{job}", "-w", 20, "-o", "json")
    produce_events(shell, job, waiting)
    out, _ = waiting.communicate(timeout=10)
    assert waiting.returncode == 0
    assert json.loads(out.splitlines()[0])["subject"] == f"lease:{job}"
    assert shell("await", "event", "--subject", "lease:never", "-w", "0.1").status == 1
