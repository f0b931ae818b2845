"""Stores made by an older version go on: their rows, leases, keys and logs are as valid as before."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.app import make_store
from holdfast.backup.restore import restore
from holdfast.core.event import Event
from holdfast.core.row import SECOND
from holdfast.engine.verify import verify
from holdfast.settings import Settings
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore
from tests.backup.sample_store import no_report
from tests.compat.octostore.server import bearer
from tests.http.in_process_app import InProcessServer
from tests.proof_size import FULL
from tests.support import DrivenClock, check_log, every, wait_until
from tests.upgrade.old_stores import OLD, backup_file, known, load_into_postgres, sqlite_file

KINDS = ["sqlite", "postgres"]


class Upgraded:
    """Today's server on an old store, a second after the old server stopped."""

    def __init__(self, kind, folder, new_database):
        self.known = known(kind)
        self.clock = DrivenClock(self.known["made_at"] + SECOND)
        if kind == "sqlite":
            self.store = SqliteStore(sqlite_file(Path(folder) / "old.db"), self.clock)
        else:
            address = new_database()
            load_into_postgres(address)
            self.store = PostgresStore(address, self.clock)
        self.store.open()
        self.events_before = every(self.store, Event)
        with self.store.read() as reader:
            self.next_token_before = reader.next_token()
        keys = {"ROOT_KEY": "root_key", "ADMIN_KEY": "admin_key"}
        variables = {f"HOLDFAST_{name}": self.known[field] for name, field in keys.items()}
        variables["HOLDFAST_STATIC_TOKENS"] = f"alice:{self.known['alice']}"
        self.server = InProcessServer(self.store, variables)
        self.root, self.alice = self.caller(self.known["root_key"]), self.caller(self.known["alice"])

    def caller(self, key):
        return bearer(self.server.port, key)

    def close(self):
        self.server.close()
        self.store.close()


@pytest.fixture(params=KINDS)
def upgraded(request, tmp_path, new_empty_postgres_database):
    """An old store that was opened by today's code; its log folds at the end of each test."""
    upgraded = Upgraded(request.param, tmp_path, new_empty_postgres_database)
    yield upgraded
    upgraded.server.close()
    check_log(upgraded.store)
    assert verify(upgraded.store).differences == []
    upgraded.store.close()


def done(answer, status=200):
    assert answer.status == status, answer
    return answer.json


def test_the_log_of_an_old_store_is_kept_and_goes_on(upgraded):
    before = upgraded.events_before
    assert before
    floor, last = _log_bounds(upgraded)
    assert 0 < floor < last, "the old version has removed the oldest events"
    assert done(upgraded.root.get("/v1/events?after=0"), 410)["error"] == "cursor_too_old"
    shown = done(upgraded.root.get(f"/v1/events?after={floor}&limit=1000"))["events"]
    assert shown[0]["seq"] == floor + 1
    done(upgraded.root.post("/v1/jobs/new/claim", {"owner": "agent"}))
    after = every(upgraded.store, Event)
    assert [event for event in after if event in before] == before
    own = [event for event in after if event.account == "default"]
    assert [event.seq for event in own] == list(range(floor + 1, floor + 1 + len(own)))
    # Leases of before may expire meanwhile.
    assert ("lease.claimed", "lease:new") in {(event.kind, event.subject) for event in own if event.seq > last}


def _log_bounds(upgraded):
    with upgraded.store.read() as reader:
        return reader.log_bounds("default")


def test_leases_of_before_are_renewed_completed_and_released(upgraded):
    root, facts = upgraded.root, upgraded.known
    for name in ("job before the cut", "job", "job claimed once", "job of the session", "last job"):
        renewal = {"lease_id": facts[name]["lease_id"], "token": facts[name]["token"]}
        done(root.post(f"/v1/jobs/{facts[name]['job_id']}/heartbeat", renewal))
    held = done(root.post("/v1/jobs/held/claim", {"owner": "another"}))
    assert held["status"] == "held"
    done(root.post("/v1/jobs/last/release", {"lease_id": facts["last job"]["lease_id"]}))
    tokens = [
        done(root.post(f"/v1/jobs/{name}/claim", {"owner": "new"}))["token"] for name in ("last", "expired", "cut")
    ]
    assert tokens == sorted(tokens)
    assert tokens[0] >= upgraded.next_token_before
    stale = root.post("/v1/jobs/expired/heartbeat", {"lease_id": facts["expired job"]["lease_id"]})
    assert done(stale, 409)["error"] == "lease_lost"


def test_locks_and_elections_of_before_go_on(upgraded):
    alice, facts = upgraded.alice, upgraded.known
    done(alice.renew("guarded", facts["lock"]["lease_id"], ttl_seconds=60))
    assert done(alice.read_lock("guarded"))["acl"] == {"acquire": ["user:alice"]}
    assert upgraded.caller(facts["key"]["apiKey"]).acquire("guarded").status == 403
    done(alice.release("delayed", facts["lock with delay"]["lease_id"]))
    assert done(alice.acquire("delayed"), 409)["status"] == "delayed"
    upgraded.clock.advance(31)
    for name in ("delayed", "resting"):
        assert done(alice.acquire(name))["status"] == "acquired"
    done(alice.keep_alive(facts["octostore session"]["session_id"]))
    done(alice.renew("ephemeral", facts["ephemeral lock"]["lease_id"]))
    leader_token = facts["election"]["leader_token"]
    assert done(alice.post("/elections/the-room/renew", {"leader_token": leader_token}))["status"] == "leader"


def test_a_session_of_before_is_renewed_and_resumed_with_its_secret(upgraded):
    root, session = upgraded.root, upgraded.known["session"]
    path = f"/v1/sessions/{session['session_id']}"
    done(root.post(f"{path}/heartbeat", {"lease_id": session["lease_id"]}))
    assert done(root.get(path))["context"] == {"plan": ["read", "write"]}
    resumed = done(root.post("/v1/sessions", {"name": "agent-7", "secret": session["secret"]}))
    assert resumed["generation"] == 2
    (job,) = resumed["jobs"]
    assert job["job_id"] == "of-the-session"
    lost = {"lease_id": upgraded.known["job of the session"]["lease_id"]}
    assert root.post("/v1/jobs/of-the-session/heartbeat", lost).status == 409
    done(root.post("/v1/jobs/of-the-session/heartbeat", {"lease_id": job["lease_id"]}))


def test_tasks_of_before_are_claimed_completed_and_requeued(upgraded):
    root, facts = upgraded.root, upgraded.known
    states = {"pending": ("ready", "next", "scheduled", "once", "retried"), "claimed": ("claimed",)}
    states |= {"completed": ("completed",), "dead_letter": ("dead",), "cancelled": ("cancelled",)}
    for state, names in states.items():
        for name in names:
            shown = done(root.get(f"/v1/tasks/{facts[f'{name} task']}"))
            assert (shown["status"], shown["payload"]) == (state, {"name": name})
    held = {"lease_id": facts["claim"]["leaseId"]}
    done(root.post(f"/v1/tasks/{facts['claimed task']}/heartbeat", held))
    done(root.post(f"/v1/tasks/{facts['claimed task']}/complete", held | {"result": {"built": 1}}))
    done(root.post(f"/v1/tasks/{facts['dead task']}/requeue"))
    order = [done(root.post("/v1/tasks/claim", {"types": ["build"], "worker_id": "w"}))["id"] for _ in range(3)]
    assert order == [facts["next task"], facts["ready task"], facts["once task"]]
    again = {"type": "build", "payload": {}, "uniqueKey": "one"}
    assert done(root.post("/v1/tasks", again))["id"] == facts["ready task"]


def test_answers_of_before_are_repeated_under_their_idempotency_keys(upgraded):
    facts = upgraded.known
    claim = {"owner": "agent", "ttl_seconds": 3600}
    repeated = upgraded.root.with_headers(Idempotency_Key="claim-1").post("/v1/jobs/once/claim", claim)
    assert done(repeated)["lease_id"] == facts["job claimed once"]["lease_id"]
    create = {"type": "build", "payload": {"name": "once"}}
    repeated = upgraded.root.with_headers(Idempotency_Key="create-1").post("/v1/tasks", create)
    assert done(repeated, 201)["id"] == facts["once task"]


def test_keys_accounts_and_plans_of_before_are_valid(upgraded):
    facts = upgraded.known
    assert done(upgraded.caller(facts["key"]["apiKey"]).get("/v1/jobs"))["jobs"]
    narrow = upgraded.caller(facts["narrow key"]["apiKey"])
    assert done(narrow.get("/v1/jobs/held"))["owner"] == "agent"
    assert narrow.get("/v1/jobs/last").status == 403
    assert upgraded.caller(facts["revoked key"]["apiKey"]).get("/v1/jobs").status == 401
    account = upgraded.caller(facts["account"]["apiKey"])
    assert [task["id"] for task in done(account.get("/v1/tasks"))["tasks"]] == [facts["task of the account"]]
    lease = {"lease_id": facts["job of the account"]["lease_id"]}
    done(account.post("/v1/jobs/held/heartbeat", lease))
    assert done(account.get("/v1/billing/status"))["planId"] == "pro"


def test_webhooks_of_before_keep_their_deliveries(upgraded):
    root, facts = upgraded.root, upgraded.known
    states = {}
    for name in ("webhook", "refused webhook", "late webhook"):
        shown = done(root.get(f"/v1/webhooks/{facts[name]}/deliveries"))
        states[name] = {delivery["state"] for delivery in shown["deliveries"]}
    assert states == {"webhook": {"delivered"}, "refused webhook": {"dead", "pending"}, "late webhook": {"pending"}}
    replayed = done(root.post(f"/v1/webhooks/{facts['refused webhook']}/replay"))
    assert replayed["replayed"]


def test_what_nobody_renews_expires_after_the_upgrade(upgraded):
    upgraded.clock.advance(7 * 3600)
    root = upgraded.root
    wait_until(lambda: done(root.get("/v1/jobs"))["jobs"] == [])
    wait_until(lambda: done(root.get("/v1/tasks?status=claimed"))["tasks"] == [])
    assert done(root.post("/v1/jobs/held/claim", {"owner": "next"}))["previous"]["checkpoint"] == {"step": 3}


@pytest.mark.parametrize(
    ("kind", "target"), [(kind, target) for kind in KINDS for target in KINDS if FULL or kind == target]
)
def test_a_backup_of_before_is_restored(kind, target, tmp_path, new_empty_postgres_database):
    address = f"sqlite:///{tmp_path}/new.db" if target == "sqlite" else new_empty_postgres_database()
    outcome = restore(Settings(store=address), backup_file(kind, tmp_path / OLD), no_report)
    store = make_store(Settings(store=address))
    store.open()
    server = InProcessServer(store, {"HOLDFAST_ROOT_KEY": known(kind)["root_key"]})
    root = bearer(server.port, known(kind)["root_key"])
    assert done(root.get("/v1/jobs"))["jobs"] == [], "a restore ends every lease"
    granted = done(root.post("/v1/jobs/new/claim", {"owner": "agent"}))
    assert granted["token"] > outcome.token > known(kind)["last job"]["token"]
    assert done(root.get(f"/v1/tasks/{known(kind)['completed task']}"))["result"] == {"built": True}
    account = bearer(server.port, known(kind)["account"]["apiKey"])
    assert done(account.get("/v1/billing/status"))["planId"] == "pro"
    server.close()
    check_log(store)
    store.close()
