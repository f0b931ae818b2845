"""One description of an action has three renderings: a route, a tool with its arguments, a command with its flags."""

import pytest

from holdfast.transport.advice import jobs, reservations, sessions
from holdfast.transport.advice.orchestrion import for_error
from holdfast.transport.advice.refusals import Refusal, for_refusal
from holdfast.transport.advice.wording import advise
from holdfast.transport.cli.advice import CommandWording, next_step
from holdfast.transport.mcp.listed_tools import ListedTools
from holdfast.transport.mcp.operator_tools import DEFAULT, OPERATOR, TOOL_SETS

TOOLS, MORE_TOOLS = (ListedTools(TOOL_SETS[name]).wording for name in (DEFAULT, OPERATOR))
JOB, TASK, LEASE = "repo/issue-1842", "tsk_01ARZ3NDEKTSV4RRFFQ69G5FAV", "7d3a0000-0000-4000-8000-000000000000"


def steps(document, wording, operation="", subject=""):
    shown = advise(document, wording, operation, subject)["agent_contract"]["next_actions"]
    assert sum(step["recommended"] for step in shown) == 1
    assert shown[0]["recommended"]
    assert not any(step.keys() & {"method", "endpoint"} for step in shown)
    return shown


def test_a_tool_is_named_with_the_arguments_that_are_known_and_those_it_needs():
    claimed = {"lease_id": LEASE, "agent_contract": jobs.claimed(JOB, 120, 40)}
    first, second = steps(claimed, TOOLS, "claim_job", JOB)
    assert (first["tool"], first["arguments"]) == ("heartbeat_job", {"jobId": JOB, "leaseId": LEASE})
    assert second["tool"] == "release_job"
    (later, look) = steps({"agent_contract": jobs.held(JOB, 7)}, TOOLS, "claim_job", JOB)
    assert (later["tool"], later["arguments"], later["needs"]) == ("claim_job", {"jobId": JOB}, ["owner"])
    assert "`waitMs`" in later["description"]
    assert look["tool"] == "get_job_owner"
    reserved = {"lease_id": LEASE, "agent_contract": reservations.reserved("rsv", 120, 40)}
    first = steps(reserved, TOOLS, "reserve_files")[0]
    assert (first["tool"], first["arguments"]) == ("heartbeat", {"id": "rsv", "leaseId": LEASE})


def test_a_command_is_named_with_its_flags():
    (later, look) = steps({"agent_contract": jobs.held("it's", 7)}, CommandWording(), "claim_job", "it's")
    assert later["command"] == "holdfast claim 'it'\"'\"'s'"
    assert "`--wait`" in later["description"]
    assert look["command"].startswith("holdfast owner ")
    shown = advise({"agent_contract": sessions.missing()}, CommandWording(), "claim_job", JOB)
    assert next_step(shown).endswith("`holdfast session open NAME`")


def test_what_tools_cannot_do_is_not_advised_to_them():
    assert "checkout" not in MORE_TOOLS.operations()
    for code in ("quota_exceeded", "plan_expired"):
        refused = {"error": code, "agent_contract": for_error(code, operation="create_task")}
        (step,) = steps(refused, TOOLS, "create_task")
        assert (step["action"], "user" in step["description"]) == ("ask_operator", True)


def test_a_tool_for_several_operations_is_named_with_the_arguments_that_choose_one():
    begin, *_ = steps({"agent_contract": sessions.missing()}, TOOLS, "claim_job", JOB)
    assert (begin["tool"], begin["arguments"], begin["needs"]) == ("session", {"action": "open"}, ["name"])
    resume, *_ = steps({"agent_contract": sessions.expired()}, TOOLS, "heartbeat_session", "s")
    assert (resume["tool"], resume["arguments"]) == ("session", {"action": "resume"})
    renew, save, claim, _ = steps({"lease_id": LEASE, "agent_contract": sessions.active("s")}, TOOLS, "begin_session")
    proof = {"sessionId": "s", "leaseId": LEASE}
    assert (renew["arguments"], save["arguments"]) == ({"action": "heartbeat", **proof}, {"action": "context", **proof})
    assert (claim["tool"], claim["description"]) == (
        "claim_task",
        "With this sessionId, and its lease_id as sessionLeaseId.",
    )
    lost = {"error": "lease_lost", "agent_contract": reservations.lost("rsv")}
    looks = [step for step in steps(lost, TOOLS, "release_files", "rsv") if step.get("tool") == "who_owns"]
    assert looks[0]["arguments"] == {"reservationId": "rsv"}


def test_advice_names_only_tools_of_the_set_in_use():
    unknown = for_refusal(Refusal("outcome_unknown", operation="claim_job", subject=JOB, request_id="r1"))
    assert steps({"agent_contract": unknown}, MORE_TOOLS, "claim_job", JOB)[0]["tool"] == "list_events"
    (look,) = steps({"agent_contract": unknown}, TOOLS, "claim_job", JOB)
    assert (look["tool"], look["arguments"]) == ("get_job_owner", {"jobId": JOB})


@pytest.mark.parametrize("wording", [TOOLS, CommandWording()], ids=["tools", "commands"])
@pytest.mark.parametrize(
    ("state", "action"),
    [
        ("pending", "continue_work"),
        ("claimed", "retry_after_wait"),
        ("completed", "continue_work"),
        ("dead_letter", "continue_work"),
        ("cancelled", "stop_work"),
    ],
)
def test_reading_a_task_leads_to_no_new_work(wording, state, action):
    on_http = {"next_actions": [{"action": "create_task", "available": True, "recommended": True}]}
    document = {"id": TASK, "status": state, "leaseDurationSeconds": 300, "agent_contract": on_http}
    assert steps(document, wording, "check_task_status", TASK)[0]["action"] == action


@pytest.mark.parametrize("wording", [TOOLS, CommandWording()], ids=["tools", "commands"])
@pytest.mark.parametrize(
    ("code", "action"),
    [
        ("lease_expired", "stop_work"),
        ("invalid_transition", "stop_work"),
        ("task_not_found", "fix_request"),
        ("task_currently_claimed", "retry_after_wait"),
        ("idempotency_conflict", "fix_request"),
        ("invalid_request", "fix_request"),
    ],
)
def test_a_refusal_gives_better_advice_than_orchestrion_fixes(wording, code, action):
    contract = for_error(code, TASK, operation="create_task")
    shown = steps({"error": code, "agent_contract": contract}, wording, "complete_task", TASK)
    assert shown[0]["action"] == action
