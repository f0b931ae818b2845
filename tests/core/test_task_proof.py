"""Only the newest live holder of a task may act; a refusal describes the current state."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.core import task as tasks
from holdfast.core.errors import InvalidTransition, LeaseExpired, LeaseSuperseded, TaskMissing
from holdfast.core.task import COMPLETED, Task
from tests.core.states import (
    DEAD_TASK,
    DONE,
    END,
    EXPIRED_DEAD_TASK,
    EXPIRED_TASK,
    HELD,
    MINE,
    NEW,
    NOW,
    RECLAIMED,
    RETURNED,
    THEIRS,
)
from tests.task_commands import LEASE


@pytest.mark.parametrize(
    ("task", "proof", "now", "refusal"),
    [
        (HELD, MINE, END - 1, None),
        (HELD, None, END - 1, None),
        (HELD, MINE, END, LeaseExpired),
        (HELD, None, END, LeaseExpired),
        (HELD, THEIRS, NOW, LeaseSuperseded),
        (RECLAIMED, MINE, END, LeaseSuperseded),
        (RECLAIMED, THEIRS, END, None),
        (NEW, None, NOW, InvalidTransition),
        (NEW, MINE, NOW, LeaseSuperseded),
        (RETURNED, MINE, NOW, InvalidTransition),
        (RETURNED, THEIRS, NOW, LeaseSuperseded),
        (EXPIRED_TASK, MINE, END, LeaseExpired),
        (EXPIRED_TASK, None, END, LeaseExpired),
        (EXPIRED_TASK, THEIRS, END, LeaseSuperseded),
        (EXPIRED_DEAD_TASK, MINE, END, LeaseExpired),
        (EXPIRED_DEAD_TASK, None, END, LeaseExpired),
        (tasks.requeue(EXPIRED_DEAD_TASK, END), None, END, LeaseExpired),
        (DONE, MINE, NOW, InvalidTransition),
        (DONE, THEIRS, NOW, LeaseSuperseded),
        (DONE, None, NOW, InvalidTransition),
    ],
    ids=[
        "last moment", "last moment, no id", "expired", "expired, no id", "another's", "taken over", "the successor's",
        "never held, no id", "never held", "failed by me", "failed by another", "swept", "swept, no id",
        "swept, another's", "swept to its end", "swept to its end, no id", "requeued, no id", "done by me",
        "done by another", "done, no id",
    ],
)  # fmt: skip
def test_only_the_newest_live_holder_may_act(task, proof, now, refusal):
    if refusal is None:
        tasks.check_holder(task, proof, now)
        return
    with pytest.raises(refusal) as caught:
        tasks.check_holder(task, proof, now)
    assert type(caught.value) is refusal


def test_a_refusal_names_the_current_holder_but_no_lease_id_or_token():
    with pytest.raises(LeaseSuperseded) as caught:
        tasks.check_holder(RECLAIMED, MINE, END)
    assert caught.value.facts == {"held_by": "worker", "held_since": END, "expires_at": END + LEASE}


@pytest.mark.parametrize(
    ("task", "proof", "outcome", "repeat"),
    [
        (DONE, MINE, COMPLETED, True),
        (DONE, None, COMPLETED, True),
        (DONE, THEIRS, COMPLETED, False),
        (DONE, MINE, tasks.FAILED, False),
        (RETURNED, MINE, tasks.FAILED, True),
        (RETURNED, None, tasks.FAILED, False),
        (RETURNED, MINE, COMPLETED, False),
        (DEAD_TASK, MINE, tasks.FAILED, True),
        (RECLAIMED, MINE, tasks.EXPIRED, False),
        (HELD, MINE, COMPLETED, False),
        (NEW, None, COMPLETED, False),
    ],
)
def test_the_same_outcome_from_the_same_holder_is_a_repeat(task, proof, outcome, repeat):
    assert tasks.is_repeat(task, proof, outcome) is repeat


@pytest.mark.parametrize("absent", [None, Task("default", "t1")])
def test_absent_and_foreign_tasks_get_the_same_refusal(absent):
    with pytest.raises(TaskMissing):
        tasks.check_found(absent)
    assert tasks.check_found(replace(NEW, version=1)).id == "t1"
