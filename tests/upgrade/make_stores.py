"""Makes the stores of an older Holdfast that the upgrade tests open. Run by hand, once for each version to keep:

    python -m tests.upgrade.make_stores CHECKOUT COMMIT

CHECKOUT is a clone at that commit with an installed .venv. Its servers fill an SQLite file and a PostgreSQL database
over HTTP and are stopped; then it makes a backup of each. The results are kept in tests/upgrade/stores under the name
of the commit.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

from holdfast.store.sqlite.store import connect
from tests.billing.fake_paypal import CLIENT_ID, SECRET, FakePayPal
from tests.compat.octostore.server import free_port
from tests.postgres import Postgres, _wheel
from tests.support import wait_until
from tests.webhooks.receiver import Receiver

STORES = Path(__file__).parent / "stores"
ROOT_KEY = "root-key-of-the-stores-made-for-upgrade-tests"
ADMIN_KEY = "admin-key-of-the-stores-made-for-upgrade-tests"
ALICE = "token-of-alice-in-stores-made-for-upgrade-tests"
HOUR = 3600
REMEMBERED = (
    *("job_id", "lease_id", "token", "fencing_token", "leader_token", "session_id", "secret", "id", "leaseId"),
    *("fencingToken", "apiKey", "keyId", "accountId", "url"),
)
CUT_LOG = """
import sys
from holdfast.app import make_store
from holdfast.engine.engine import Engine
from holdfast.engine.retention import Retention
from holdfast.settings import Settings
store = make_store(Settings(store=sys.argv[1]))
store.open()
engine = Engine(store, retention=Retention(events=1))
engine.start()
engine.sweep.tidying.run()
engine.stop()
store.close()
"""
"""Runs in 56d5e9c's own interpreter. A server keeps events for at least a day."""


class OldServer:
    """A server of the older version, and requests to it."""

    def __init__(self, checkout: Path, store: str, **settings: str) -> None:
        self.port = free_port()
        given = {"ROOT_KEY": ROOT_KEY, "ADMIN_KEY": ADMIN_KEY, "STATIC_TOKENS": f"alice:{ALICE}", **settings}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        program = [str(checkout / ".venv/bin/holdfast"), "serve", "--port", str(self.port), "--store", store]
        environment = inherited | {f"HOLDFAST_{name}": value for name, value in given.items()}
        self._process = subprocess.Popen(program, cwd=checkout, env=environment)

    def __enter__(self) -> Self:
        wait_until(self._is_healthy)
        return self

    def _is_healthy(self) -> bool:
        try:
            return bool(self.get("/healthz"))
        except OSError:
            return False

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(40)

    def get(self, path: str, key: str = ROOT_KEY) -> Any:
        return self.send("GET", path, None, key)

    def post(self, path: str, key: str = ROOT_KEY, once: str | None = None, **body: Any) -> Any:
        return self.send("POST", path, body, key, once)

    def send(self, method: str, path: str, body: Any, key: str = ROOT_KEY, once: str | None = None) -> Any:
        """The body of the answer, which must be a success."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        if once is not None:
            headers["Idempotency-Key"] = once
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()!r}") from error


def fill(checkout: Path, store: str) -> dict[str, Any]:
    """Fill a store with every kind of row; returns the secrets that its holders know."""
    receiver, paypal = Receiver(), FakePayPal().start()
    known: dict[str, Any] = {"root_key": ROOT_KEY, "admin_key": ADMIN_KEY, "alice": ALICE}
    hooks = {"WEBHOOK_ALLOW_PRIVATE_NETWORKS": "true", "WEBHOOK_RETRIES": "0.2,0.3"}
    with OldServer(checkout, store) as server:
        known["job before the cut"] = server.post("/v1/jobs/before-the-cut/claim", owner="agent", ttl_seconds=HOUR)
        for _ in range(3):
            lease = server.post("/v1/jobs/cut/claim", owner="agent")["lease_id"]
            server.post("/v1/jobs/cut/release", lease_id=lease)
    subprocess.run([str(checkout / ".venv/bin/python"), "-c", CUT_LOG, store], cwd=checkout, check=True)
    with OldServer(checkout, store, REGISTRATION="open", **hooks) as server:
        _add_webhooks(server, receiver, known)
        _add_jobs_and_locks(server, known)
        _add_sessions(server, known)
        _add_tasks(server, known)
        _add_keys(server, known)
        wait_until(lambda: _states(server, known["webhook"]) >= {"delivered"}, 30)
        wait_until(lambda: _states(server, known["refused webhook"]) >= {"dead"}, 30)
    merchant = {"PAYPAL_CLIENT_ID": CLIENT_ID, "PAYPAL_SECRET": SECRET, "PAYPAL_URL": paypal.url}
    hooks["WEBHOOK_RETRIES"] = "3600"
    with OldServer(checkout, store, PLAN="free", PUBLIC_URL="https://agents.test", **hooks, **merchant) as server:
        _buy_a_plan(server, paypal, known)
        hook = server.post("/v1/webhooks", url=receiver.url("/later", 500), events=["lease.claimed"])
        known["late webhook"] = hook["webhook_id"]
        known["last job"] = server.post("/v1/jobs/last/claim", owner="agent", ttl_seconds=HOUR)
        wait_until(lambda: any(d["attempts"] for d in _deliveries(server, known["late webhook"])), 30)
    receiver.close()
    paypal.stop()
    return known


def _add_webhooks(server: OldServer, receiver: Receiver, known: dict[str, Any]) -> None:
    for name, status in (("webhook", 200), ("refused webhook", 500)):
        hook = server.post("/v1/webhooks", url=receiver.url(f"/{status}", status), events=["lease.claimed"])
        known[name] = hook["webhook_id"]
        known[f"secret of {name}"] = hook["secret"]


def _deliveries(server: OldServer, hook: str) -> list[dict[str, Any]]:
    return list(server.get(f"/v1/webhooks/{hook}/deliveries")["deliveries"])


def _states(server: OldServer, hook: str) -> set[str]:
    return {delivery["state"] for delivery in _deliveries(server, hook)}


def _add_jobs_and_locks(server: OldServer, known: dict[str, Any]) -> None:
    known["job"] = server.post("/v1/jobs/held/claim", owner="agent", ttl_seconds=HOUR, metadata={"branch": "main"})
    lease = {"lease_id": known["job"]["lease_id"]}
    server.post("/v1/jobs/held/heartbeat", **lease, ttl_seconds=HOUR, checkpoint={"step": 3}, note="half done")
    known["job claimed once"] = server.post("/v1/jobs/once/claim", once="claim-1", owner="agent", ttl_seconds=HOUR)
    known["expired job"] = server.post("/v1/jobs/expired/claim", owner="gone", ttl_seconds=1)
    released = server.post("/v1/jobs/released/claim", owner="agent")
    server.post("/v1/jobs/released/release", lease_id=released["lease_id"])
    known["lock"] = server.post("/locks/guarded/acquire", ALICE, ttl_seconds=HOUR, metadata="alice's")
    server.send("PUT", "/locks/guarded/acl", {"acl": {"acquire": ["user:alice"]}}, ALICE)
    delayed = server.post("/locks/resting/acquire", ALICE, ttl_seconds=60, lock_delay_seconds=30)
    server.post("/locks/resting/release", ALICE, lease_id=delayed["lease_id"])
    known["lock with delay"] = server.post("/locks/delayed/acquire", ALICE, ttl_seconds=HOUR, lock_delay_seconds=30)
    known["election"] = server.post("/elections/the-room/campaign", candidate_id="first", ttl_seconds=300)


def _add_sessions(server: OldServer, known: dict[str, Any]) -> None:
    session = server.post("/v1/sessions", name="agent-7", ttl_seconds=HOUR)
    known["session"] = session
    server.post(
        f"/v1/sessions/{session['session_id']}/context",
        lease_id=session["lease_id"],
        if_version=session["context_version"],
        context={"plan": ["read", "write"]},
    )
    holder = {"owner": "agent", "ttl_seconds": HOUR, "session_id": session["session_id"]}
    known["job of the session"] = server.post("/v1/jobs/of-the-session/claim", **holder)
    known["octostore session"] = server.post("/sessions", ALICE, ttl_seconds=300)
    ephemeral = {"session_id": known["octostore session"]["session_id"], "ephemeral": True, "ttl_seconds": 300}
    known["ephemeral lock"] = server.post("/locks/ephemeral/acquire", ALICE, **ephemeral)
    server.post("/v1/sessions", name="short", ttl_seconds=10)


def _add_tasks(server: OldServer, known: dict[str, Any]) -> None:
    def create(name: str, once: str | None = None, **more: Any) -> str:
        known[f"{name} task"] = server.post("/v1/tasks", once=once, type="build", payload={"name": name}, **more)["id"]
        return str(known[f"{name} task"])

    def claim(task: str) -> dict[str, Any]:
        held: dict[str, Any] = server.post(f"/v1/tasks/{task}/claim", worker_id="worker")
        return held

    create("ready", tag="upgrade", uniqueKey="one")
    create("next", priority=5)
    later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 24 * HOUR))
    create("scheduled", scheduledAt=later)
    create("once", once="create-1")
    known["claim"] = claim(create("claimed", leaseDurationSeconds=HOUR))
    held = claim(create("completed"))
    server.post(f"/v1/tasks/{known['completed task']}/complete", lease_id=held["leaseId"], result={"built": True})
    held = claim(create("dead"))
    server.post(f"/v1/tasks/{known['dead task']}/fail", lease_id=held["leaseId"], permanent=True, reason="broken")
    held = claim(create("retried"))
    server.post(f"/v1/tasks/{known['retried task']}/fail", lease_id=held["leaseId"], reason="flaky")
    server.post(f"/v1/tasks/{create('cancelled')}/cancel")


def _add_keys(server: OldServer, known: dict[str, Any]) -> None:
    known["key"] = server.post("/v1/keys", name="worker", scopes=["jobs", "tasks", "read"])
    known["narrow key"] = server.post("/v1/keys", name="narrow", scopes=["jobs", "read"], prefix="held")
    revoked = server.post("/v1/keys", name="revoked", scopes=["read"])
    server.send("DELETE", f"/v1/keys/{revoked['keyId']}", None)
    known["revoked key"] = revoked
    known["sign-in link"] = server.post("/v1/account/dashboard-link")
    known["account"] = server.post("/v1/keys/register")
    key = known["account"]["apiKey"]
    known["task of the account"] = server.post("/v1/tasks", key, type="mail", payload={})["id"]
    known["job of the account"] = server.post("/v1/jobs/held/claim", key, owner="other", ttl_seconds=HOUR)


def _buy_a_plan(server: OldServer, paypal: FakePayPal, known: dict[str, Any]) -> None:
    key = known["account"]["apiKey"]
    purchase = server.post("/v1/billing/checkout", key, planId="pro")
    paypal.approve(purchase["orderId"])
    server.post("/v1/billing/verify", key, purchaseId=purchase["purchaseId"])
    known["purchase"] = purchase["purchaseId"]


def facts(known: dict[str, Any]) -> dict[str, Any]:
    """What a caller must remember of each answer."""
    return {
        name: {field: found[field] for field in REMEMBERED if field in found} if isinstance(found, dict) else found
        for name, found in known.items()
    }


def shrink(path: Path) -> None:
    """Make a store one file without free pages."""
    connection = connect(path)
    connection.execute("VACUUM")
    connection.pragma("journal_mode", "delete")
    connection.close()


def keep(path: Path, name: str) -> None:
    """Keep a file, compressed, under this name."""
    (STORES / f"{name}.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))


def dump(address: str) -> str:
    """A database as statements, without those that only `psql` and other versions of PostgreSQL know."""
    program = [
        str(next(_wheel().glob("pginstall*/bin/pg_dump"))),
        "--inserts",
        "--no-owner",
        "--no-privileges",
        address,
    ]
    text = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    unwanted = re.compile(r"^(SET|SELECT pg_catalog.set_config|\\|--).*\n|^\n", re.MULTILINE)
    return unwanted.sub("", text)


def main() -> None:
    checkout, commit = Path(sys.argv[1]).resolve(), sys.argv[2]
    STORES.mkdir(exist_ok=True)
    known = {}
    with tempfile.TemporaryDirectory() as folder:
        database = Postgres()
        addresses = {"sqlite": f"sqlite:///{folder}/store.db", "postgres": database.new_database()}
        for kind, address in addresses.items():
            known[kind] = fill(checkout, address)
            backup = Path(folder, f"{kind}.backup")
            program = [str(checkout / ".venv/bin/holdfast"), "backup", str(backup), "--store", address]
            subprocess.run(program, cwd=checkout, check=True)
            keep(backup, f"{commit}-{kind}.backup")
            known[kind]["made_at"] = time.time_ns() // 1000
        shrink(Path(folder, "store.db"))
        keep(Path(folder, "store.db"), f"{commit}.db")
        (STORES / f"{commit}.sql").write_text(dump(addresses["postgres"]))
        database.remove()
    (STORES / f"{commit}.json").write_text(json.dumps({kind: facts(known[kind]) for kind in known}, indent=1) + "\n")


if __name__ == "__main__":
    main()
