"""Example calls about accounts, keys, webhooks, plans, and the routes of OctoStore."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from tests.openapi.examples.recorder import ADMIN_KEY, VARIABLES, Recorder

ADMIN = {"x-admin-key": ADMIN_KEY}
HOOK = "https://hooks.example.com/holdfast"


def accounts(api: Recorder) -> None:
    new = api.call("register", {}, headers={})
    caller = {"authorization": f"Bearer {new['apiKey']}"}
    api.call("read_account", headers=caller)
    api.call("settle_account", {"requireLeaseId": True}, headers=caller)
    made = api.call("create_key", {"name": "ci", "scopes": ["tasks:produce"]}, headers=caller)
    api.call("list_keys", headers=caller, shorten=_keys_by_time)
    api.call("read_key", headers=caller, id=made["keyId"])
    api.call("rotate_key", {"graceSeconds": 3600}, headers=caller, id=made["keyId"])
    api.call("revoke_key", headers=caller, id=made["keyId"])
    api.call("link_dashboard", {}, headers=caller)
    api.call("claim_job", {"owner": "agent-7"}, headers=caller, keep=False, job_id="deploy/staging")
    page = api.call("export_account", query={"limit": 1}, headers=caller, keep=False)
    api.call("export_account", query={"limit": 1, "cursor": page["nextCursor"]}, headers=caller)
    own = api.call("rotate_own_key", {"graceSeconds": 0}, headers=caller)
    caller = {"authorization": f"Bearer {own['apiKey']}"}
    api.call("delete_account", {"confirm": new["accountId"]}, headers=caller)


def _keys_by_time(answer: Any) -> Any:
    """In an order that does not depend on their random ids."""
    return {**answer, "keys": sorted(answer["keys"], key=itemgetter("createdAt"))}


def plans() -> Recorder:
    """On a server that sells plans."""
    api = Recorder({**VARIABLES, "HOLDFAST_PLAN": "free"})
    new = api.call("register", headers={}, keep=False)
    caller = {"authorization": f"Bearer {new['apiKey']}"}
    api.call("list_plans", headers={}, shorten=lambda answer: {**answer, "plans": answer["plans"][:2]})
    purchase = api.call("checkout", {"planId": "pro"}, headers=caller)["purchaseId"]
    api.call("verify_payment", {"purchaseId": purchase}, headers=caller)
    api.call("billing_status", headers=caller)
    return api


def webhooks(api: Recorder) -> None:
    made = api.call("create_webhook", {"url": HOOK, "events": ["task.failed", "lease.expired"]})
    hook = made["webhook_id"]
    api.call("list_webhooks")
    api.call("test_webhook", id=hook)
    api.call("read_webhook", id=hook)
    api.call("list_deliveries", query={"state": "pending", "limit": 10}, id=hook)
    api.call("replay_deliveries", {"after": 0}, id=hook)
    api.call("update_webhook", {"events": ["task.*"], "state": "active"}, id=hook)
    api.call("rotate_webhook_secret", {"grace_seconds": 3600}, id=hook)
    api.call("delete_webhook", id=hook)


def octostore(api: Recorder) -> None:
    user = api.call("register_user", {"username": "build-bot"}, headers={})
    caller = {"authorization": f"Bearer {user['token']}"}
    lock = "nightly-backup"
    session = api.call("open_session", {"ttl_seconds": 60}, headers=caller)["session_id"]
    api.call("get_session", headers=caller, id=session)
    api.call("keepalive_session", headers=caller, id=session)
    wanted = {"ttl_seconds": 60, "session_id": session, "metadata": "host=db-1"}
    proof = {"lease_id": api.call("acquire_lock", wanted, headers=caller, name=lock)["lease_id"]}
    api.call("renew_lock", proof | {"ttl_seconds": 120}, headers=caller, name=lock)
    api.call("get_lock_status", headers=caller, name=lock)
    api.call("list_locks", query={"prefix": "nightly"}, headers=caller)
    api.call("watch_lock", headers=caller, name=lock)
    api.call("set_lock_acl", {"acl": {"acquire": ["user:build-bot"]}}, headers=caller, name=lock)
    api.call("admin_status", headers=ADMIN)
    api.call("release_lock", proof, headers=caller, name=lock)
    api.call("end_session", headers=caller, id=session)
    hook = api.call("create_lock_webhook", {"url": HOOK, "secret": "a secret of yours"}, headers=caller)
    api.call("list_lock_webhooks", headers=caller)
    api.call("delete_lock_webhook", headers=caller, id=hook["id"])
    api.call("rotate_token", headers=caller)


def elections(api: Recorder) -> None:
    api.call("create_election", headers={})
    election = "nightly-report-2027"
    wanted = {"candidate_id": "worker-3", "ttl_ms": 15_000}
    led = api.call("campaign", wanted, headers={}, id=election)
    api.call("get_election_status", headers={}, id=election)
    api.call("watch_election", headers={}, id=election)
    api.call("renew_leadership", {"leader_token": led["leader_token"]}, headers={}, id=election)
    api.call("resign", {"leader_token": led["leader_token"]}, headers={}, id=election)
