"""Rows and commands of tasks and sessions for tests of core, store and engine, as `support.py` has them for leases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.core.event import Event
from holdfast.core.holdings.lease_ids import session_lease_id
from holdfast.core.lease import proof_of
from holdfast.core.principal import Principal
from holdfast.core.question import APPROVAL, APPROVAL_CHOICES, APPROVAL_TEXT, Question, QuestionContent
from holdfast.core.row import SECOND, Instant
from holdfast.core.session import Session
from holdfast.core.task import CLAIMED, Task
from holdfast.engine.sweep import expiry_command
from holdfast.engine.verbs.questions import AnswerQuestion, AskTask
from holdfast.engine.verbs.sessions import BeginSession, CloseSession, HeartbeatSession, WriteContext
from holdfast.engine.verbs.tasks.cancelling import CancelTask, RequeueTask, ResolveTask
from holdfast.engine.verbs.tasks.claiming import ClaimTask, ClaimTasks, lease_id_from
from holdfast.engine.verbs.tasks.creating import CreateTask
from holdfast.engine.verbs.tasks.holding import CompleteTask, FailTask, HeartbeatTask, ReleaseTask, UndeliverTask
from holdfast.engine.verbs.tasks.offers import OfferTask, WithdrawTaskOffer
from holdfast.engine.verbs.tasks.plans import CreatePlan
from tests.support import ACCOUNT, ALICE, CAUSE, START, every, transact

LEASE = 300 * SECOND
BASE: dict[str, Any] = {"account": ACCOUNT, "cause": CAUSE}


# -- rows --------------------------------------------------------------------------------------------------------


def a_task(task_id: str = "t1", *, account: str = ACCOUNT, **more: Any) -> Task:
    """A pending task."""
    waiting: dict[str, Any] = {"type": "work", "ready": True, "created_at": START, "place": START}
    return Task(account, task_id, **(waiting | more))


def a_claimed(task_id: str = "t1", *, ends: Instant = START + LEASE, **more: Any) -> Task:
    """A claimed task."""
    held: dict[str, Any] = {
        "state": CLAIMED,
        "ready": False,
        "attempt": 1,
        "attempt_count": 1,
        "worker": "worker",
        "principal": ALICE.id,
        "proof": proof_of("l1"),
        "token": 1,
        "claimed_at": ends - LEASE,
        "expires_at": ends,
    }
    return a_task(task_id, **(held | more))


# -- verbs -------------------------------------------------------------------------------------------------------


def create(
    task_id: str = "t1",
    *,
    account: str = ACCOUNT,
    once: Any = None,
    replaces: bool = False,
    after: Sequence[str] = (),
    approval: QuestionContent | None = None,
    **task: Any,
) -> Any:
    """Create a task; `after` are those that it depends on."""
    row = Task(account, task_id, **({"type": "work"} | task))
    given: dict[str, Any] = {"replace_payload": replaces, "once": once, "approval": approval}
    return CreateTask(account=account, cause=CAUSE, task=row, depends_on=tuple(after), **given)


def plan(*items: tuple[str | None, CreateTask], once: Any = None) -> CreatePlan:
    """Create tasks that name each other: (ref, command) of each."""
    refs, commands = zip(*items, strict=True)
    return CreatePlan(**(BASE | {"items": commands, "refs": refs, "once": once}))


def take(*types: str, seed: str = "s1", limit: int = 1, **more: Any) -> ClaimTasks:
    """Claim from these queues, or from any."""
    given: dict[str, Any] = {"by": ALICE, "worker": "worker", "seed": seed.encode(), "types": types, "limit": limit}
    return ClaimTasks(**(BASE | given | more))


def take_this(task_id: str = "t1", *, seed: str = "s1", **more: Any) -> ClaimTask:
    """Claim by id."""
    given: dict[str, Any] = {"by": ALICE, "worker": "worker", "seed": seed.encode(), "task_id": task_id}
    return ClaimTask(**(BASE | given | more))


def lease_of(task_id: str = "t1", seed: str = "s1") -> str:
    """The lease id that a claim with this seed gives."""
    return lease_id_from(seed.encode(), task_id)


def _held(verb: Any, task_id: str, seed: str | None, more: dict[str, Any]) -> Any:
    shown = {} if seed is None else {"lease_id": lease_of(task_id, seed)}
    return verb(**(BASE | {"task_id": task_id} | shown | more))


def beat(task_id: str = "t1", seed: str | None = "s1", **more: Any) -> HeartbeatTask:
    """A holder's heartbeat; with `seed=None` it sends no lease id."""
    return _held(HeartbeatTask, task_id, seed, more)


def complete(task_id: str = "t1", seed: str | None = "s1", **more: Any) -> CompleteTask:
    return _held(CompleteTask, task_id, seed, more)


def fail(task_id: str = "t1", seed: str | None = "s1", **more: Any) -> FailTask:
    return _held(FailTask, task_id, seed, more)


def release_task(task_id: str = "t1", seed: str | None = "s1", **more: Any) -> ReleaseTask:
    return _held(ReleaseTask, task_id, seed, more)


def undeliver(task_id: str = "t1", seed: str | None = "s1", **more: Any) -> UndeliverTask:
    return _held(UndeliverTask, task_id, seed, more)


def ask(task_id: str = "t1", seed: str | None = "s1", text: str = "Which one?", **more: Any) -> AskTask:
    """Ask a person; fields of the content and of the command may be mixed."""
    about = {name: more.pop(name) for name in ("choices", "deadline_at", "on_timeout") if name in more}
    return _held(AskTask, task_id, seed, {"content": QuestionContent(text, **about)} | more)


def approval(text: str = APPROVAL_TEXT, **more: Any) -> QuestionContent:
    """An approval, for `create`."""
    return QuestionContent(text, APPROVAL_CHOICES, kind=APPROVAL, **more)


def answer(question: str, text: str = "a", by: str = "alice", **more: Any) -> AnswerQuestion:
    return AnswerQuestion(**(BASE | {"question_id": question, "answer": text, "by": by} | more))


def offer_task(task_id: str = "t1", seed: str | None = "s1", code: str = "code-1", **more: Any) -> OfferTask:
    """Offer a task for ten minutes."""
    return _held(OfferTask, task_id, seed, {"code": code, "lasts": 600 * SECOND} | more)


def withdraw_task(task_id: str = "t1", seed: str | None = "s1", **more: Any) -> WithdrawTaskOffer:
    return _held(WithdrawTaskOffer, task_id, seed, more)


def cancel(task_id: str = "t1", mode: str = "pending", **more: Any) -> CancelTask:
    return CancelTask(**(BASE | {"task_id": task_id, "mode": mode} | more))


def requeue(task_id: str = "t1", **more: Any) -> RequeueTask:
    return RequeueTask(**(BASE | {"task_id": task_id} | more))


def resolve(task_id: str = "t1", **more: Any) -> ResolveTask:
    return ResolveTask(**(BASE | {"task_id": task_id} | more))


# -- sessions ----------------------------------------------------------------------------------------------------


def begin(session_id: str = "s1", *, seed: str = "life-1", by: Principal = ALICE, **more: Any) -> BeginSession:
    """Open a session by its name, or resume it; the secret of a new session is `secret-<seed>`."""
    given: dict[str, Any] = {
        "by": by,
        "session_id": session_id,
        "name": f"agent-{session_id}",
        "ttl": 60 * SECOND,
        "fresh_secret": f"secret-{seed}",
    }
    return BeginSession(**(BASE | given | more))


def life_of(session_id: str = "s1", seed: str = "life-1") -> str:
    """The lease id of a session that was opened at START with this seed, and not resumed since."""
    return session_lease_id(f"secret-{seed}", Session(ACCOUNT, session_id, generation=1, opened_at=START))


def _life(verb: Any, session_id: str, seed: str | None, more: dict[str, Any]) -> Any:
    shown = None if seed is None else life_of(session_id, seed)
    return verb(**(BASE | {"by": ALICE, "session_id": session_id, "lease_id": shown} | more))


def heartbeat_session(session_id: str = "s1", seed: str | None = "life-1", **more: Any) -> HeartbeatSession:
    """A session's heartbeat, which renews all it holds."""
    return _life(HeartbeatSession, session_id, seed, more)


def write(session_id: str = "s1", seed: str | None = "life-1", **more: Any) -> WriteContext:
    return _life(WriteContext, session_id, seed, more)


def close_session(session_id: str = "s1", seed: str | None = "life-1", **more: Any) -> CloseSession:
    return _life(CloseSession, session_id, seed, more)


HOLDER_VERBS = {"heartbeat": beat, "complete": complete, "fail": fail, "release": release_task, "undeliver": undeliver}
"""The commands of a task's holder, by name."""


# -- time --------------------------------------------------------------------------------------------------------


def sweep(store: Any) -> list[Any]:
    """One pass of the sweep in this thread: everything that is due."""
    with store.read() as reader:
        due = reader.due(1_000)
    return transact(store, *map(expiry_command, due)) if due else []


# -- reading -----------------------------------------------------------------------------------------------------


def the_task(store: Any) -> Task:
    """The only task of a store."""
    (task,) = every(store, Task)
    return task


def the_question(store: Any) -> Question:
    """The only question of a store."""
    (question,) = every(store, Question)
    return question


def event_kinds(store: Any) -> list[str]:
    """The kinds of all events of a store with tasks only, without their prefix."""
    return [event.kind.removeprefix("task.") for event in every(store, Event)]
