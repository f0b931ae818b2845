"""`agent_contract`: one shape for every builder, whatever its arguments."""

from __future__ import annotations

import inspect

import msgspec
import pytest

from holdfast.core.row import SECOND
from holdfast.core.task import DEAD, Task
from holdfast.transport.advice import billing, elections, jobs, locks, sessions, tasks, webhooks
from holdfast.transport.advice import contract as general
from holdfast.transport.advice.contract import action, contract, prepared, seconds_left, seconds_to_wait
from tests.support import START

A_TASK = Task("acct", "task-1", state=DEAD)
SAMPLES = {
    "str": ["deploy/web"],
    "int": [0, 7],
    "float": [0.4],
    "bool": [True, False],
    "str | None": [None, "deploy/web"],
    "Task": [A_TASK],
    "Instant": [START],
}
MODULES = (general, billing, elections, jobs, locks, sessions, tasks, webhooks)
BUILDERS = [
    builder
    for module in MODULES
    for name, builder in inspect.getmembers(module, inspect.isfunction)
    if inspect.signature(builder).return_annotation == "Contract"
    and builder.__module__ == module.__name__
    and not name.startswith("_")
    and builder is not contract
]


def arguments(builder, place):
    """Arguments for a builder, by the types of its parameters."""
    given = {}
    for parameter in inspect.signature(builder).parameters.values():
        samples = {"code": ["get_job_owner"], "found": [[], [A_TASK]]}.get(parameter.name) or SAMPLES.get(
            parameter.annotation
        )
        if samples is not None:
            given[parameter.name] = samples[place % len(samples)]
    return given


CASES = [
    pytest.param(
        builder, arguments(builder, place), id=f"{builder.__module__.rpartition('.')[2]}.{builder.__name__}-{place}"
    )
    for builder in BUILDERS
    for place in (0, 1)
]


def test_at_least_forty_builders_are_found():
    assert len(BUILDERS) >= 40


@pytest.mark.parametrize(("builder", "given"), CASES)
def test_every_builder_returns_the_documented_shape(builder, given):
    made = builder(**given)
    assert made["version"] == "1"
    assert isinstance(made["retryable"], bool)
    actions = made["next_actions"]
    assert actions, "an agent must always get an action"
    assert sum(step["recommended"] for step in actions[1:]) == 0, "the best action comes first, and there is only one"
    assert actions[0]["recommended"] or actions[0]["action"] in {"fix_request", "create_webhook"}
    for step in actions:
        assert set(step) <= {
            "action", "available", "recommended", "description", "method", "endpoint", "retry_after_seconds",
        }  # fmt: skip
        assert step["available"] is True
        assert ("method" in step) == ("endpoint" in step)
        if "method" in step:
            assert step["method"] in {"GET", "POST", "PUT", "DELETE"}
            assert step["endpoint"].startswith("/")


@pytest.mark.parametrize(("builder", "given"), CASES)
def test_advice_to_retry_contains_when(builder, given):
    for step in builder(**given)["next_actions"]:
        if step["action"] == "retry_after_wait":
            assert step["retry_after_seconds"] >= 0


def test_advice_for_a_claim_contains_the_ttl_and_the_renewal_interval():
    made = jobs.claimed("job", 120, 40)
    assert made["lease_valid"] is True
    assert (made["lease_expires_in_seconds"], made["recommended_heartbeat_interval_seconds"]) == (120, 40)


def test_the_first_advice_to_a_former_holder_is_to_stop():
    assert jobs.lost("job")["next_actions"][0]["action"] == "stop_work"


def test_a_lock_name_is_encoded_as_one_path_segment():
    assert action("get_lock_status", "a/b c\u00e9")["endpoint"] == "/locks/a%2Fb%20c%C3%A9"


def test_additional_facts_are_added_beside_the_documented_fields():
    assert contract(action("x"), retryable=True, more=1) == {
        "version": "1", "retryable": True, "more": 1,
        "next_actions": [{"action": "x", "available": True, "recommended": False}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("until", "left", "wait"),
    [
        (None, 0, 1),
        (START - SECOND, 0, 1),
        (START, 0, 1),
        (START + 1, 0, 1),
        (START + SECOND, 1, 1),
        (START + SECOND + 1, 1, 2),
    ],
)
def test_seconds_left_are_rounded_down_and_seconds_to_wait_up(until, left, wait):
    assert (seconds_left(until, START), seconds_to_wait(until, START)) == (left, wait)


def test_an_action_takes_its_endpoint_from_the_operation_table():
    assert action("claim_job", "deploy/web")["endpoint"] == "/v1/jobs/deploy/web/claim"
    assert action("claim_job")["endpoint"] == "/v1/jobs/{job_id}/claim"
    assert action("retry_after_wait", "lock", operation="acquire_lock")["method"] == "POST"
    assert "endpoint" not in action("stop_work")


@pytest.mark.parametrize(
    ("build", "details"),
    [
        (jobs.claimed, (120, 40)),
        (jobs.claimed, (0, 0.4)),
        (jobs.claimed, (1, 1)),
        (jobs.claimed, (1, 1.0)),
        (jobs.held, (7,)),
        (jobs.released, ()),
        (tasks._for_held_task, ((False, False), 300, 100)),
        (tasks._for_held_task, ((False, True), 20, 6)),
        (tasks._for_held_task, ((True, False), 0, 1, ("task_claimable", True))),
    ],
)
def test_prepared_advice_is_the_same_document_for_every_subject(build, details):
    for subject in ("deploy/web", "tsk_01JD3Q", "a"):
        assert bytes(prepared(build, subject, *details)) == msgspec.json.encode(build(subject, *details))
