"""Invariants of a task after any sequence of commands."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core import task as tasks
from holdfast.core.errors import Refused
from holdfast.core.lease import is_live
from holdfast.core.task import CANCELLED, CLAIMED, COMPLETED, DEAD, FINAL_STATES, PENDING, Claim, Handover, Task
from tests.proof_size import FULL
from tests.support import START

EXAMPLES = 3_000 if FULL else 80
LEASE = 10

HOLDERS = ["beat", "beat", "complete", "fail", "fail", "release", "undeliver", "reissue"]
OTHERS = ["claim", "claim", "claim", "sweep", "ripen", "cancel", "request", "force", "requeue", "resolve", "replace"]
moves = st.fixed_dictionaries(
    {
        "verb": st.sampled_from([*HOLDERS, *OTHERS]),
        "pass": st.sampled_from([0, 0, 1, 3, LEASE - 1, LEASE, LEASE + 1]),
        "who": st.sampled_from(["newest", "newest", "newest", "older", "no proof"]),
        "note": st.sampled_from([None, None, "note"]),
        "checkpoint": st.sampled_from([None, None, '{"c":1}']),
        "after": st.sampled_from([None, None, 0, 5]),
        "flag": st.booleans(),
    }
)


class TaskRun:
    """One task, and the proofs of all its holders."""

    def __init__(self, max_attempts: int) -> None:
        self.now = START
        row = Task("default", "t1", type="work", max_attempts=max_attempts, lease_duration=LEASE)
        self.task = tasks.create(row, self.now)
        self.proofs: list[str] = []
        self.context: tuple = (None, None, None)
        self.accepted_writes: list[tuple[str, bool]] = []
        """Whether the lease of this call was live and the newest, for every accepted write by a holder."""

    def step(self, drawn: dict) -> None:
        self.now += drawn["pass"]
        if drawn["verb"] in HOLDERS:
            self.task = self.run_holder_command(drawn)
        else:
            self.task = self.run_other_command(drawn)

    def run_holder_command(self, drawn: dict) -> Task:
        task, now = self.task, self.now
        proof = self.choose_proof(drawn["who"])
        tasks.check_holder(task, proof, now)
        self.accepted_writes.append((proof in {None, self.proofs[-1]}, is_live(task, now)))
        left = tasks.with_handover(task, Handover(drawn["note"], drawn["checkpoint"]))
        match drawn["verb"]:
            case "beat":
                return tasks.heartbeat(left, now)
            case "complete":
                return self.record_ending(left, tasks.complete(left, result="{}", output_id=None, now=now))
            case "fail":
                failed = tasks.fail(left, reason="no", now=now, after=drawn["after"], permanent=drawn["flag"])
                return self.record_ending(left, failed)
            case "release":
                return self.record_ending(left, tasks.release(left, tasks.RELEASED, now=now, after=drawn["after"]))
            case "undeliver":  # a holder that left a note has received its claim
                return task if (task.note, task.checkpoint) != (None, None) else tasks.undeliver(task, now)
            case _:
                return tasks.reissue(task, proof=self.proof(), token=len(self.proofs), now=now)

    def run_other_command(self, drawn: dict) -> Task:  # noqa: PLR0911 - one case a verb
        task, now = self.task, self.now
        match drawn["verb"]:
            case "claim":
                tasks.check_claimable(task, now)
                by = Claim("worker", "p1", "s1" if drawn["flag"] else None)
                return tasks.claim(task, by, proof=self.proof(), token=len(self.proofs), now=now)
            case "sweep":
                return self.record_ending(task, tasks.expire_if_due(task, now))
            case "ripen":
                return tasks.make_ready(task) if tasks.is_schedule_due(task, now) else task
            case "cancel":
                return tasks.cancel(task)
            case "request":
                return tasks.request_cancel(task)
            case "force":
                return self.record_ending(task, tasks.force_cancel(task, now))
            case "requeue":
                return tasks.requeue(task, now)
            case "resolve":
                return tasks.resolve(task, now)
            case _:
                if task.state != PENDING:
                    return task
                scheduled = now + 7 if drawn["flag"] else None
                wanted = Task("default", "x", max_attempts=task.max_attempts, lease_duration=LEASE)
                return tasks.replace_work(task, replace(wanted, scheduled_at=scheduled), now)

    def choose_proof(self, who: str) -> str | None:
        if who == "no proof":
            return None
        known = self.proofs or ["made up"]
        return known[-1] if who == "newest" else known[0] if len(known) > 1 else "made up"

    def proof(self) -> str:
        self.proofs.append(f"proof-{len(self.proofs)}")
        return self.proofs[-1]

    def record_ending(self, before: Task, after: Task) -> Task:
        """Record the note and checkpoint that the next holder must get: the last ones that were left."""
        if before.state == CLAIMED and after.state != CLAIMED:
            if before.note is not None or before.checkpoint is not None:
                self.context = (before.note, before.checkpoint, before.attempt)
            attempt = tasks.last_attempt(after)
            assert (attempt.note, after.ended_checkpoint, attempt.context_from) == self.context
            assert (attempt.attempt, attempt.proof) == (before.attempt, before.proof)
        return after


def check_shape(task: Task) -> None:
    held = [task.proof, task.expires_at, task.claimed_at, task.principal]
    assert all(part is not None for part in held) if task.state == CLAIMED else all(part is None for part in held)
    assert task.session is None or task.state == CLAIMED
    assert (task.worker is not None) == (task.state in {CLAIMED, COMPLETED})
    assert not task.ready or task.state == PENDING
    assert task.ready or task.state != PENDING or task.scheduled_at is not None
    assert (task.dead_cause is not None) == (task.state == DEAD)
    assert task.resolved_at is None or task.state == DEAD
    assert task.cancel_requested <= (task.state == CLAIMED)
    assert (task.note, task.checkpoint) == (None, None) or task.state == CLAIMED
    assert 0 <= task.attempt_count <= task.max_attempts
    assert task.attempt_count <= task.attempt
    assert task.place == tasks.queue_position(task.created_at, task.scheduled_at)


@settings(max_examples=EXAMPLES)
@given(max_attempts=st.integers(1, 4), script=st.lists(moves, min_size=10, max_size=40))
def test_no_sequence_of_commands_breaks_the_invariants_of_a_task(max_attempts, script):
    run = TaskRun(max_attempts)
    for drawn in script:
        before = run.task
        try:
            run.step(drawn)
        except Refused:
            assert run.task is before
        after = run.task
        check_shape(after)
        assert after.attempt >= before.attempt
        assert (after.attempt > before.attempt) == (before.state == PENDING and after.state == CLAIMED)
        if before.state in {COMPLETED, CANCELLED}:
            assert after == before
        if before.state == DEAD:
            assert after.state == (PENDING if drawn["verb"] == "requeue" else DEAD)
        if after.attempt_count < before.attempt_count:
            assert drawn["verb"] in {"release", "undeliver", "requeue"}
        assert after.created_at == before.created_at
    assert all(newest and live for newest, live in run.accepted_writes), (
        "a write was accepted under a lease that was over"
    )


@settings(max_examples=EXAMPLES // 2)
@given(max_attempts=st.integers(1, 4), script=st.lists(moves, min_size=5, max_size=30))
def test_an_expired_lease_is_over_whether_or_not_it_was_swept(max_attempts, script):
    """The same commands, with the sweep before each of them or never: both tasks change in the same way."""
    swept, unswept = TaskRun(max_attempts), TaskRun(max_attempts)
    for drawn in script:
        outcomes = []
        for run in (swept, unswept):
            run.now += drawn["pass"]
            if (
                run is swept or drawn["verb"] not in HOLDERS
            ):  # other commands end an expired lease first, as the engine does
                run.task = run.record_ending(run.task, tasks.expire_if_due(run.task, run.now))
            try:
                run.step(drawn | {"pass": 0})
            except Refused as refusal:
                outcomes.append(type(refusal))
            else:
                outcomes.append(None)
        assert outcomes[0] == outcomes[1]
        assert comparable_state(swept.task) == comparable_state(tasks.expire_if_due(unswept.task, unswept.now))


def comparable_state(task: Task) -> tuple:
    """The task without the times at which its expiry was recorded, which may differ."""
    return task.state, task.ready, task.attempt, task.attempt_count, task.dead_cause, task.scheduled_at


@pytest.mark.parametrize("keep_count", [False, True])
def test_a_requeued_task_has_all_its_attempts_again_or_keeps_its_count(keep_count):
    run = TaskRun(2)

    def attempts_left() -> int:
        used = 0
        while run.task.state == PENDING:
            run.task = tasks.claim(run.task, Claim(None, "p1"), proof="p", token=1, now=run.now)
            run.task = tasks.fail(run.task, reason=None, now=run.now)
            used += 1
        return used

    assert attempts_left() == 2
    run.task = tasks.requeue(run.task, run.now, keep_count=keep_count)
    assert attempts_left() == (1 if keep_count else 2)
    assert run.task.attempt == (3 if keep_count else 4)
    assert run.task.state in FINAL_STATES
