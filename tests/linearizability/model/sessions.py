"""The calls about sessions: what each may answer in a state, and what it changes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from tests.linearizability.history import Call
from tests.linearizability.model.holders import reading
from tests.linearizability.model.objects import (
    Changes,
    Job,
    Key,
    Moment,
    Session,
    State,
    deadline,
    fits,
    holdings,
    may_expire,
    may_live,
    session_may_be_over,
    session_may_live,
    ways_to_end,
    without_holder,
)


def open_session(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Opened or resumed under a new lease id; a live session only with its secret, else the name is taken."""
    name = call.args["session"]
    session: Session = state["session", name]
    now = now.after(session.at)
    if not now.is_possible:
        return
    has_secret = session.secret is not None and call.args["secret"] == session.secret
    if call.answer is not None and call.answer["is"] == "taken":
        may_be_taken = session_may_live(state, name, now) or call.args["secret"] is not None
        if session.generation and not has_secret and may_be_taken:
            yield {}
        return
    if session_may_live(state, name, now) and has_secret:
        for way in _reissue(state, call, now, holdings(state, name)):
            yield from _begin(call, now, session, way, has_secret=True)
    may_open = has_secret or call.args["secret"] is None or not session.generation
    if may_open and session_may_be_over(state, name, now):
        ended: Any = ways_to_end(state, name, now, expired=True) if session.live else [{}]
        for way in ended:
            yield from _begin(call, now, session, way, has_secret=has_secret, holds_nothing=True)


def _begin(
    call: Call, now: Moment, before: Session, way: Changes, *, has_secret: bool, holds_nothing: bool = False
) -> Iterator[Changes]:
    answer = call.answer or {"proof": f"unknown {call.id}", "token": before.token + 1}
    begun = Session(
        proof=answer["proof"], secret=before.secret if has_secret else call.args["fresh_secret"],
        token=answer["token"], generation=before.generation + 1, ttl=call.args["ttl"], live=True, at=now.at,
        **deadline(now, call.args["ttl"]),
    )  # fmt: skip
    if call.answer is None:
        yield way | {("session", call.args["session"]): begun._replace(token=before.token)}
    elif (
        answer["token"] > before.token
        and fits(answer["expires_at"], begun, None)
        and answer["generation"] == begun.generation
        and not (holds_nothing and answer["holds"])
    ):
        yield way | {("session", call.args["session"]): begun}


def _reissue(state: State, call: Call, now: Moment, held: list[Key]) -> Iterator[Changes]:
    """What a session holds gets new lease ids and larger tokens; what has expired meanwhile ends instead."""
    ways: list[Changes] = [{}]
    shown = None if call.answer is None else call.answer["holds"]
    if shown is not None and not shown.keys() <= {f"{noun}:{name}" for noun, name in held}:
        return
    for key in held:
        before, place = state[key], f"{key[0]}:{key[1]}"
        after: list[Any] = []
        if may_live(before, now) and (shown is None or place in shown):
            granted = {"proof": f"unknown {call.id} {place}"} if shown is None else shown[place]
            if shown is None or granted["token"] > before.token:
                after.append(before._replace(**granted, at=now.at, **deadline(now, before.ttl)))
        if may_expire(before, now) and (shown is None or place not in shown):
            after.append(without_holder(before, now))
        ways = [way | {key: each} for way in ways for each in after]
    yield from ways


def heartbeat_session(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Renewed for its newest generation, with everything that it holds and that has not expired."""
    name = call.args["session"]
    session: Session = state["session", name]
    now = now.after(session.at)
    if not now.is_possible:
        return
    if call.answer is None or call.answer["is"] == "renewed":
        if session.proof == call.args["proof"] and session_may_live(state, name, now):
            renewed = session._replace(at=now.at, **deadline(now, session.ttl))
            if call.answer is None or fits(call.answer["expires_at"], renewed, None):
                yield from _renew_holdings(state, now, {("session", name): renewed}, holdings(state, name))
    else:
        yield from _refused(state, call, now)


def _renew_holdings(state: State, now: Moment, changes: Changes, held: list[Key]) -> Iterator[Changes]:
    ways = [changes]
    for key in held:
        before = state[key]
        after = [before] if may_expire(before, now) else []
        if may_live(before, now):
            after.append(before._replace(at=now.at, **deadline(now, before.ttl)))
        ways = [way | ({} if each is before else {key: each}) for way in ways for each in after]
    yield from ways


def end_session(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Ended by its newest generation, with everything claimed for it."""
    name = call.args["session"]
    session: Session = state["session", name]
    now = now.after(session.at)
    if not now.is_possible:
        return
    if call.answer is None or call.answer["is"] == "ended":
        if session.proof == call.args["proof"] and session_may_live(state, name, now):
            yield from ways_to_end(state, name, now, expired=False)
    else:
        yield from _refused(state, call, now)


def _refused(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    assert call.answer is not None
    name = call.args["session"]
    is_newest = state["session", name].proof == call.args["proof"]
    if call.answer["is"] == "lost":
        if not is_newest:
            yield {}
    elif call.answer["is"] == "session_over" and is_newest and session_may_be_over(state, name, now):
        yield {}


def read_session(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """The session and the holders of jobs in one look: a session that is over holds nothing."""
    name = call.args["session"]
    session: Session = state["session", name]
    answer = call.answer
    assert answer is not None
    now = reading(now, session.at)
    ended = ways_to_end(state, name, now, expired=True) if session.live and may_expire(session, now) else []
    for way in chain([{}], ended):
        seen: Session = way.get(("session", name), session)
        if seen.generation == answer["generation"] and _may_be_shown(seen, answer, now):
            after = {key: way.get(key, each) for key, each in state.items() if isinstance(each, Job)}
            if _shows_holdings(after, answer, name, now):
                yield {}
                return


def _may_be_shown(session: Session, answer: dict[str, Any], now: Moment) -> bool:
    """Whether the session may be shown as live or as over: the API shows one whose time is over as over at once."""
    if answer["is"] == "live":
        return session.live
    return not session.live or ("held" in answer and may_expire(session, now))


def _shows_holdings(jobs: Changes, answer: dict[str, Any], session: str, now: Moment) -> bool:
    """Whether an answer has the right proofs of all jobs, or the right names of those that the session holds."""
    if "jobs" in answer:
        return all(_may_show(jobs["job", job], proof, now) for job, proof in answer["jobs"].items())
    held = {key[1]: job for key, job in jobs.items() if job.proof is not None and job.session == session}
    surely = {name for name, job in held.items() if not may_expire(job, reading(now, job.at))}
    return surely <= set(answer["held"]) <= held.keys()


def _may_show(job: Job, proof: str | None, now: Moment) -> bool:
    if proof is None:
        return job.proof is None or may_expire(job, reading(now, job.at))
    return job.proof is not None and (job.proof == proof or job.proof.startswith("unknown"))
