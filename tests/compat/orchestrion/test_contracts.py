"""`agent_contract` of every answer about tasks, compared word for word: by state, and by error code.

`expect` holds every answer of every test to the same tables; here each row is met on purpose, and the expected values
themselves are written out once, so that the table and its test are not changed together.
"""

import pytest

from tests.compat.orchestrion.contracts import plain
from tests.compat.orchestrion.expect import ABSENT, claimed, created, envelope, task
from tests.compat.orchestrion.states import cancelled, completed, dead, held, pending, scheduled


def contract_of(answer):
    contract = plain(answer.json["agent_contract"])
    assert contract["version"] == "1"
    assert all(step["available"] is True for step in contract["next_actions"])
    return contract


def steps(contract):
    names = ("action", "method", "endpoint", "recommended", "retry_after_seconds")
    for step in contract["next_actions"]:
        assert step.keys() <= {*names, "available"}
    return [tuple(step.get(name) for name in names) for step in contract["next_actions"]]


def extras(contract):
    return {key: value for key, value in contract.items() if key not in {"version", "retryable", "next_actions"}}


CLAIM = ("claim_task", "POST", "/v1/tasks/claim")
CREATE = ("create_task", "POST", "/v1/tasks")
ARTIFACT = "https://api.outputlayer.dev/v1/outputs/out_01H/content"

ROWS_OF_TASKS = {
    "pending": (pending, [(*CLAIM, True, None)]),
    "pending, scheduled": (scheduled, [(*CLAIM, True, None)]),
    "completed with an output": (
        lambda account: completed(account, output_id="out_01H"),
        [("download_artifact", "GET", ARTIFACT, True, None), (*CLAIM, False, None)],
    ),
    "completed without": (completed, [(*CREATE, True, None), (*CLAIM, False, None)]),
    "completed with an empty output": (
        lambda account: completed(account, output_id=""),
        [(*CREATE, True, None), (*CLAIM, False, None)],
    ),
    "dead letter": (dead, [("requeue_task", "POST", "/v1/tasks/{id}/requeue", True, None)]),
    "cancelled": (cancelled, [(*CREATE, True, None)]),
}


@pytest.mark.parametrize(("make", "golden"), ROWS_OF_TASKS.values(), ids=ROWS_OF_TASKS)
def test_a_task_has_the_contract_of_its_state(account, make, golden):
    made = make(account)
    contract = contract_of(account.read_task(made["id"]))
    golden = [(code, method, end.format(id=made["id"]), *rest) for code, method, end, *rest in golden]
    assert (steps(contract), contract["retryable"], extras(contract)) == (golden, False, {})


def live(task_id):
    path = f"/v1/tasks/{task_id}"
    return [
        ("complete_task", "POST", f"{path}/complete", True, None),
        ("fail_task", "POST", f"{path}/fail", False, None),
        ("heartbeat", "POST", f"{path}/heartbeat", False, None),
    ]


def test_a_live_claim_advises_to_complete_or_fail(account):
    mine = held(account, leaseDurationSeconds=100)
    for answer in (account.read_task(mine["id"]), account.do("heartbeat", mine["id"])):
        contract = contract_of(answer)
        left = contract["lease_expires_in_seconds"]
        assert (steps(contract), contract["retryable"]) == (live(mine["id"]), False)
        assert extras(contract) == {
            "lease_valid": True,
            "lease_expires_in_seconds": left,
            "recommended_heartbeat_interval_seconds": 33,
        }


@pytest.mark.parametrize("by_id", [True, False], ids=["by id", "by type"])
def test_the_contract_of_a_claim_has_task_claimable(account, by_id):
    made = pending(account, leaseDurationSeconds=100)
    contract = contract_of(account.do("claim", made["id"]) if by_id else account.claim())
    assert (steps(contract), contract["retryable"]) == (live(made["id"]), False)
    assert extras(contract).keys() == {
        "task_claimable",
        "lease_valid",
        "lease_expires_in_seconds",
        "recommended_heartbeat_interval_seconds",
    }
    assert (contract["task_claimable"], contract["lease_valid"]) == (True, True)
    assert contract["lease_expires_in_seconds"] in {99, 100}


def test_an_empty_claim_advises_to_wait_five_seconds(account):
    contract = contract_of(account.claim())
    assert steps(contract) == [("retry_after_wait", "POST", "/v1/tasks/claim", True, 5)]
    assert (contract["retryable"], extras(contract)) == (True, {"task_claimable": False})


# Errors.

REGISTER = ("authenticate", "POST", "/v1/keys/register", True, None)
LOOK = ("check_task_status", "GET", "/v1/tasks/{id}")
LIST = ("list_tasks", "GET", "/v1/tasks", True, None)

ERRORS = {
    "wrong_method": (405, True, [REGISTER], lambda account: account.get("/v1/keys/register")),
    "missing_api_key": (401, True, [REGISTER], lambda account: account.with_headers(Authorization="").list()),
    "invalid_api_key": (401, False, [REGISTER], lambda account: account.with_headers(Authorization="Bearer x").list()),
    "invalid_request": (400, False, [("fix_request", None, None, False, None)], lambda account: account.create(type=5)),
    "task_not_found": (404, False, [LIST], lambda account: account.read_task(ABSENT)),
    "not_found": (
        404,
        False,
        [("fix_request", None, None, True, None)],
        lambda account: account.get("/v1/nothing"),
    ),
    "idempotency_conflict": (
        409,
        False,
        [(*CREATE, True, None)],
        lambda account: [account.create(idempotencyKey="k", priority=priority) for priority in (1, 2)][1],
    ),
}


@pytest.mark.parametrize("code", ERRORS)
def test_an_error_has_the_contract_of_its_code(account, code):
    status, retryable, golden, ask = ERRORS[code]
    answer = ask(account)
    assert envelope(answer, status)["error"] == code
    contract = contract_of(answer)
    assert (steps(contract), contract["retryable"], extras(contract)) == (golden, retryable, {})


ERRORS_ABOUT_A_TASK = {
    "invalid_transition": (False, [(*LOOK, True, None)], pending, "complete"),
    "task_currently_claimed": (
        True,
        [(*LOOK, True, None), ("retry_after_wait", None, None, False, 30)],
        held,
        "claim",
    ),
    "not_yet_claimable": (
        True,
        [("retry_after_wait", None, None, True, 3600), (*LOOK, False, None)],
        scheduled,
        "claim",
    ),
}


@pytest.mark.parametrize("code", ERRORS_ABOUT_A_TASK)
def test_the_contract_of_an_error_about_a_task_names_the_task(account, code):
    retryable, golden, make, verb = ERRORS_ABOUT_A_TASK[code]
    made = make(account)
    answer = account.do(verb, made["id"])
    assert envelope(answer, 409)["error"] == code
    contract = contract_of(answer)
    golden = [(action, method, end and end.format(id=made["id"]), *rest) for action, method, end, *rest in golden]
    shown = steps(contract)
    if code == "not_yet_claimable":
        assert 3598 <= shown[0][-1] <= 3600
        shown[0] = golden[0]
    assert (shown, contract["retryable"], extras(contract)) == (golden, retryable, {})


def test_a_first_recommended_action_can_be_followed_to_the_end(account):
    """An agent that knows nothing but the contract gets a task done."""
    follow = created(account.create())
    mine = claimed(first_recommended(account, follow))
    done = task(first_recommended(account, mine))
    assert done["status"] == "completed"
    assert done["agent_contract"]["next_actions"][0]["action"] == "create_task"


def first_recommended(account, body):
    step = next(step for step in body["agent_contract"]["next_actions"] if step["recommended"])
    return account.send(step["method"], step["endpoint"], b"{}", Content_Type="application/json")
