"""What the calls of holders have in common: who may act, heartbeats, offers, and claims for a session."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator
from typing import Any

from tests.linearizability.history import Call
from tests.linearizability.model.objects import (
    Changes,
    Held,
    Moment,
    Session,
    State,
    Task,
    deadline,
    fits,
    may_expire,
    may_live,
    release,
    session_may_be_over,
    session_may_live,
    ways_to_renew,
    without_holder,
)

Step = Callable[[State, Call, Moment], Iterator[Changes]]
Refusal = Callable[[State, Any, Call, Moment], Iterator[Changes]]


def heartbeat(noun: str, state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Renewed for its live holder, lost for everybody else."""
    key = (noun, call.args[noun])
    now = now.after(state[key].at)
    if not now.is_possible:
        return
    for found in as_holder_finds_it(state[key], now):
        if call.answer is None or call.answer["is"] == "renewed":
            if is_held_by(state, found, call.args["proof"], now):
                renewed = renew(found, now)
                if fits(_shown(call), renewed, session_of(state, found.session)):
                    yield {key: renewed}
        elif call.answer["is"] == "lost":
            yield from REFUSALS[noun](state, found, call, now)


def renew(held: Any, now: Moment) -> Any:
    """A full TTL from now; an offered one keeps a later deadline."""
    ends = deadline(now, held.ttl)
    return held._replace(at=now.at, **(ends if held.offer is None else _later(held, ends)))


def offer(noun: str, state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Offered by its live holder: it is held at least until the end of the offer, and belongs to no session."""
    key = (noun, call.args[noun])
    now = now.after(state[key].at)
    if not now.is_possible:
        return
    for found in as_holder_finds_it(state[key], now):
        if call.answer is None or call.answer["is"] == "offered":
            if is_held_by(state, found, call.args["proof"], now):
                ends = deadline(now, call.args["lasts"])
                offered = found._replace(
                    offer=call.args["code_proof"] or f"unknown {call.id}", session=None, at=now.at,
                    kept=found.session if found.offer is None else found.kept,
                    open_soonest=ends["soonest"], open_latest=ends["latest"], **_later(found, ends),
                )  # fmt: skip
                if fits(_shown(call), offered, None):
                    yield {key: offered}
        elif call.answer["is"] == "lost":
            yield from REFUSALS[noun](state, found, call, now)


def withdraw(noun: str, state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Without its offer, for a full TTL from now and in its session again; given up if that session is over.

    On PostgreSQL a session that ends at the same moment may be seen as live.
    """
    key = (noun, call.args[noun])
    held = state[key]
    now = now.after(held.at)
    if not now.is_possible:
        return
    if call.answer is not None and call.answer["is"] == "lost":
        yield from REFUSALS[noun](state, held, call, now)
    elif not is_held_by(state, held, call.args["proof"], now):
        return
    elif held.offer is None:
        if fits(_shown(call), held, session_of(state, held.session)):
            yield {}
    else:
        kept = held._replace(session=held.kept, **NO_OFFER, at=now.at, **deadline(now, held.ttl))
        if fits(_shown(call), kept, session_of(state, held.kept)):
            yield {key: kept}
        if session_may_be_over(state, held.kept, now) and _shown(call) is None:
            is_task = isinstance(held, Task)
            yield {key: release(held, "session_ended", now) if is_task else without_holder(held, now)}


NO_OFFER: dict[str, Any] = {"offer": None, "open_soonest": 0, "open_latest": 0, "kept": None}


def as_holder_finds_it(held: Any, now: Moment) -> Iterator[Any]:
    """The object as a write of its holder finds it: after the end of its offer it belongs to its session again."""
    if held.offer is None or held.open_latest > now.soonest:
        yield held
    if held.offer is not None and held.open_soonest <= now.latest:
        yield held._replace(session=held.kept, **NO_OFFER)


def accepts(held: Any, call: Call, now: Moment) -> bool:
    """Whether the code of the call may accept an open offer."""
    is_code = held.proof is not None and held.offer == call.args["offer"]
    return is_code and may_live(held, now) and held.open_latest > now.soonest


def may_refuse_code(held: Any, call: Call, now: Moment) -> bool:
    """Whether the code of the call may be refused."""
    is_code = held.proof is not None and held.offer == call.args["offer"]
    return not is_code or may_expire(held, now) or held.open_soonest <= now.latest


def is_held_by(state: State, held: Held, proof: str, now: Moment) -> bool:
    """Whether this lease may be the live one."""
    return held.proof == proof and may_live(held, now) and session_may_live(state, held.session, now)


def lost(state: State, held: Held, call: Call, now: Moment) -> Iterator[Changes]:
    """Refused, if the caller may not be the live holder; a live holder is named."""
    assert call.answer is not None
    held_by = call.answer["held_by"]
    is_mine = held.proof == call.args["proof"]
    if held_by is None:
        if held.proof is None or _may_be_over(state, held, now):
            yield {}
    elif held.proof is not None and not is_mine and held.owner == held_by:
        yield {}


def not_mine(state: State, held: Held, call: Call, now: Moment) -> Iterator[Changes]:
    """Refused, if the caller may not be the live holder; if somebody is named, it is the holder."""
    assert call.answer is not None
    is_mine = held.proof == call.args["proof"]
    if (not is_mine or _may_be_over(state, held, now)) and call.answer["held_by"] in {None, held.owner}:
        yield {}


REFUSALS: dict[str, Refusal] = {"job": lost, "task": not_mine, "reservation": not_mine}


def renewing(claim: Step, state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """What a claim changes after it has renewed the session that it is for; one that is refused renews nothing."""
    refused = call.answer is not None and call.answer["is"] not in {"granted", "held", "done", "empty"}
    if call.args.get("session") is None or refused or not may_claim_for(state, call, now):
        yield from claim(state, call, now)
        return
    now = now.after(state["session", call.args["session"]].at)
    for renewed in ways_to_renew(state, call.args["session"], now):
        if call.answer is None and renewed:
            yield renewed  # nothing was granted
        for changes in claim(ChainMap(renewed, state) if renewed else state, call, now):  # type: ignore[arg-type]
            yield renewed | changes


def may_claim_for(state: State, call: Call, now: Moment) -> bool:
    """Whether the caller may be the newest generation of the live session that it claims for."""
    session = call.args.get("session")
    if session is None:
        return True
    found: Session = state["session", session]
    return session_may_live(state, session, now) and found.proof == call.args["session_proof"]


def may_refuse_session(state: State, call: Call, now: Moment) -> bool:
    """Whether a claim may be refused because of its session."""
    session = call.args.get("session")
    if session is None or call.answer is None:
        return False
    is_stale = state["session", session].proof != call.args["session_proof"]
    return is_stale if call.answer["is"] == "lost" else session_may_be_over(state, session, now)


def reading(now: Moment, at: int) -> Moment:
    """The moment of a read: its time may be read a little before its rows."""
    return Moment(max(now.soonest, at), max(now.latest, at), now.steady)


def session_of(state: State, session: str | None) -> Session | None:
    """The session with this id; None without one."""
    return None if session is None else state["session", session]


def _may_be_over(state: State, held: Held, now: Moment) -> bool:
    return may_expire(held, now) or session_may_be_over(state, held.session, now)


def _later(held: Held, ends: dict[str, int]) -> dict[str, int]:
    """The deadline of a lease that is not shortened."""
    return {"soonest": max(held.soonest, ends["soonest"]), "latest": max(held.latest, ends["latest"])}


def _shown(call: Call) -> int | None:
    """The deadline in the answer."""
    return None if call.answer is None else call.answer.get("expires_at")
