"""The calls about tasks: what each may answer in a state, and what it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.linearizability.history import Call
from tests.linearizability.model.holders import (
    accepts,
    as_holder_finds_it,
    is_held_by,
    may_claim_for,
    may_refuse_code,
    may_refuse_session,
    not_mine,
    reading,
    renew,
    renewing,
)
from tests.linearizability.model.objects import (
    CLAIMED,
    PENDING,
    Changes,
    Key,
    Moment,
    State,
    Task,
    complete,
    deadline,
    fail,
    fits,
    release,
    ways_to_be_free,
)


def create_task(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """A new task in its queue."""
    key = ("task", call.args["task"])
    if not state[key].state:
        yield {
            key: Task(PENDING, call.args["queue"], call.args["max_attempts"], call.args["ttl"], at=now.at),
        }


def claim_task(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """One pending task of a queue, or empty if it has none; or the one whose offer the code accepts."""
    return renewing(_claim_task, state, call, now)


def _claim_task(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    if "offer" in call.args:
        yield from _take_over(state, call, now)
        return
    answer = call.answer
    kind = None if answer is None else answer["is"]
    if kind == "empty":
        if not any(key[0] == "task" and _is_waiting(task, call) for key, task in state.items()):
            yield {}
    elif kind in {"session_over", "lost"}:
        if may_refuse_session(state, call, now):
            yield {}
    elif may_claim_for(state, call, now):
        keys = [("task", answer["task"])] if answer else [key for key in state if key[0] == "task"]
        for key in keys:
            moment = now.after(state[key].at)
            if moment.is_possible:
                for way in ways_to_be_free(state, key, moment):
                    yield from _grant(state, call, moment, key, way)


def _take_over(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Granted for the code of an open offer, without one more used attempt; refused for any other."""
    key = ("task", call.args["task"])
    task: Task = state[key]
    kind = None if call.answer is None else call.answer["is"]
    now = now.after(task.at)
    if not now.is_possible:
        return
    if kind in {None, "granted"}:
        if may_claim_for(state, call, now) and accepts(task, call, now):
            yield from _grant(state, call, now, key, {key: release(task, "handed_over", now)})
    elif kind == "offer_refused":
        if may_refuse_code(task, call, now):
            yield {}
    elif kind in {"session_over", "lost"} and may_refuse_session(state, call, now):
        yield {}


def _is_waiting(task: Task, call: Call) -> bool:
    return task.state == PENDING and task.queue == call.args["queue"]


def _grant(state: State, call: Call, now: Moment, key: Key, way: Changes) -> Iterator[Changes]:
    before: Task = way.get(key, state[key])
    session = call.args.get("session")
    if before.state != PENDING or before.queue != call.args["queue"] or ("session", session) in way:
        return
    answer = call.answer or {"token": before.token + 1, "proof": f"unknown {call.id}", "attempt": before.attempt + 1}
    granted = before._replace(
        state=CLAIMED, attempt=before.attempt + 1, used=before.used + 1, proof=answer["proof"], token=answer["token"],
        owner=call.args["owner"], session=session, at=now.at, **deadline(now, before.ttl),
    )  # fmt: skip
    if answer["token"] <= before.token or answer["attempt"] != granted.attempt:
        return
    if fits(answer.get("expires_at"), granted, None if session is None else state["session", session]):
        yield way | {key: granted if call.answer else granted._replace(token=before.token)}


def heartbeat_task(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Renewed for its live holder, lost for everybody else."""
    yield from _holder_call(state, call, now, "renewed", renew)


def complete_task(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Completed by its live holder, and the same answer if it reports the same again."""
    yield from _holder_call(state, call, now, "completed", lambda task, at: complete(task, call.args["result"], at))


def fail_task(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Back in its queue, or a dead letter after the last attempt."""
    yield from _holder_call(state, call, now, "failed", fail)


def release_task(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Back in its queue, without a used attempt."""
    yield from _holder_call(state, call, now, "released", lambda task, at: release(task, "released", at))


def _holder_call(
    state: State, call: Call, now: Moment, done: str, change: Callable[[Task, Moment], Task]
) -> Iterator[Changes]:
    key = ("task", call.args["task"])
    task: Task = state[key]
    now = now.after(task.at)
    if not now.is_possible:
        return
    is_repeat = task.state != CLAIMED and task.ended == (done, call.args["proof"])
    for found in as_holder_finds_it(task, now):
        if call.answer is None or call.answer["is"] == done:
            if is_repeat:
                yield {}
            elif is_held_by(state, found, call.args["proof"], now):
                after = change(found, now)
                if _shows(call, state, after):
                    yield {key: after}
        elif call.answer["is"] == "lost" and not is_repeat:
            yield from not_mine(state, found, call, now)


def _shows(call: Call, state: State, after: Task) -> bool:
    if call.answer is None:
        return True
    session = None if after.session is None else state["session", after.session]
    shown = call.answer.get("expires_at")
    return call.answer["state"] == after.state and (after.proof is None or fits(shown, after, session))


def read_task(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """The task's state, the number of its attempt and its result; a expired lease may be shown as held or as ended."""
    key = ("task", call.args["task"])
    answer = call.answer
    assert answer is not None
    now = reading(now, state[key].at)
    shown = [state[key], *(way[key] for way in ways_to_be_free(state, key, now) if key in way)]
    if any(_equals(task, answer) for task in shown):
        yield {}


def _equals(task: Task, answer: dict[str, object]) -> bool:
    if not task.state or answer["is"] == "absent":
        return not task.state and answer["is"] == "absent"
    same_attempt = answer["attempt"] in {None, task.attempt}
    return same_attempt and (answer["is"], answer["result"]) == (task.state, task.result)
