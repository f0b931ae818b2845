"""Resources of an account, created at first use; and the same with ids that do not exist.

A row of `REQUESTS` makes the request of one operation: (path, body) about resources of an account. Every operation with
a scope needs a row here.
"""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.compat.octostore.wire import NOTHING, lock_path
from tests.compat.orchestrion import states
from tests.compat.orchestrion.account import Account
from tests.compat.orchestrion.expect import ABSENT
from tests.http.job_client import fresh, job_path
from tests.http.replies import done
from tests.http.session_client import begin

LASTING_SECONDS = 3600
"""How long a resource is held, so that none expires while a test compares rows."""
OCTOSTORE_SESSION_SECONDS = 300
"""The longest one; `Resources.keep_alive` renews it."""


@dataclass(frozen=True)
class Thing:
    """An id, and the lease id or secret that belongs to it."""

    id: str
    proof: str = ""


class Resources:
    """Resources of an account, created at first use."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.made: list[Thing] = []
        self._renewed_at = time.monotonic()

    def keep_alive(self) -> None:
        """Renew what would expire first, now and then."""
        if time.monotonic() - self._renewed_at > OCTOSTORE_SESSION_SECONDS / 3:
            done(self.account.keep_alive(self.session.id))
            self._renewed_at = time.monotonic()

    def _keep(self, *thing: str) -> Thing:
        self.made.append(Thing(*thing))
        return self.made[-1]

    @cached_property
    def pending(self) -> Thing:
        return self._keep(states.pending(self.account)["id"])

    @cached_property
    def held(self) -> Thing:
        task = states.held(self.account, leaseDurationSeconds=LASTING_SECONDS)
        return self._keep(task["id"], task["leaseId"])

    @cached_property
    def dead(self) -> Thing:
        return self._keep(states.dead(self.account)["id"])

    @cached_property
    def question(self) -> Thing:
        asked = {"type": "sample", "payload": {}, "approval": True}
        return self._keep(done(self.account.post("/v1/tasks", asked), 201)["questionId"])

    @cached_property
    def job(self) -> Thing:
        name = fresh()
        asked = {"owner": "me", "ttl_seconds": LASTING_SECONDS}
        return self._keep(name, done(self.account.post(job_path(name, "/claim"), asked))["lease_id"])

    @cached_property
    def reservation(self) -> Thing:
        asked = {"space": space_of(self), "owner": "me", "paths": ["src/"], "ttl_seconds": LASTING_SECONDS}
        made = done(self.account.post("/v1/reservations", asked))
        return self._keep(made["reservation_id"], made["lease_id"])

    @cached_property
    def offered_reservation(self) -> Thing:
        """With the code of its offer as proof."""
        asked = {"space": space_of(self), "owner": "me", "paths": ["docs/"], "ttl_seconds": LASTING_SECONDS}
        made = done(self.account.post("/v1/reservations", asked))
        path = f"/v1/reservations/{made['reservation_id']}/offer"
        return self._keep(
            made["reservation_id"], done(self.account.post(path, {"lease_id": made["lease_id"]}))["offer"]
        )

    @cached_property
    def lock(self) -> Thing:
        name = fresh("lock")
        return self._keep(name, done(self.account.acquire(name, ttl_seconds=LASTING_SECONDS))["lease_id"])

    @cached_property
    def session(self) -> Thing:
        asked = {"ttl_seconds": OCTOSTORE_SESSION_SECONDS}
        return self._keep(done(self.account.open_session(**asked), 201)["session_id"])

    @cached_property
    def named_session(self) -> Thing:
        session = begin(self.account, self.name, ttl_seconds=LASTING_SECONDS)
        return self._keep(session["session_id"], session["lease_id"])

    @cached_property
    def name(self) -> str:
        """The name of a session."""
        return fresh("agent")

    @cached_property
    def key(self) -> Thing:
        made = done(self.account.post("/v1/keys", {"name": "belongs", "scopes": ["jobs"]}), 201)
        return self._keep(made["keyId"], made["apiKey"])

    @cached_property
    def webhook(self) -> Thing:
        made = done(self.account.post("/v1/webhooks", {"url": "https://hooks.example.com/x"}), 201)
        return self._keep(made["webhook_id"], made["secret"])

    @cached_property
    def queue(self) -> Thing:
        task_type = fresh("queue")
        done(self.account.put(f"/v1/queues/{task_type}", {"max_running": 7}))
        return self._keep(task_type)

    @cached_property
    def lock_webhook(self) -> Thing:
        asked = {"url": "https://hooks.example.com/x", "secret": "a-secret-of-locks"}
        return self._keep(done(self.account.post("/webhooks", asked), 201)["id"], "a-secret-of-locks")


class Absent:
    """The same resources with ids that do not exist, and with the proofs of the real ones, which must not matter."""

    def __init__(self, real: Resources) -> None:
        self._real = real
        self._made: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in self._made:
            real = getattr(self._real, name)
            self._made[name] = fresh("agent") if name == "name" else Thing(_like(real.id), real.proof)
        return self._made[name]


def _like(real: str) -> str:
    """An id of the same form and length that does not exist."""
    if real.startswith("tsk_"):
        return ABSENT
    kind, dash, rest = real.partition("-")
    return fresh(kind) if dash and len(rest) == len(uuid.uuid4().hex) else str(uuid.uuid4())


Asked = tuple[str, Any]


def task(thing: Thing, verb: str = "", body: Any = NOTHING) -> Asked:
    return f"/v1/tasks/{thing.id}{verb}", body


def proven(thing: Thing, verb: str, **fields: object) -> Asked:
    """A verb that needs the lease id of the holder."""
    return task(thing, verb, {"lease_id": thing.proof, **fields})


def job(thing: Thing, verb: str = "", **fields: object) -> Asked:
    return job_path(thing.id, verb), fields or NOTHING


def space_of(it: Any) -> str:
    """The space of a reservation."""
    return f"acme/{it.name}"


def reservation(thing: Thing, verb: str = "", **fields: object) -> Asked:
    return f"/v1/reservations/{thing.id}{verb}", fields or NOTHING


def in_space(it: Any, verb: str = "", **fields: object) -> Asked:
    """A request about paths of the space of a reservation."""
    return f"/v1/reservations{verb}", {"space": space_of(it), "paths": ["src/a"], **fields}


def lock(thing: Thing, verb: str = "", body: Any = NOTHING) -> Asked:
    return lock_path(thing.id, verb), body


def session_request(thing: Thing, verb: str = "", **fields: object) -> Asked:
    return f"/v1/sessions/{thing.id}{verb}", {"lease_id": thing.proof, **fields}


def batch(it: Any) -> list[dict[str, Any]]:
    return [{"op": "cancel", "id": it.pending.id}, {"op": "complete", "id": it.held.id, "lease_id": it.held.proof}]


def leases(it: Any) -> list[dict[str, Any]]:
    return [
        {"job_id": it.job.id, "lease_id": it.job.proof},
        {"task_id": it.held.id, "lease_id": it.held.proof},
    ]


REQUESTS: dict[str, Callable[[Any], Asked]] = {
    "claim_job": lambda it: job(it.job, "/claim", owner="me", lease_id=it.job.proof),
    "claim_any_job": lambda it: ("/v1/jobs/claim", {"any_of": [it.job.id], "owner": "me"}),
    "heartbeat_job": lambda it: job(it.job, "/heartbeat", lease_id=it.job.proof),
    "heartbeat_leases": lambda it: ("/v1/heartbeats", {"leases": leases(it)}),
    "release_job": lambda it: job(it.job, "/release", lease_id=it.job.proof),
    "offer_job": lambda it: job(it.job, "/offer", lease_id=it.job.proof),
    "withdraw_job_offer": lambda it: job(it.job, "/withdraw-offer", lease_id=it.job.proof),
    "force_release_job": lambda it: job(it.job, "/force-release", reason="stuck"),
    "get_job_owner": lambda it: job(it.job),
    "list_claimed_jobs": lambda it: (f"/v1/jobs?prefix={it.job.id}", NOTHING),
    "list_mine": lambda it: (f"/v1/mine?session_id={it.named_session.id}", NOTHING),
    "reserve_files": lambda it: in_space(it, owner="me"),
    "list_reservations": lambda it: (f"/v1/reservations?owner={it.name}", NOTHING),
    "check_files": lambda it: in_space(it, "/check", lease_ids=[it.reservation.proof]),
    "read_reservation": lambda it: reservation(it.reservation),
    "heartbeat_reservation": lambda it: reservation(it.reservation, "/heartbeat", lease_id=it.reservation.proof),
    "extend_reservation": lambda it: reservation(
        it.reservation, "/extend", lease_id=it.reservation.proof, paths=["docs/"]
    ),
    "release_files": lambda it: reservation(it.reservation, "/release", lease_id=it.reservation.proof),
    "offer_reservation": lambda it: reservation(it.reservation, "/offer", lease_id=it.reservation.proof),
    "withdraw_reservation_offer": lambda it: reservation(
        it.reservation, "/withdraw-offer", lease_id=it.reservation.proof
    ),
    "claim_reservation": lambda it: reservation(
        it.offered_reservation, "/claim", owner="me", offer=it.offered_reservation.proof
    ),
    "force_release_reservation": lambda it: reservation(it.reservation, "/force-release", reason="stuck"),
    "create_task": lambda _: ("/v1/tasks", {"type": "work", "payload": {}}),
    "list_tasks": lambda it: (f"/v1/tasks?sessionId={it.named_session.id}", NOTHING),
    "count_tasks": lambda _: ("/v1/tasks/counts", NOTHING),
    "batch_tasks": lambda it: ("/v1/tasks/batch", {"items": batch(it)}),
    "claim_task": lambda _: ("/v1/tasks/claim", {}),
    "check_task_status": lambda it: task(it.held),
    "claim_task_by_id": lambda it: task(it.pending, "/claim"),
    "heartbeat": lambda it: proven(it.held, "/heartbeat"),
    "complete_task": lambda it: proven(it.held, "/complete", result={}),
    "fail_task": lambda it: proven(it.held, "/fail", reason="no"),
    "release_task": lambda it: proven(it.held, "/release"),
    "offer_task": lambda it: proven(it.held, "/offer"),
    "withdraw_task_offer": lambda it: proven(it.held, "/withdraw-offer"),
    "snooze_task": lambda it: proven(it.held, "/snooze", seconds=600),
    "cancel_task": lambda it: task(it.pending, "/cancel"),
    "requeue_task": lambda it: task(it.dead, "/requeue"),
    "resolve_task": lambda it: task(it.dead, "/resolve"),
    "task_events": lambda it: task(it.held, "/events"),
    "ask_task": lambda it: proven(it.held, "/ask", question="Which one?"),
    "list_questions": lambda it: (f"/v1/questions?limit={len(it.question.id)}", NOTHING),
    "read_question": lambda it: (f"/v1/questions/{it.question.id}", NOTHING),
    "answer_question": lambda it: (f"/v1/questions/{it.question.id}/answer", {"answer": "approve"}),
    "task_attempts": lambda it: task(it.held, "/attempts"),
    "task_dependencies": lambda it: task(it.held, "/dependencies"),
    "list_keys": lambda _: ("/v1/keys", NOTHING),
    "create_key": lambda _: ("/v1/keys", {"name": "another", "scopes": ["read"]}),
    "rotate_own_key": lambda _: ("/v1/keys/rotate", NOTHING),
    "read_key": lambda it: (f"/v1/keys/{it.key.id}", NOTHING),
    "rotate_key": lambda it: (f"/v1/keys/{it.key.id}/rotate", NOTHING),
    "revoke_key": lambda it: (f"/v1/keys/{it.key.id}", NOTHING),
    "read_account": lambda _: ("/v1/account", NOTHING),
    "settle_account": lambda _: ("/v1/account", {"requireLeaseId": True}),
    "export_account": lambda _: ("/v1/account/export", NOTHING),
    "link_dashboard": lambda _: ("/v1/account/dashboard-link", {}),
    "delete_account": lambda _: ("/v1/account", {"confirm": "another"}),
    "billing_status": lambda _: ("/v1/billing/status", NOTHING),
    "checkout": lambda _: ("/v1/billing/checkout", {"planId": "pro"}),
    "verify_payment": lambda _: ("/v1/billing/verify", {"purchaseId": "pur_nobody"}),
    "recover": lambda _: ("/v1/recover", NOTHING),
    "begin_session": lambda it: ("/v1/sessions", {"name": it.name}),
    "list_sessions": lambda _: ("/v1/sessions", NOTHING),
    "read_session": lambda it: (f"/v1/sessions/{it.named_session.id}", NOTHING),
    "heartbeat_session": lambda it: session_request(it.named_session, "/heartbeat"),
    "write_context": lambda it: session_request(it.named_session, "/context", turn=1),
    "close_session": lambda it: session_request(it.named_session),
    "list_events": lambda it: (f"/v1/events?subject=task:{it.held.id}", NOTHING),
    "list_locks": lambda it: (f"/locks?prefix={it.lock.id}", NOTHING),
    "get_lock_status": lambda it: lock(it.lock),
    "watch_lock": lambda it: lock(it.lock, "/watch"),
    "acquire_lock": lambda it: lock(it.lock, "/acquire", {}),
    "renew_lock": lambda it: lock(it.lock, "/renew", {"lease_id": it.lock.proof}),
    "release_lock": lambda it: lock(it.lock, "/release", {"lease_id": it.lock.proof}),
    "set_lock_acl": lambda it: lock(it.lock, "/acl", {"acl": {"acquire": ["user:x"]}}),
    "open_session": lambda _: ("/sessions", {}),
    "get_session": lambda it: (f"/sessions/{it.session.id}", NOTHING),
    "end_session": lambda it: (f"/sessions/{it.session.id}", NOTHING),
    "keepalive_session": lambda it: (f"/sessions/{it.session.id}/keepalive", NOTHING),
    "list_queues": lambda _: ("/v1/queues", NOTHING),
    "read_queue": lambda it: (f"/v1/queues/{it.queue.id}", NOTHING),
    "set_queue": lambda it: (f"/v1/queues/{it.queue.id}", {"paused": True}),
    "create_webhook": lambda _: ("/v1/webhooks", {"url": "https://hooks.example.com/y"}),
    "list_webhooks": lambda _: ("/v1/webhooks", NOTHING),
    "read_webhook": lambda it: (f"/v1/webhooks/{it.webhook.id}", NOTHING),
    "update_webhook": lambda it: (f"/v1/webhooks/{it.webhook.id}", {"state": "paused"}),
    "delete_webhook": lambda it: (f"/v1/webhooks/{it.webhook.id}", NOTHING),
    "rotate_webhook_secret": lambda it: (f"/v1/webhooks/{it.webhook.id}/rotate", {}),
    "test_webhook": lambda it: (f"/v1/webhooks/{it.webhook.id}/test", NOTHING),
    "list_deliveries": lambda it: (f"/v1/webhooks/{it.webhook.id}/deliveries", NOTHING),
    "replay_deliveries": lambda it: (f"/v1/webhooks/{it.webhook.id}/replay", {}),
    "create_lock_webhook": lambda _: ("/webhooks", {"url": "https://hooks.example.com/y"}),
    "list_lock_webhooks": lambda _: ("/webhooks", NOTHING),
    "delete_lock_webhook": lambda it: (f"/webhooks/{it.lock_webhook.id}", NOTHING),
    "rotate_token": lambda _: ("/auth/token/rotate", NOTHING),
}
"""The request of each operation, by its name."""

OPERATORS = {
    "admin_status": "/admin/status",
    "metrics": "/metrics",
    "prometheus": "/metrics/prometheus",
    "metrics_history": "/admin/metrics/timeseries",
}
"""Pages for the operator of the server, refused to every registered account."""
