"""Random commands about leases, sessions and keys, the same for every store."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from holdfast.core.acl import normalise
from holdfast.core.lease import DONE, FAILED, RELEASED, UNDELIVERED
from holdfast.core.principal import STATIC
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.engine import expiry
from holdfast.engine.verbs import accounts, elections, job_claims, job_offers, jobs, locks, octostore_sessions
from tests.support import (
    ADMIN,
    ALICE,
    BOB,
    CAUSE,
    START,
    acquire,
    claim,
    heartbeat,
    offer,
    once,
    open_session,
    release,
    withdraw,
)  # fmt: skip

NAMES = ["a", "b", "c/d"]
ELECTIONS = ["__election/abcdefgh", "__election/ijklmnop"]
ACCOUNTS = ["default", "other"]
PRINCIPALS = [ALICE, BOB]
ACLS = [None, normalise(["user:alice"]), normalise(["user:bob", "token:alice's token"])]

ENDS = [RELEASED, DONE, FAILED, DONE, RELEASED, UNDELIVERED]

LEASE_VERBS = [
    "claim", "claim", "claim", "heartbeat", "heartbeat", "release", "force", "acquire", "acquire", "acquire", "renew",
    "release lock", "set acl", "open", "open", "keep", "end", "campaign", "lead on", "resign", "expire lease",
    "expire session", "grace", "sync", "offer", "offer", "withdraw", "accept", "accept",
]  # fmt: skip


def moves(verbs: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """One of these verbs, and random values for its arguments."""
    return st.fixed_dictionaries(_DRAWN | {"verb": st.sampled_from(verbs)})


_DRAWN = {
    "account": st.sampled_from([*ACCOUNTS[:1] * 3, ACCOUNTS[1]]),
    "name": st.integers(0, 2),
    "who": st.integers(0, 1),
    "lease": st.integers(0, 5),
    "session": st.integers(0, 3),
    "ttl": st.sampled_from([1, 2, 5, 60]),
    "extra": st.integers(0, 5),
}


class Script:
    """Turns drawn moves into commands. Ids come from earlier answers, newest first, or are wrong on purpose."""

    def __init__(self) -> None:
        self.made = 0
        self.lease_ids: dict[tuple[str, str], list[str]] = {}
        self.sessions: dict[str, list[str]] = {}
        self.offered: dict[str, tuple[str, str]] = {}
        """By account: the job that was offered last, and the code."""

    def initial_commands(self) -> list[Any]:
        """The commands before the first random one."""
        return []

    def batch(self, moves: list[dict[str, Any]]) -> list[Any]:
        commands = [self.command(drawn) for drawn in moves]
        seen: set[tuple[str, str]] = set()
        kept = []
        for command in commands:  # as the backlog does: never two requests with one Idempotency-Key in a batch
            if seen.isdisjoint(command.once_keys()):
                kept.append(command)
            seen.update(command.once_keys())
        return kept

    def command(self, drawn: dict[str, Any]) -> Any:  # noqa: C901, PLR0911, PLR0912 - one case a verb
        self.made += 1
        account, extra = drawn["account"], drawn["extra"]
        by = PRINCIPALS[drawn["who"]]
        is_election = drawn["verb"] in {"campaign", "lead on", "resign"}
        name = ELECTIONS[drawn["name"] % 2] if is_election else NAMES[drawn["name"]]
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
                    metadata='{"n": 1}' if extra else None, again=extra == 4,
                )  # fmt: skip
            case "heartbeat":
                return heartbeat(
                    name, lease_id, account=account, ttl=[None, ttl][extra % 2], note=[None, "note"][extra % 2],
                    checkpoint=[None, '{"c":1}'][extra // 3], progress=[None, "0.5"][extra % 2],
                    token=[None, None, None, self.made][extra % 4],
                )  # fmt: skip
            case "release":
                return release(
                    name, lease_id, account=account, note=[None, "bye"][extra % 2], how=ENDS[extra],
                    result=[None, "[1]"][extra % 2], done_for=[None, ttl][extra // 3],
                )  # fmt: skip
            case "offer":
                return offer(
                    name, known[-1] if known and extra < 5 else lease_id, f"code-{drawn['session'] // 2}",
                    account=account, lasts=[ttl, 30 * SECOND][extra % 2], to=[None, None, "builder"][extra % 3],
                    note=[None, "take it"][extra % 2],
                )  # fmt: skip
            case "withdraw":
                return withdraw(name, lease_id, account=account)
            case "accept":
                name, code = self.offered.get(account, (name, "wrong")) if extra < 5 else (name, "code-1")
                return claim(
                    name, f"job-lease-{self.made}", account=account, by=by, ttl=ttl, session_id=with_session, offer=code
                )
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
                return octostore_sessions.KeepSessionAlive(**base, by=by, session_id=session)
            case "end":
                return octostore_sessions.EndSession(**base, by=by, session_id=session)
            case "campaign":
                return elections.Campaign(
                    **base, name=name, candidate=by.name, holder=by.id, lease_id=f"election-lease-{self.made}", ttl=ttl,
                    max_elections=[1, 2, 9][extra % 3],
                )  # fmt: skip
            case "lead on":
                return elections.RenewLeadership(**base, name=name, holder=by.id, lease_id=lease_id, ttl=ttl)
            case "resign":
                return elections.Resign(**base, name=name, holder=by.id, lease_id=lease_id)
            case "expire lease":
                return expiry.ExpireLease(**base, name=[*NAMES, *ELECTIONS][extra % 5])
            case "expire session":
                return expiry.ExpireSession(**base, session_id=session)
            case "grace":
                return expiry.GiveGrace(**base, key=("leases", account, name), last_beat=START + extra * 10 * SECOND)
            case "sync":
                configured = tuple(
                    accounts.KeySetting(f"n{n}", STATIC, f"{account}-hash-{extra}-{n}", "jobs")
                    for n in range(extra % 3)
                )
                existing = tuple(accounts.principal_id(STATIC, f"n{n}") for n in range(3))
                return accounts.SyncConfiguredKeys(**base, configured=configured, existing=existing)
        raise AssertionError(drawn["verb"])

    def record_outcomes(self, commands: list[Any], outcomes: list[Any]) -> None:
        """Record the ids in the outcomes."""
        for command, outcome in zip(commands, outcomes, strict=True):
            if isinstance(outcome, job_claims.Claimed | locks.Acquired):
                self.lease_ids.setdefault((command.account, command.name), []).append(outcome.lease_id)
            elif isinstance(command, job_offers.OfferJob) and isinstance(outcome, jobs.Changed):
                self.offered[command.account] = (command.name, command.code)
            elif isinstance(outcome, elections.Leading) and isinstance(command, elections.Campaign):
                self.lease_ids.setdefault((command.account, command.name), []).append(command.lease_id)
            elif isinstance(outcome, Session) and isinstance(command, octostore_sessions.OpenSession):
                self.sessions.setdefault(command.account, []).append(outcome.id)
