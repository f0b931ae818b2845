"""Work that no live worker can take."""

import pytest

from holdfast.core.row import SECOND
from holdfast.core.task.missing_workers import SETTLED_AFTER, LiveWorker, ReadyWork, without_worker

NOW = 10_000 * SECOND


def work(task_type="render", requires="", age=SETTLED_AFTER):
    return ReadyWork(task_type, requires, NOW - age, 1)


@pytest.mark.parametrize(
    ("ready", "workers", "is_covered"),
    [
        (work(), [], False),
        (work(), [LiveWorker("render")], True),
        (work(), [LiveWorker("resize")], False),
        (work(), [LiveWorker("")], True),
        (work(requires="gpu"), [LiveWorker("render")], False),
        (work(requires="gpu"), [LiveWorker("render", "gpu")], True),
        (work(requires="gpu"), [LiveWorker("resize", "gpu")], False),
        (work(requires="gpu,repo:shop"), [LiveWorker("", "gpu"), LiveWorker("", "repo:shop")], False),
        (work(requires="gpu,repo:shop"), [LiveWorker("", "arm,gpu,repo:shop")], True),
        (work(age=SETTLED_AFTER - 1), [], True),
    ],
)
def test_a_worker_covers_work_of_its_types_for_which_it_has_every_word(ready, workers, is_covered):
    assert without_worker([ready], workers, NOW) == ([] if is_covered else [ready])


def test_the_longest_waiting_work_is_first():
    old, new = work("b", age=SETTLED_AFTER * 2), work("a")
    assert without_worker([new, old], [LiveWorker("c")], NOW) == [old, new]
