"""The calls about jobs: what each may answer in a state, and what it changes."""

from __future__ import annotations

from collections.abc import Iterator

from tests.linearizability.history import Call
from tests.linearizability.model.holders import (
    accepts,
    as_holder_finds_it,
    is_held_by,
    lost,
    may_claim_for,
    may_refuse_code,
    may_refuse_session,
    reading,
    renewing,
    session_of,
)
from tests.linearizability.model.objects import (
    Changes,
    Job,
    Moment,
    State,
    deadline,
    fits,
    free,
    may_expire,
    may_live,
    session_may_be_over,
    session_may_live,
    ways_to_be_free,
)


def claim_job(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Granted if it is free, else held; refused if the session to claim for is over or was resumed by another."""
    return renewing(_claim_job, state, call, now)


def _claim_job(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    if "offer" in call.args:
        yield from _take_over(state, call, now)
        return
    key = ("job", call.args["job"])
    job: Job = state[key]
    answer = call.answer
    kind = None if answer is None else answer["is"]
    now = now.after(job.at)
    session = call.args.get("session")
    if not now.is_possible:
        return
    if kind in {None, "granted"} and may_claim_for(state, call, now):
        for way in ways_to_be_free(state, key, now):
            is_done = way.get(key, job).done is not None
            if (call.args.get("again") or not is_done) and (session is None or ("session", session) not in way):
                yield from _grant(state, call, now, way)
    elif kind == "done":
        assert answer is not None
        if job.proof is None and job.done == answer["result"] and not call.args.get("again"):
            yield {}
    elif kind == "held":
        yield from _held(state, call, now)
    elif kind in {"session_over", "lost"} and may_refuse_session(state, call, now):
        yield {}


def _take_over(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Granted for the code of an open offer, whoever holds it; refused for any other."""
    key = ("job", call.args["job"])
    job: Job = state[key]
    kind = None if call.answer is None else call.answer["is"]
    now = now.after(job.at)
    if not now.is_possible:
        return
    if kind in {None, "granted"} and may_claim_for(state, call, now):
        if accepts(job, call, now):
            yield from _grant(state, call, now, {key: free(job, now)})
    elif kind == "offer_refused":
        if may_refuse_code(job, call, now):
            yield {}
    elif kind in {"session_over", "lost"} and may_refuse_session(state, call, now):
        yield {}


def _held(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Held by the owner that the answer names; or free, and it goes to the first who waits for it."""
    key = ("job", call.args["job"])
    job: Job = state[key]
    answer = call.answer
    assert answer is not None
    if answer["owner"] is None and "wait_seconds" in call.args:
        again = call.args.get("again")
        yield from ({} for way in ways_to_be_free(state, key, now) if again or way.get(key, job).done is None)
    same = job.proof is not None and job.owner == answer["owner"] and may_live(job, now)
    if same and fits(answer["expires_at"], job, session_of(state, job.session)):
        yield {}


def _grant(state: State, call: Call, now: Moment, way: Changes) -> Iterator[Changes]:
    key = ("job", call.args["job"])
    before: Job = way.get(key, state[key])
    answer = call.answer or {"token": before.token + 1, "proof": call.args["proof"] or f"unknown {call.id}"}
    session = call.args.get("session")
    ttl = call.args["ttl"]
    granted = Job(
        proof=answer["proof"], owner=call.args["owner"], token=answer["token"], ttl=ttl, session=session,
        done=before.done, at=now.at, **deadline(now, ttl),
    )  # fmt: skip
    if answer["token"] > before.token and fits(answer.get("expires_at"), granted, session_of(state, session)):
        unknown = {"token": before.token} if call.answer is None else {}
        yield way | {key: granted._replace(**unknown)}


def release_job(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Released by its live holder, done if it says so; lost for everybody else."""
    key = ("job", call.args["job"])
    job: Job = state[key]
    now = now.after(job.at)
    if not now.is_possible:
        return
    for found in as_holder_finds_it(job, now):
        if call.answer is None or call.answer["is"] == "released":
            if is_held_by(state, found, call.args["proof"], now):
                yield {key: free(found, now)._replace(done=call.args.get("result"))}
        elif call.answer["is"] == "lost":
            yield from lost(state, found, call, now)


def read_job(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """The owner and the deadline, or done, or free."""
    job: Job = state["job", call.args["job"]]
    assert call.answer is not None
    now = reading(now, job.at)
    if call.answer["is"] == "free":
        is_free = job.proof is None and job.done is None
        is_over = job.proof is not None and (may_expire(job, now) or session_may_be_over(state, job.session, now))
        if is_free or is_over:
            yield {}
    elif call.answer["is"] == "done":
        if job.proof is None and job.done == call.answer["result"]:
            yield {}
    elif job.proof is not None and job.owner == call.answer["owner"] and may_live(job, now):
        session = session_of(state, job.session)
        if fits(call.answer["expires_at"], job, session) and session_may_live(state, job.session, now):
            yield {}
