"""Example calls about jobs, files, tasks, sessions and the log."""

from __future__ import annotations

from tests.openapi.examples.recorder import ROOT, Recorder


def jobs(api: Recorder) -> None:
    job = "deploy/staging"
    first = {"owner": "agent-7", "ttl_seconds": 60, "metadata": {"commit": "4f2c9e1"}}
    held = api.call("claim_job", first, headers=repeatable("claim-deploy-1"), job_id=job)
    proof = {"lease_id": held["lease_id"]}
    more = {"note": "Built, now pushing.", "checkpoint": {"step": "push"}, "progress": {"percent": 60}}
    api.call("heartbeat_job", proof | more, job_id=job)
    api.call("get_job_owner", job_id=job)
    api.call("list_claimed_jobs", query={"prefix": "deploy/", "limit": 10})
    api.call("offer_job", proof | {"note": "Only the smoke test is left.", "expires_in_seconds": 600}, job_id=job)
    api.call("withdraw_job_offer", proof, job_id=job)
    api.call("release_job", proof | {"outcome": "done", "result": {"version": "1.8.2"}}, job_id=job)
    taken = api.call("claim_any_job", {"any_of": ["slot-1", "slot-2"], "owner": "agent-7", "wait_seconds": 0})
    api.call("force_release_job", {"reason": "agent-7 does not answer"}, job_id=taken["job_id"])


def files(api: Recorder) -> None:
    wanted = {"space": "acme/shop", "owner": "agent-7", "paths": ["src/cart/"], "reason": "Rename Cart to Basket"}
    held = api.call("reserve_files", wanted | {"ttl_seconds": 300})
    proof, name = {"lease_id": held["lease_id"]}, held["reservation_id"]
    api.call("list_reservations", query={"space": "acme/shop"})
    paths = ["src/cart/total.py", "docs/api.md"]
    api.call("check_files", {"space": "acme/shop", "paths": paths, "lease_ids": [held["lease_id"]]})
    api.call("read_reservation", id=name)
    api.call("heartbeat_reservation", proof, id=name)
    api.call("extend_reservation", proof | {"paths": ["tests/cart/*.py"]}, id=name)
    api.call("release_files", proof | {"paths": ["tests/cart/*.py"]}, id=name)
    api.call("offer_reservation", proof | {"note": "Only the tests are left."}, id=name)
    api.call("withdraw_reservation_offer", proof, id=name)
    offer = api.call("offer_reservation", proof, id=name)["offer"]
    api.call("claim_reservation", {"owner": "agent-8", "offer": offer}, id=name)
    api.call("force_release_reservation", {"reason": "agent-8 does not answer"}, id=name)


def tasks(api: Recorder) -> None:
    review = {"type": "review", "payload": {"pull_request": 1842}, "priority": 5, "uniqueKey": "acme/shop#1842"}
    api.call("create_task", review, headers=repeatable("review-1842"))
    api.call("list_tasks", query={"status": "pending", "type": "review", "limit": 20})
    held = api.call("claim_task", {"type": "review", "worker_id": "agent-7", "wait_seconds": 0})
    task, proof = held["id"], {"lease_id": held["leaseId"]}
    leases = [{"task_id": task, "lease_id": held["leaseId"], "note": "Half of the files are read."}]
    api.call("heartbeat_leases", {"leases": leases})
    api.call("heartbeat", proof | {"progress": {"files": 3, "of": 8}}, id=task)
    api.call("check_task_status", id=task)
    api.call("offer_task", proof | {"note": "Three files are left."}, id=task)
    api.call("withdraw_task_offer", proof, id=task)
    api.call(
        "fail_task",
        proof | {"reason": "the repository is locked", "error_code": "repository_locked", "retry_after_seconds": 60},
        id=task,
    )
    api.clock.advance(120)
    proof = {"lease_id": api.call("claim_task_by_id", {"worker_id": "agent-8"}, id=task)["leaseId"]}
    api.call("release_task", proof | {"note": "I was stopped."}, id=task)
    proof = {"lease_id": api.call("claim_task_by_id", {}, keep=False, id=task)["leaseId"]}
    api.call("snooze_task", proof | {"seconds": 600, "note": "The build still runs."}, id=task)
    api.clock.advance(600)
    proof = {"lease_id": api.call("claim_task_by_id", {}, keep=False, id=task)["leaseId"]}
    api.call("complete_task", proof | {"result": {"verdict": "approved", "comments": 2}}, id=task)
    api.call("task_events", query={"limit": 2}, id=task)
    api.call("task_attempts", id=task)
    api.call("task_dependencies", id=task)
    api.call("set_queue", {"max_running": 4}, type="review")
    api.call("read_queue", type="review")
    api.call("list_queues", query={"limit": 20})
    _more_tasks(api)


def _more_tasks(api: Recorder) -> None:
    page = {"type": "translate_page", "payload": {"page": "pricing", "to": "de"}}
    other = api.call("create_task", page, keep=False)["id"]
    api.call("cancel_task", {"reason": "The page was removed."}, id=other)
    dead = api.call("create_task", page, keep=False)["id"]
    proof = {"lease_id": api.call("claim_task_by_id", {}, keep=False, id=dead)["leaseId"]}
    api.call("fail_task", proof | {"reason": "unknown language", "permanent": True}, keep=False, id=dead)
    api.call("resolve_task", {}, id=dead)
    api.call("requeue_task", {"reset_attempts": True}, id=dead)
    api.call("count_tasks")
    items = [{"op": "create", "type": "review", "payload": {"pull_request": 1843}}, {"op": "cancel", "id": dead}]
    api.call("batch_tasks", {"items": items})


def questions(api: Recorder) -> None:
    order = {"type": "order", "payload": {"part": "A-17", "pieces": 40}}
    api.call("create_task", order, keep=False)
    held = api.call("claim_task", {"type": "order", "worker_id": "agent-7"}, keep=False)
    wanted = {"question": "Which supplier?", "choices": ["Huber", "Miller"], "checkpoint": {"offers": 2}}
    asked = api.call("ask_task", {"lease_id": held["leaseId"], **wanted}, id=held["id"])["questionId"]
    api.call("list_questions", query={"limit": 10})
    api.call("answer_question", {"answer": "Huber", "reason": "They deliver on Friday."}, id=asked)
    api.call("read_question", id=asked)


def sessions(api: Recorder) -> None:
    opened = {"name": "agent-7", "ttl_seconds": 120, "context": {"issue": 1842}, "next_action": "Run the tests."}
    session = api.call("begin_session", opened)
    name, proof = session["session_id"], {"lease_id": session["lease_id"]}
    bound = {"session_id": name, "session_lease_id": session["lease_id"]}
    api.call("claim_job", {"owner": "agent-7", **bound}, keep=False, job_id="issue/1842")
    api.call("heartbeat_session", proof | {"turn": 12, "last_action": "Ran the tests."}, id=name)
    api.call("write_context", proof | {"context": {"issue": 1842, "branch": "fix-1842"}, "turn": 13}, id=name)
    api.call("list_sessions", query={"limit": 10})
    api.call("read_session", id=name)
    api.call("list_mine", query={"session_id": name})
    api.call("close_session", proof, id=name)


def log(api: Recorder) -> None:
    api.call("list_events", query={"subject": "lease:deploy/staging", "limit": 2})
    api.call("recover", {})


def repeatable(key: str) -> dict[str, str]:
    """The headers of the caller, with a key that makes the request safe to repeat."""
    return {**ROOT, "idempotency-key": key}
