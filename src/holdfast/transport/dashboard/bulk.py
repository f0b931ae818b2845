"""The same thing done to many tasks: a series of small batches that runs on when nobody watches.

Each batch is one ordinary command of the engine, and the next one is sent when it is committed: everybody else's
commands go in between. It belongs to this server process. If that ends, the tasks it had not reached are as they were,
and the same filter finds them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from holdfast.core.browser_session import BrowserSession
from holdfast.core.errors import Conflict, HoldfastError, Overloaded, Refused, Trouble
from holdfast.core.event import Cause
from holdfast.core.principal import Principal
from holdfast.core.row import Instant
from holdfast.core.task import CLAIMED, DEAD, PENDING
from holdfast.engine.change_signal import log_of
from holdfast.engine.verbs.batch import Batch, Outcomes
from holdfast.engine.verbs.tasks.outcomes import CancelTask, RequeueTask, ResolveTask, TaskCommand
from holdfast.store.contract import Reader
from holdfast.transport.dashboard.task_filter import AT_ONCE, NEWEST, Found, Wanted, look, stood
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.ids import ids

BATCH = 200
"""Tasks in one transaction: a few milliseconds, then others have their turn."""
MOST_TASKS = 100_000
LOOKED_AT = 20_000
"""A filter that the store has not counted is counted among so many of the newest tasks."""
MOST_RUNNING, MOST_OF_ACCOUNT = 4, 2
KEPT = 50
"""Bulks that are over and still told of."""
TRIES = 10
PAUSE_SECONDS = 1.0
SCOPE = "tasks:produce"

RUNNING, FINISHED, STOPPED, FAILED = "running", "finished", "stopped", "failed"


class Verb(msgspec.Struct, frozen=True):
    """What may be done to all tasks of a filter."""

    name: str
    state: str
    """Which tasks it is for."""
    words: str
    done: str
    danger: bool = False


VERBS = {
    verb.name: verb
    for verb in (
        Verb("requeue", DEAD, "Requeue", "requeued"),
        Verb("resolve", DEAD, "Mark as dealt with", "marked as dealt with"),
        Verb("cancel", PENDING, "Cancel", "cancelled", danger=True),
        Verb("stop", CLAIMED, "Ask the holders to stop", "asked to stop", danger=True),
    )
}


class Counted(msgspec.Struct, frozen=True):
    """How many tasks fit, and when that was."""

    count: int
    moment: Instant
    complete: bool = True
    """If not, there may be others among older tasks, which were not looked at."""


class Bulk(msgspec.Struct, eq=False):
    """One series, and how far it is."""

    id: str
    verb: Verb
    wanted: Wanted
    browser_session: BrowserSession
    cause: Cause
    by: str
    began: Instant
    total: int
    done: int = 0
    left_alone: int = 0
    """They had changed meanwhile, or something else stood in the way."""
    why: str = ""
    """What the last of those was told."""
    state: str = RUNNING
    stopping: bool = False
    problem: str = ""

    @property
    def seen(self) -> int:
        """How many had their turn."""
        return self.done + self.left_alone

    def command(self, task_id: str) -> TaskCommand:
        """What is done to one task."""
        account, cause = self.browser_session.account, self.cause
        if self.verb.name == "requeue":
            return RequeueTask(account=account, cause=cause, task_id=task_id)
        if self.verb.name == "resolve":
            return ResolveTask(account=account, cause=cause, task_id=task_id)
        mode = "request" if self.verb.name == "stop" else "pending"
        return CancelTask(account=account, cause=cause, task_id=task_id, mode=mode)  # type: ignore[arg-type]


Bearer = Callable[[BrowserSession], Awaitable[Principal | None]]


class Bulks:
    """All of them on this server."""

    def __init__(self, ctx: HandlerContext, bearer: Bearer) -> None:
        self._door = ctx
        self._bearer = bearer
        self._known: dict[str, Bulk] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def find(self, account: str, bulk_id: str) -> Bulk | None:
        """One of an account's."""
        bulk = self._known.get(bulk_id)
        return bulk if bulk is not None and bulk.browser_session.account == account else None

    def of(self, account: str) -> list[Bulk]:
        """An account's, newest first."""
        return [bulk for bulk in reversed(self._known.values()) if bulk.browser_session.account == account]

    async def count(self, account: str, wanted: Wanted) -> Counted:
        """How many tasks fit just now."""
        if wanted.is_counted:
            return await self._door.read(lambda reader: Counted(_counted(reader, account, wanted), reader.now))
        began = await self._door.read(lambda reader: reader.now)
        ids, complete = await self._look(account, wanted, began)
        return Counted(len(ids), began, complete=complete)

    async def collect(self, account: str, wanted: Wanted, moment: Instant) -> list[str]:
        """The ids of those that fit and stood so at that moment, newest first."""
        ids, _ = await self._look(account, wanted, moment)
        return ids

    async def _look(self, account: str, wanted: Wanted, moment: Instant) -> tuple[list[str], bool]:
        """(their ids, whether all tasks were looked at); in looks that others come between."""
        found: list[str] = []
        before = NEWEST
        for _ in range(0, MOST_TASKS + AT_ONCE if wanted.is_counted else LOOKED_AT, AT_ONCE):
            page = await self._door.read(partial(_page, account=account, wanted=wanted, before=before))
            found += [task.id for task in page.tasks if stood(task, moment)]
            if len(found) > MOST_TASKS:
                raise Conflict(f"more than {MOST_TASKS} tasks: narrow the filter")
            if not page.following:
                return found, True
            before = page.following
        return found, False

    def check(self, account: str, wanted: Wanted) -> None:
        """Refuse if the same is under way, or too much is."""
        running = [other for other in self._known.values() if other.state == RUNNING]
        if any((other.browser_session.account, other.wanted) == (account, wanted) for other in running):
            raise Conflict("something is being done to these tasks already: let it finish, or stop it")
        if sum(other.browser_session.account == account for other in running) >= MOST_OF_ACCOUNT:
            raise Conflict(
                f"{MOST_OF_ACCOUNT} are under way in your account: wait until one of them is done, or stop it"
            )
        if len(running) >= MOST_RUNNING:
            raise Overloaded("enough is under way on this server: wait until some of it is done")

    def start(self, bulk: Bulk, ids: list[str]) -> None:
        """Begin, unless somebody else did meanwhile."""
        self.check(bulk.browser_session.account, bulk.wanted)
        self._known[bulk.id] = bulk
        over = [other.id for other in self._known.values() if other.state != RUNNING]
        for old in over[: max(len(self._known) - KEPT, 0)]:
            del self._known[old]
        task = asyncio.ensure_future(self._run(bulk, ids))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, bulk: Bulk, ids: list[str]) -> None:
        try:
            for first in range(0, len(ids), BATCH):
                if bulk.stopping or self._door.engine.change_signal.draining:
                    bulk.state = STOPPED
                    return
                holder = await self._bearer(bulk.browser_session)
                if holder is None or not holder.may(SCOPE):
                    raise Conflict("the key that began this may not go on")
                await self._batch(bulk, ids[first : first + BATCH])
            bulk.state = FINISHED
        except HoldfastError as error:
            bulk.state, bulk.problem = FAILED, error.message
        finally:
            if bulk.state == RUNNING:  # this server ends, or has a defect: either way it does not go on
                bulk.state, bulk.problem = FAILED, "it broke off"
            self._door.engine.change_signal.ring([log_of(bulk.browser_session.account)])

    async def _batch(self, bulk: Bulk, ids: list[str]) -> None:
        """One transaction; when the server is too busy, a little later."""
        items = tuple(bulk.command(task_id) for task_id in ids)
        command = Batch(account=bulk.browser_session.account, cause=bulk.cause, items=items)
        outcomes = await self._patiently(bulk, command)
        refusals = [each for each in outcomes.each if isinstance(each, Refused)]
        bulk.done += len(ids) - len(refusals)
        bulk.left_alone += len(refusals)
        if refusals:
            bulk.why = refusals[-1].message

    async def _patiently(self, bulk: Bulk, command: Batch) -> Outcomes:
        """A busy server is asked again; nothing is done twice, for a task that had its turn refuses a second one."""
        for _ in range(TRIES):
            try:
                return await self._door.run(command)
            except Trouble:
                if bulk.stopping:
                    raise
                await asyncio.sleep(PAUSE_SECONDS)
        return await self._door.run(command)


def new_id() -> str:
    """A name that nobody guesses."""
    return "bulk_" + ids.ulid()


def _page(reader: Reader, account: str, wanted: Wanted, before: str) -> Found:
    return look(reader, account, wanted, before, limit=AT_ONCE, most=AT_ONCE)


def _counted(reader: Reader, account: str, wanted: Wanted) -> int:
    return sum(
        many
        for task_type, state, many in reader.task_counts(account)
        if wanted.type in {"", task_type} and wanted.state in {"", state}
    )
