"""The model: what every call may answer, written from the promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tests.linearizability.history import UNKNOWN_TIME, Call
from tests.linearizability.model import holders, jobs, reservations, sessions, tasks
from tests.linearizability.model.objects import BLANK, Changes, Key, Moment, State

STEPS: dict[str, Callable[[State, Call, Moment], Iterator[Changes]]] = {
    step.__name__: step
    for step in (
        jobs.claim_job,
        jobs.release_job,
        jobs.read_job,
        tasks.create_task,
        tasks.claim_task,
        tasks.heartbeat_task,
        tasks.complete_task,
        tasks.fail_task,
        tasks.release_task,
        tasks.read_task,
        reservations.reserve,
        reservations.take_reservation,
        reservations.extend_reservation,
        reservations.release_reservation,
        reservations.read_reservation,
        sessions.open_session,
        sessions.heartbeat_session,
        sessions.end_session,
        sessions.read_session,
    )
}
STEPS |= {f"heartbeat_{noun}": partial(holders.heartbeat, noun) for noun in ("job", "reservation")}
for _noun in ("job", "task", "reservation"):
    STEPS |= {f"offer_{_noun}": partial(holders.offer, _noun), f"withdraw_{_noun}": partial(holders.withdraw, _noun)}
"""By verb: every way in which a call can take effect in a state; none if its answer is wrong there."""


def effects(state: State, call: Call, at: int | None = None) -> Iterator[Changes]:
    """Every way in which the call can take effect in this state, at this moment if it is known."""
    if at is None and call.answer is not None:
        at = call.answer.get("now")
    steady = call.earliest != UNKNOWN_TIME
    now = Moment(call.earliest, call.latest, steady) if at is None else Moment(at, at, steady)
    return STEPS[call.verb](state, call, now)


def blank_state(calls: list[Call]) -> dict[Key, object]:
    """The state before all calls: every name that they use is free, absent or unopened."""
    keys: set[Key] = set()
    for call in calls:
        keys.update((noun, str(call.args[noun])) for noun in BLANK if call.args.get(noun) is not None)
        if call.answer is not None:
            keys.update(("job", job) for job in call.answer.get("jobs", ()))
            keys.update(
                (noun, name) for noun, _, name in (each.partition(":") for each in call.answer.get("holds", ()))
            )
            keys.update(("task", task) for task in [call.answer.get("task")] if task is not None)
    return {key: BLANK[key[0]] for key in sorted(keys)}
