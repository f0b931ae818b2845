"""Ready tasks by type and required words: on every store what the tasks themselves say."""

from collections import defaultdict

from holdfast.core.task import PENDING, Task
from holdfast.core.task.missing_workers import ReadyWork
from holdfast.core.task.queueing import queue_order
from tests.support import ACCOUNT, START, every, put
from tests.task_commands import a_claimed, a_task


def expected(store):
    groups = defaultdict(list)
    for task in every(store, Task):
        if task.account == ACCOUNT and task.state == PENDING and task.ready:
            groups[task.type, task.requires or ""].append(task)
    heads = {key: min(found, key=queue_order) for key, found in groups.items()}
    return [ReadyWork(*key, heads[key].place, len(groups[key])) for key in sorted(groups)]


def test_ready_work_is_listed_by_type_and_required_words(store):
    put(
        store,
        a_task("t1", place=START + 5),
        a_task("t2", place=START + 3, priority=1),
        a_task("t3", requires="gpu"),
        a_task("t4", requires="gpu", place=START - 1),
        a_task("t5", requires="gpu,repo:shop"),
        a_task("t6", type="later", ready=False, scheduled_at=START + 10**9),
        a_task("t7", type="other", requires="arm"),
        a_claimed("t8", type="held"),
        a_task("t9", account="another"),
        a_task("t10", place=START + 1, priority=1, concurrency_key="k"),
    )
    with store.read() as reader:
        found, first = reader.ready_work(ACCOUNT, 100), reader.ready_work(ACCOUNT, 2)
    assert found == expected(store)
    assert [(each.type, each.requires, each.count) for each in found] == [
        ("other", "arm", 1), ("work", "", 3), ("work", "gpu", 2), ("work", "gpu,repo:shop", 1),
    ]  # fmt: skip
    assert first == found[:2]
