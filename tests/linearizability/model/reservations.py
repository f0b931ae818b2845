"""The calls about reservations: what each may answer in a state, and what it changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from tests.linearizability.history import Call
from tests.linearizability.model.holders import (
    NO_OFFER,
    accepts,
    as_holder_finds_it,
    is_held_by,
    may_claim_for,
    may_refuse_code,
    may_refuse_session,
    not_mine,
    reading,
    renewing,
    session_of,
)
from tests.linearizability.model.objects import (
    Changes,
    Key,
    Moment,
    Reservation,
    State,
    deadline,
    end,
    fits,
    may_expire,
    may_live,
    session_may_be_over,
    session_may_live,
    ways_to_be_free,
    ways_to_end,
)
from tests.linearizability.model.patterns import conflict


def reserve(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """All paths if nothing that conflicts may still be held, else held by whoever has conflicting ones."""
    return renewing(_reserve, state, call, now)


def _reserve(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    kind = None if call.answer is None else call.answer["is"]
    conflicting = _in_the_way(state, call, call.args["mode"])
    now = now.after(max((state[key].at for key in conflicting), default=0))
    if not now.is_possible:
        return
    if kind in {None, "granted"}:
        key = ("reservation", call.args["reservation"])
        if may_claim_for(state, call, now) and not state[key].mode:
            asked = Reservation(space=call.args["space"], paths=tuple(call.args["paths"]), mode=call.args["mode"])
            for way in _ways_to_end_all(state, conflicting, now):
                if ("session", call.args.get("session")) not in way:
                    yield from ({**way, **granted} for granted in _grant(state, call, now, asked))
    elif kind == "held":
        yield from _held(state, call, now, conflicting)
    elif kind in {"session_over", "lost"} and may_refuse_session(state, call, now):
        yield {}


def _in_the_way(state: State, call: Call, mode: str, own: Key | None = None) -> list[Key]:
    """The reservations with a holder, expired or not, that overlap the paths of the call."""
    paths = tuple(call.args["paths"])
    held = ((key, each) for key, each in state.items() if key[0] == "reservation" and key != own)
    return [
        key
        for key, each in held
        if each.proof is not None and each.space == call.args["space"] and conflict(paths, mode, each.paths, each.mode)
    ]


def _ways_to_end_all(state: State, keys: list[Key], now: Moment) -> list[Changes]:
    """How all of these can have ended by now without a call: expired, or with their sessions."""
    ways: list[Changes] = [{}]
    for key in keys:
        has_ended = [way for way in ways if key in way]
        to_end = [way for way in ways if key not in way]
        ways = has_ended + [way | more for way in to_end for more in ways_to_be_free(state, key, now)]
    return ways


def _held(state: State, call: Call, now: Moment, conflicting: list[Key]) -> Iterator[Changes]:
    """Held by those that the answer names: a session of others may have expired just before, with what it held."""
    sessions = {state[key].session for key in conflicting} - {None, call.args.get("session")}
    expired = (
        ways_to_end(state, each, now, expired=True) for each in sessions if session_may_be_over(state, each, now)
    )
    for way in chain([{}], *expired):
        left = [way.get(key, state[key]) for key in conflicting]
        if _shows_conflicts(call, now, [each for each in left if each.proof is not None]):
            yield way


def _shows_conflicts(call: Call, now: Moment, conflicting: list[Reservation]) -> bool:
    """Whether the answer names the owners of everything that conflicts and cannot have expired."""
    assert call.answer is not None
    shown = Counter(call.answer["owners"])
    live = [each for each in conflicting if may_live(each, now)]
    surely = Counter(each.owner for each in live if not may_expire(each, now))
    return bool(shown) and surely <= shown <= Counter(each.owner for each in live)


def _grant(state: State, call: Call, now: Moment, before: Reservation) -> Iterator[Changes]:
    answer = call.answer or {"token": before.token + 1, "proof": call.args["proof"] or f"unknown {call.id}"}
    session = call.args.get("session")
    granted = before._replace(
        proof=answer["proof"], owner=call.args["owner"], token=answer["token"], ttl=call.args["ttl"], session=session,
        at=now.at, **NO_OFFER, **deadline(now, call.args["ttl"]),
    )  # fmt: skip
    if answer["token"] > before.token and fits(answer.get("expires_at"), granted, session_of(state, session)):
        key = ("reservation", call.args["reservation"])
        yield {key: granted if call.answer else granted._replace(token=before.token)}


def take_reservation(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Granted for the code of an open offer, refused for any other."""
    return renewing(_take_reservation, state, call, now)


def _take_reservation(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    key = ("reservation", call.args["reservation"])
    held: Reservation = state[key]
    kind = None if call.answer is None else call.answer["is"]
    now = now.after(held.at)
    if not now.is_possible:
        return
    if kind in {None, "granted"}:
        if may_claim_for(state, call, now) and accepts(held, call, now):
            yield from _grant(state, call, now, held)
    elif kind == "offer_refused":
        if may_refuse_code(held, call, now):
            yield {}
    elif kind in {"session_over", "lost"} and may_refuse_session(state, call, now):
        yield {}


def extend_reservation(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """More paths for its live holder, all or none."""
    key = ("reservation", call.args["reservation"])
    conflicting = _in_the_way(state, call, state[key].mode, own=key)
    now = now.after(max(state[each].at for each in [key, *conflicting]))
    if not now.is_possible:
        return
    kind = None if call.answer is None else call.answer["is"]
    for found in as_holder_finds_it(state[key], now):
        if kind == "lost":
            yield from not_mine(state, found, call, now)
        elif not is_held_by(state, found, call.args["proof"], now):
            continue
        elif kind == "held":
            yield from _held(state, call, now, conflicting)
        else:
            more = tuple(dict.fromkeys((*found.paths, *call.args["paths"])))
            for way in _ways_to_end_all(state, conflicting, now):
                if ("session", found.session) not in way:
                    yield way | {key: found._replace(paths=more, at=now.at)}


def release_reservation(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Released by its live holder: all paths, or one of several."""
    key = ("reservation", call.args["reservation"])
    now = now.after(state[key].at)
    if not now.is_possible:
        return
    kind = None if call.answer is None else call.answer["is"]
    for found in as_holder_finds_it(state[key], now):
        if kind == "lost":
            yield from not_mine(state, found, call, now)
        elif is_held_by(state, found, call.args["proof"], now):
            given_up = set(call.args.get("paths", found.paths))
            left = tuple(path for path in found.paths if path not in given_up)
            is_known = given_up <= set(found.paths)
            if kind == "not_reserved":
                if not is_known:
                    yield {}
            elif is_known:
                yield {key: found._replace(paths=left, at=now.at) if left else end(found, now)}


def read_reservation(state: State, call: Call, now: Moment) -> Iterator[Changes]:
    """Its owner, its paths and its deadline; or that it has ended, or does not exist."""
    held: Reservation = state["reservation", call.args["reservation"]]
    answer = call.answer
    assert answer is not None
    now = reading(now, held.at)
    if answer["is"] == "absent":
        may_be = not held.mode
    elif answer["is"] == "ended":
        is_over = may_expire(held, now) or session_may_be_over(state, held.session, now)
        may_be = bool(held.mode) and (held.proof is None or is_over)
    else:
        is_shown = held.proof is not None and (held.owner, list(held.paths)) == (answer["owner"], answer["paths"])
        is_live = may_live(held, now) and session_may_live(state, held.session, now)
        may_be = is_shown and is_live and fits(answer["expires_at"], held, session_of(state, held.session))
    if may_be:
        yield {}
