"""Expected `agent_contract` for each state and error, without descriptions."""

from typing import Any

CREATE = ("create_task", "POST /v1/tasks")
CLAIM = ("claim_task", "POST /v1/tasks/claim")
LIST = ("list_tasks", "GET /v1/tasks")
AUTHENTICATE = ("authenticate", "POST /v1/keys/register")
ARTIFACTS = "https://api.outputlayer.dev/v1/outputs"

Contract = dict[str, Any]


def of_task(task: dict[str, Any]) -> Contract:
    """The expected contract of a task in its present state; the remaining time is taken from the answer."""
    status, task_id = task["status"], task["id"]
    if status == "claimed":
        return _of_claimed(task)
    if status == "completed" and task["outputId"]:
        content = f"GET {ARTIFACTS}/{task['outputId']}/content"
        return contract(action("download_artifact", content, best=True), action(*CLAIM))
    return {
        "pending": contract(action(*CLAIM, best=True)),
        "completed": contract(action(*CREATE, best=True), action(*CLAIM)),
        "dead_letter": contract(action("requeue_task", f"POST /v1/tasks/{task_id}/requeue", best=True)),
        "cancelled": contract(action(*CREATE, best=True)),
    }[status]


def _of_claimed(task: dict[str, Any]) -> Contract:
    actual = task["agent_contract"]
    path = f"/v1/tasks/{task['id']}"
    if not actual["lease_valid"]:
        check = action("check_task_status", f"GET {path}", best=True)
        return contract(check, lease_valid=False, lease_expires_in_seconds=0)
    left = actual["lease_expires_in_seconds"]
    ttl = min(task["leaseDurationSeconds"], left) if "sessionId" in task else task["leaseDurationSeconds"]
    return contract(
        action("complete_task", f"POST {path}/complete", best=True),
        action("fail_task", f"POST {path}/fail"),
        action("heartbeat", f"POST {path}/heartbeat"),
        lease_valid=True,
        lease_expires_in_seconds=left,
        recommended_heartbeat_interval_seconds=max(ttl // 3, 1),
    )


def of_an_empty_claim() -> Contract:
    wait = action("retry_after_wait", "POST /v1/tasks/claim", best=True, wait=5)
    return contract(wait, retryable=True, task_claimable=False)


def of_error(code: str, task_id: str = "", wait: int | None = None) -> Contract:
    check = ("check_task_status", f"GET /v1/tasks/{task_id}")
    return {
        "wrong_method": contract(action(*AUTHENTICATE, best=True), retryable=True),
        "missing_api_key": contract(action(*AUTHENTICATE, best=True), retryable=True),
        "invalid_api_key": contract(action(*AUTHENTICATE, best=True)),
        "invalid_request": contract(action("fix_request")),
        "not_found": contract(action("fix_request", best=True)),
        "task_not_found": contract(action(*LIST, best=True)),
        "invalid_transition": contract(action(*check, best=True)),
        "lease_expired": contract(action(*check, best=True)),
        "task_currently_claimed": contract(
            action(*check, best=True), action("retry_after_wait", wait=30), retryable=True
        ),
        "not_yet_claimable": contract(action("retry_after_wait", best=True, wait=wait), action(*check), retryable=True),
        "idempotency_conflict": contract(action(*CREATE, best=True)),
    }[code]


def contract(*actions: dict[str, Any], retryable: bool = False, **more: object) -> Contract:
    return {"version": "1", "retryable": retryable, "next_actions": list(actions), **more}


def action(code: str, call: str = "", *, best: bool = False, wait: int | None = None) -> dict[str, Any]:
    method, _, endpoint = call.partition(" ")
    known = {"method": method, "endpoint": endpoint} if call else {}
    known |= {} if wait is None else {"retry_after_seconds": wait}
    return {"action": code, "available": True, "recommended": best, **known}


def plain(actual: Contract) -> Contract:
    """The contract without descriptions, which clients must not parse."""
    actions = [{key: value for key, value in step.items() if key != "description"} for step in actual["next_actions"]]
    return {**actual, "next_actions": actions}


def begins_with(actual: Contract, golden: Contract) -> bool:
    """Whether a contract is the expected one, perhaps followed by actions that are not recommended."""
    extra = plain(actual)["next_actions"][len(golden["next_actions"]) :]
    same = {**plain(actual), "next_actions": plain(actual)["next_actions"][: len(golden["next_actions"])]}
    return same == golden and not any(step["recommended"] for step in extra)
