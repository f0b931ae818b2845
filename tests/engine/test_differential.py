"""Two databases, one behaviour: the same random batches give the same answers, rows, events and tokens everywhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from holdfast.core.acl import normalise
from holdfast.core.errors import Refused
from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.principal import STATIC
from holdfast.core.row import SECOND
from holdfast.core.session import MEMORY, Session
from holdfast.engine import elections, expiry, identity, jobs, locks, sessions
from holdfast.store.view import ROW_TYPES
from tests.support import (
    ADMIN,
    ALICE,
    BOB,
    CAUSE,
    FULL_PROOF,
    START,
    STORES,
    acquire,
    check_log,
    claim,
    empty,
    every,
    heartbeat,
    once,
    open_session,
    release,
    transact,
)  # fmt: skip

PARTS, EXAMPLES, STEPS = (8, 50, 80) if FULL_PROOF else (1, 25, 30)

NAMES = ["a", "b", "c/d"]
ROOMS = ["__election/abcdefgh", "__election/ijklmnop"]
ACCOUNTS = ["default", "other"]
PEOPLE = [ALICE, BOB]
ACLS = [None, normalise(["user:alice"]), normalise(["user:bob", "token:alice's token"])]

VERBS = [
    "claim", "claim", "claim", "heartbeat", "heartbeat", "release", "force", "acquire", "acquire", "acquire", "renew",
    "release lock", "set acl", "open", "open", "keep", "end", "campaign", "lead on", "resign", "expire lease",
    "expire session", "grace", "sync",
]  # fmt: skip

move = st.fixed_dictionaries(
    {
        "verb": st.sampled_from(VERBS),
        "account": st.sampled_from([*ACCOUNTS[:1] * 3, ACCOUNTS[1]]),
        "name": st.integers(0, 2),
        "who": st.integers(0, 1),
        "lease": st.integers(0, 5),
        "session": st.integers(0, 3),
        "ttl": st.sampled_from([1, 2, 5, 60]),
        "extra": st.integers(0, 5),
    }
)
step = st.tuples(
    st.sampled_from(["stay", "tick", "deadline", "deadline", "almost", "second", "long"]), st.lists(move, max_size=5)
)


class Script:
    """Turns drawn moves into commands. Ids come from earlier answers, newest first, or are wrong on purpose."""

    def __init__(self) -> None:
        self.made = 0
        self.lease_ids: dict[tuple[str, str], list[str]] = {}
        self.sessions: dict[str, list[str]] = {}

    def batch(self, moves: list[dict[str, Any]]) -> list[Any]:
        commands = [self.command(drawn) for drawn in moves]
        seen: set[tuple[str, str]] = set()
        kept = []
        for command in commands:  # the backlog never puts two of one Idempotency-Key into a batch
            key = None if command.once is None else (command.account, command.once.key)
            if key is None or key not in seen:
                kept.append(command)
            seen |= {key} if key is not None else set()
        return kept

    def command(self, drawn: dict[str, Any]) -> Any:  # noqa: C901, PLR0911, PLR0912 - one case a verb
        self.made += 1
        account, extra = drawn["account"], drawn["extra"]
        by = PEOPLE[drawn["who"]]
        room = drawn["verb"] in {"campaign", "lead on", "resign"}
        name = ROOMS[drawn["name"] % 2] if room else NAMES[drawn["name"]]
        known = self.lease_ids.get((account, name), [])
        lease_id = known[-1 - drawn["lease"] % len(known)] if known and drawn["lease"] < 5 else "wrong"
        mine = self.sessions.get(account, [])
        session = mine[-1 - drawn["session"] % len(mine)] if mine and drawn["session"] < 3 else "no-such-session"
        ttl = drawn["ttl"] * SECOND
        base = {"account": account, "cause": CAUSE}
        with_session = session if extra in {1, 2} else None
        match drawn["verb"]:
            case "claim":
                key = once(f"key-{drawn['lease']}", f"{name}") if extra == 3 else None
                return claim(
                    name, f"job-lease-{self.made}", account=account, by=by, ttl=ttl, session_id=with_session, once=key,
                    metadata='{"n": 1}' if extra else None,
                )  # fmt: skip
            case "heartbeat":
                return heartbeat(
                    name, lease_id, account=account, ttl=[None, ttl][extra % 2], note=[None, "note"][extra % 2],
                    checkpoint=[None, '{"c":1}'][extra // 3], progress=[None, "0.5"][extra % 2],
                    token=[None, None, None, self.made][extra % 4],
                )  # fmt: skip
            case "release":
                return release(name, lease_id, account=account, note=[None, "bye"][extra % 2], undelivered=extra == 5)
            case "force":
                return jobs.ForceRelease(**base, name=name, by="admin", reason="stuck")
            case "acquire":
                return acquire(
                    name,
                    by,
                    account=account,
                    ttl=ttl,
                    limit=2,
                    session_id=with_session,
                    ephemeral=extra == 2,
                    delay=2 * SECOND if drawn["lease"] == 0 else 0,
                    acl=ACLS[drawn["session"] % 3] if extra == 4 else None,
                    metadata='"text"' if extra == 5 else None,
                )
            case "renew":
                return locks.RenewLock(**base, by=by, name=name, lease_id=lease_id, ttl=ttl)
            case "release lock":
                return locks.ReleaseLock(**base, by=by, name=name, lease_id=lease_id)
            case "set acl":
                return locks.SetLockAcl(**base, by=[by, ADMIN][extra % 2], name=name, acl=ACLS[1 + extra % 2])
            case "open":
                return open_session(f"session-{self.made}", by, account=account, ttl_seconds=[10, 11, 60][extra % 3])
            case "keep":
                return sessions.KeepSessionAlive(**base, by=by, session_id=session)
            case "end":
                return sessions.EndSession(**base, by=by, session_id=session)
            case "campaign":
                return elections.Campaign(
                    **base, room=name, candidate=by.name, holder=by.id, lease_id=f"room-lease-{self.made}", ttl=ttl,
                    max_rooms=[1, 2, 9][extra % 3],
                )  # fmt: skip
            case "lead on":
                return elections.RenewLeadership(**base, room=name, holder=by.id, lease_id=lease_id, ttl=ttl)
            case "resign":
                return elections.Resign(**base, room=name, holder=by.id, lease_id=lease_id)
            case "expire lease":
                return expiry.ExpireLease(**base, name=[*NAMES, *ROOMS][extra % 5])
            case "expire session":
                return expiry.ExpireSession(**base, session_id=session)
            case "grace":
                return expiry.GiveGrace(**base, name=name, seen=START + extra * 10 * SECOND)
            case "sync":
                wanted = tuple(
                    identity.Wanted(f"n{n}", STATIC, f"{account}-hash-{extra}-{n}", "jobs") for n in range(extra % 3)
                )
                known = tuple(identity.principal_id(STATIC, f"n{n}") for n in range(3))
                return identity.SyncPrincipals(**base, wanted=wanted, known=known)
        raise AssertionError(drawn["verb"])

    def heed(self, commands: list[Any], outcomes: list[Any]) -> None:
        """Remember the ids that answers showed."""
        for command, outcome in zip(commands, outcomes, strict=True):
            if isinstance(outcome, jobs.Claimed | locks.Acquired):
                self.lease_ids.setdefault((command.account, command.name), []).append(outcome.lease_id)
            elif isinstance(outcome, elections.Leading) and isinstance(command, elections.Campaign):
                self.lease_ids.setdefault((command.account, command.room), []).append(command.lease_id)
            elif isinstance(outcome, Session) and isinstance(command, sessions.OpenSession):
                self.sessions.setdefault(command.account, []).append(outcome.id)


def comparable(outcome: Any) -> Any:
    if isinstance(outcome, Refused):
        return type(outcome).__name__, outcome.message, outcome.facts
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def moments(store: Any) -> list[int]:
    """Every time at which something changes by itself."""
    found = [at for row in every(store, Lease) for at in (row.expires_at, row.available_at) if at is not None]
    for row in every(store, Session):
        found += [row.expires_at, row.expires_at + MEMORY]
    return found


def pass_time(how: str, clock: Any, store: Any) -> None:
    following = [at for at in moments(store) if at > clock.now]
    if how in {"deadline", "almost"}:
        clock.now = max(clock.now, min(following, default=clock.now) - (how == "almost"))
    else:
        clock.now += {"stay": 0, "tick": 1, "second": SECOND, "long": 20 * SECOND}[how]


def check_rows(store: Any) -> None:
    """What must hold of every row, whatever happened to it."""
    for row in every(store, Lease):
        held = [row.kind, row.proof, row.holder, row.principal, row.claimed_at, row.expires_at]
        assert all(part is None for part in held) or all(part is not None for part in held), row
        assert row.token >= 0
        assert '"token":-' not in (row.ended or ""), "a place for a token was left empty"
        assert row.session is None or row.proof is not None


@pytest.fixture
def three(opened, clock):
    return [opened(kind, clock) for kind in STORES]


@pytest.mark.parametrize("part", range(PARTS))
@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
@given(steps=st.lists(step, min_size=STEPS // 2, max_size=STEPS))
def test_the_same_batches_have_the_same_effect_on_every_store(three, clock, part, steps):
    clock.now = START
    for store in three:
        empty(store)
    memory, script = three[0], Script()
    for how, moves in steps:
        pass_time(how, clock, memory)
        commands = script.batch(moves)
        if not commands:
            continue
        outcomes = [[comparable(outcome) for outcome in transact(store, *commands)] for store in three]
        for store, others in zip(three[1:], outcomes[1:], strict=True):
            assert others == outcomes[0], f"{store.name} answers differently"
        script.heed(commands, outcomes[0])
    for store in three:
        check_log(store)
        check_rows(store)
    for record in (*ROW_TYPES, Event):
        for store in three[1:]:
            assert every(store, record) == every(memory, record), f"{store.name} keeps other rows"
    for account in ACCOUNTS:
        tidied = []
        for store in three:
            with store.read() as reader:
                tidied.append((reader.due(100), reader.next_deadline(), reader.counts(account), reader.next_token()))
        assert tidied[1:] == tidied[:1] * 2
