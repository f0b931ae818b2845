"""A task in every state, for the tests of the task rules."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core import task as tasks
from holdfast.core.row import SECOND
from holdfast.core.task import Claim, Task
from tests.support import START
from tests.task_commands import LEASE

NOW, END = START, START + LEASE
MINE, THEIRS = "my proof", "their proof"
CLAIM = Claim("worker", "p1", "s1")

NEW = tasks.create(Task("default", "t1", type="work", max_attempts=2), NOW)
LATER = tasks.create(replace(NEW, scheduled_at=NOW + 5 * SECOND), NOW)
HELD = tasks.claim(NEW, CLAIM, proof=MINE, token=7, now=NOW)
LAST = replace(HELD, attempt_count=2, attempt=2)
DONE = tasks.complete(HELD, result='{"n":1}', output_id="out_1", now=NOW)
DEAD_TASK = tasks.fail(LAST, reason="broken", now=NOW)
CANCELLED_TASK = tasks.cancel(NEW)
RETURNED = tasks.fail(HELD, reason="no", now=NOW)
EXPIRED_TASK = tasks.expire(HELD, END)
EXPIRED_DEAD_TASK = tasks.expire(LAST, END)
RECLAIMED = tasks.claim(EXPIRED_TASK, CLAIM, proof=THEIRS, token=8, now=END)
