"""After an outage longer than their TTL, holders of tasks and of named sessions get a grace period.

All stores are tested at the same time, so that the test waits only once.
"""

import signal
import time
from types import SimpleNamespace

import pytest

from tests.compat.octostore.expect import eventually
from tests.compat.octostore.server import Server
from tests.compat.orchestrion.account import register
from tests.compat.orchestrion.expect import instant
from tests.compat.orchestrion.states import held
from tests.http.job_client import ROOT_KEY, together
from tests.http.replies import done, events, refused, refused_as_problem
from tests.http.session_client import beat, begin, claim_task, path

pytestmark = pytest.mark.waits(34)

LEASE_SECONDS = 30
SESSION_SECONDS = 10
SESSION_AFTER_SECONDS = 19.5
LEAVE_AFTER_SECONDS = 26.5
AWAY_SECONDS = 6.5
"""Both leases end while the server is away: after 29.5 and after 30 seconds."""
GRACE_SECONDS = 10
BEAT_SECONDS = 1.5
"""So long before it left, at most, the server last said that it serves the store."""
ROUNDING_SECONDS = 0.1
STORES = ("sqlite", "postgres")


class OutageCase:
    """The leases on one server before its outage, and their state after it."""

    def __init__(self, url: str, fate: str) -> None:
        self.fate = fate
        self.server = Server(url, ROOT_KEY=ROOT_KEY)

    def live(self) -> None:
        self.server.start()
        self.account = register(self.server.anyone)
        self.task = held(self.account, leaseDurationSeconds=LEASE_SECONDS)
        self.long = held(self.account, leaseDurationSeconds=3600)
        self.began = time.monotonic()
        self.sleep_until(SESSION_AFTER_SECONDS)
        self.session = begin(self.account, ttl_seconds=SESSION_SECONDS)
        self.kept = claim_task(self.account, self.session)
        self.sleep_until(LEAVE_AFTER_SECONDS)
        self.left = time.time()
        {"paused": self.pause, "killed": self.server.kill, "stopped": self.server.stop}[self.fate]()
        self.sleep_until(LEAVE_AFTER_SECONDS + AWAY_SECONDS)
        self.returned = time.time()
        (self.go_on if self.fate == "paused" else self.server.start)()
        self.seen = SimpleNamespace(task=self.changed_task(), read_at=time.time(), long=self.read_row(self.long))
        self.heartbeat = self.account.do("heartbeat", self.task["id"], lease_id=self.task["leaseId"])
        self.session_now = self.account.get(path(self.session)).json
        self.session_heartbeat = beat(self.account, self.session)
        self.event_log = events(self.account)

    def sleep_until(self, seconds: float) -> None:
        time.sleep(max(0.0, self.began + seconds - time.monotonic()))

    def pause(self) -> None:
        self.server.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.server.process.send_signal(signal.SIGCONT)

    def read_row(self, task):
        return done(self.account.read_task(task["id"]))

    def changed_task(self):
        """The task after the server's first sweep."""
        before = self.task["leaseExpiresAt"]
        return eventually(lambda: self.read_row(self.task), lambda seen: seen["leaseExpiresAt"] != before, within=5)

    def close(self) -> None:
        self.go_on()
        self.server.close()


@pytest.fixture(scope="module")
def cases(tmp_path_factory, new_postgres_database):
    urls = {
        "sqlite": lambda: f"sqlite:///{tmp_path_factory.mktemp('grace')}/x.db",
        "postgres": new_postgres_database,
    }
    fates = [(store, fate) for store in STORES for fate in ("paused", "killed", "stopped")]
    cases = {(store, fate): OutageCase(urls[store](), fate) for store, fate in fates}
    try:
        together(*[case.live for case in cases.values()])
        yield cases
    finally:
        for case in cases.values():
            case.close()


@pytest.fixture(params=[(store, fate) for store in STORES for fate in ("paused", "killed")], ids=" ".join)
def case(request, cases):
    return cases[request.param]


def kinds(case, subject):
    return [event["kind"] for event in case.event_log if event["subject"] == subject]


def test_a_task_whose_holder_could_not_renew_keeps_its_holder(case):
    seen = case.seen.task
    assert (seen["status"], seen["attemptCount"]) == ("claimed", 1)
    # Counted from a moment between the server's return and this read; as long as the outage, and at least ten seconds.
    away = case.seen.read_at - case.left + BEAT_SECONDS
    earliest, latest = case.returned + GRACE_SECONDS, case.seen.read_at + max(GRACE_SECONDS, away)
    assert earliest - ROUNDING_SECONDS <= instant(seen["leaseExpiresAt"]) <= latest + ROUNDING_SECONDS
    done(case.heartbeat)
    assert kinds(case, f"task:{case.task['id']}")[-2:] == ["task.extended", "task.renewed"]


def test_a_task_with_time_left_gets_no_more(case):
    assert case.seen.long["leaseExpiresAt"] == case.long["leaseExpiresAt"]


def test_a_session_that_could_not_be_renewed_stays_live_with_its_leases(case):
    assert case.session_now["status"] == "live"
    assert instant(case.session_now["expires_at"]) >= case.returned + GRACE_SECONDS - ROUNDING_SECONDS
    renewed = done(case.session_heartbeat)
    assert [task["id"] for task in renewed["tasks"]] == [case.kept["id"]]
    assert "session.extended" in kinds(case, f"session:{case.session['session_id']}")
    assert "task.expired" not in kinds(case, f"task:{case.kept['id']}")


@pytest.mark.parametrize("store", STORES)
def test_after_a_clean_stop_there_is_no_grace(cases, store):
    case = cases[store, "stopped"]
    assert case.seen.task["status"] == "pending"
    refused(case.heartbeat, 409, "lease_expired")
    assert case.session_now["status"] == "expired"
    refused_as_problem(case.session_heartbeat, 410, "session_expired")
