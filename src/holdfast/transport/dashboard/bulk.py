"""Bulk operations: one verb applied to many tasks, as a series of small batches in the background.

Each batch is one ordinary engine command, and the next one is sent when it is committed, so other clients' commands run
in between. A bulk operation belongs to this server process. If the process ends, the remaining tasks are unchanged and
the same filter finds them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from holdfast.core.browser_session import BrowserSession
from holdfast.core.errors import Conflict, HoldfastError, Overloaded, Trouble
from holdfast.core.event import Cause
from holdfast.core.principal import Principal
from holdfast.core.row import Instant
from holdfast.core.task import CLAIMED, DEAD, PENDING
from holdfast.engine.change_signal import account_log_key
from holdfast.engine.verbs.batch import Batch, FailedItem, Outcomes
from holdfast.engine.verbs.tasks.base import TaskCommand
from holdfast.engine.verbs.tasks.cancelling import CancelTask, RequeueTask, ResolveTask
from holdfast.transport.dashboard.access.permissions import may_use
from holdfast.transport.dashboard.task_filter import DashboardFilter
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.ids import ids

BATCH = 200
"""Tasks in one transaction, which takes a few milliseconds: other commands do not wait longer than that."""
MAX_RUNNING, MAX_PER_ACCOUNT = 4, 2
MAX_REMEMBERED = 50
"""Operations whose page can be opened, including those that have ended."""
RETRIES = 10
RETRY_SECONDS = 1.0
OPERATION = "requeue_task"
"""Whoever may use this operation may change tasks in bulk: all verbs of producers have the same rights."""

RUNNING, FINISHED, STOPPED, FAILED = "running", "finished", "stopped", "failed"


class BulkVerb(msgspec.Struct, frozen=True):
    """What can be done to every task of a filter."""

    name: str
    state: str
    """The state of the tasks it applies to."""
    label: str
    done: str
    danger: bool = False


VERBS = {
    verb.name: verb
    for verb in (
        BulkVerb("requeue", DEAD, "Requeue", "requeued"),
        BulkVerb("resolve", DEAD, "Resolve", "resolved"),
        BulkVerb("cancel", PENDING, "Cancel", "cancelled", danger=True),
        BulkVerb("stop", CLAIMED, "Request cancellation", "requested to cancel", danger=True),
    )
}


class BulkOperation(msgspec.Struct, eq=False):
    """One operation and its progress."""

    id: str
    verb: BulkVerb
    filters: DashboardFilter
    browser_session: BrowserSession
    cause: Cause
    by: str
    started_at: Instant
    total: int
    done: int = 0
    skipped: int = 0
    """Tasks that refused the verb, because they have changed since or for another reason, and damaged ones."""
    skip_reason: str = ""
    """Error message of the last skipped task."""
    state: str = RUNNING
    stopping: bool = False
    error: str = ""

    @property
    def processed(self) -> int:
        """Tasks that the verb was applied to, with or without success."""
        return self.done + self.skipped

    def command(self, task_id: str) -> TaskCommand:
        """The engine command for one task."""
        account, cause = self.browser_session.account, self.cause
        if self.verb.name == "requeue":
            return RequeueTask(account=account, cause=cause, task_id=task_id)
        if self.verb.name == "resolve":
            return ResolveTask(account=account, cause=cause, task_id=task_id)
        mode = "request" if self.verb.name == "stop" else "pending"
        return CancelTask(account=account, cause=cause, task_id=task_id, mode=mode)  # type: ignore[arg-type]


FindPrincipal = Callable[[BrowserSession], Awaitable[Principal | None]]


class BulkOperations:
    """The bulk operations of this server process."""

    def __init__(self, ctx: HandlerContext, find_principal: FindPrincipal) -> None:
        self._ctx = ctx
        self._find_principal = find_principal
        self._operations: dict[str, BulkOperation] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def find(self, account: str, operation_id: str) -> BulkOperation | None:
        """One operation of an account."""
        operation = self._operations.get(operation_id)
        return operation if operation is not None and operation.browser_session.account == account else None

    def list_running(self, account: str) -> list[BulkOperation]:
        """The running operations of an account, newest first."""
        return [each for each in reversed(self._running()) if each.browser_session.account == account]

    def check(self, account: str, filters: DashboardFilter) -> None:
        """Refuse if an operation with this filter is running, or too many are."""
        running = self._running()
        if any((other.browser_session.account, other.filters) == (account, filters) for other in running):
            raise Conflict("a bulk operation on these tasks is running: let it finish, or stop it")
        if sum(other.browser_session.account == account for other in running) >= MAX_PER_ACCOUNT:
            raise Conflict(
                f"your account has {MAX_PER_ACCOUNT} bulk operations running: let one of them finish, or stop it"
            )
        if len(running) >= MAX_RUNNING:
            raise Overloaded("too many bulk operations are running on this server: try again when one has finished")

    def start(self, operation: BulkOperation, ids: list[str]) -> None:
        """Start it in the background, unless `check` refuses it now."""
        self.check(operation.browser_session.account, operation.filters)
        self._operations[operation.id] = operation
        ended = [other.id for other in self._operations.values() if other.state != RUNNING]
        for old in ended[: max(len(self._operations) - MAX_REMEMBERED, 0)]:
            del self._operations[old]
        task = asyncio.ensure_future(self._run(operation, ids))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _running(self) -> list[BulkOperation]:
        return [each for each in self._operations.values() if each.state == RUNNING]

    async def _run(self, operation: BulkOperation, ids: list[str]) -> None:
        try:
            for first in range(0, len(ids), BATCH):
                if operation.stopping or self._ctx.engine.change_signal.draining:
                    operation.state = STOPPED
                    return
                principal = await self._find_principal(operation.browser_session)
                if principal is None or not may_use(principal, OPERATION):
                    raise Conflict("the key that started this may no longer change tasks")
                await self._run_batch(operation, ids[first : first + BATCH])
            operation.state = FINISHED
        except HoldfastError as error:
            operation.state, operation.error = FAILED, error.message
        finally:
            if operation.state == RUNNING:  # the server is shutting down, or there is a defect
                operation.state, operation.error = FAILED, "it was interrupted"
            self._ctx.engine.change_signal.notify([account_log_key(operation.browser_session.account)])

    async def _run_batch(self, operation: BulkOperation, ids: list[str]) -> None:
        """Run one transaction and count its outcomes."""
        items = tuple(operation.command(task_id) for task_id in ids)
        command = Batch(account=operation.browser_session.account, cause=operation.cause, items=items)
        outcomes = await self._run_with_retries(operation, command)
        failed = [each for each in outcomes.each if isinstance(each, FailedItem)]
        operation.done += len(ids) - len(failed)
        operation.skipped += len(failed)
        if failed:
            operation.skip_reason = failed[-1].message

    async def _run_with_retries(self, operation: BulkOperation, command: Batch) -> Outcomes:
        """Run it again while the server is overloaded. That is safe: a task refuses the verb the second time."""
        for _ in range(RETRIES):
            try:
                return await self._ctx.run(command)
            except Trouble:
                if operation.stopping:
                    raise
                await asyncio.sleep(RETRY_SECONDS)
        return await self._ctx.run(command)


def new_id() -> str:
    """An id that cannot be guessed."""
    return "bulk_" + ids.ulid()
