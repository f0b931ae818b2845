"""`agent_contract`: one shape for every builder, whatever it is told."""

from __future__ import annotations

import inspect

import pytest

from holdfast.core.row import SECOND
from holdfast.transport.advice import contract as contracts
from holdfast.transport.advice.contract import action, contract, seconds_left, seconds_to_wait
from tests.support import START

SAMPLES = {
    "str": ["deploy/web"],
    "int": [0, 7],
    "float": [0.4],
    "bool": [True, False],
    "str | None": [None, "deploy/web"],
}
BUILDERS = [
    builder
    for name, builder in inspect.getmembers(contracts, inspect.isfunction)
    if inspect.signature(builder).return_annotation == "Contract" and name != "contract"
]


def told(builder, place):
    """Arguments for a builder, by the types it names."""
    given = {}
    for parameter in inspect.signature(builder).parameters.values():
        samples = ["GET /v1/jobs/deploy/web"] if parameter.name == "call" else SAMPLES[parameter.annotation]
        given[parameter.name] = samples[place % len(samples)]
    return given


CASES = [
    pytest.param(builder, told(builder, place), id=f"{builder.__name__}-{place}")
    for builder in BUILDERS
    for place in (0, 1)
]


def test_there_are_builders():
    assert len(BUILDERS) >= 18


@pytest.mark.parametrize(("builder", "given"), CASES)
def test_every_builder_keeps_the_promised_shape(builder, given):
    made = builder(**given)
    assert made["version"] == "1"
    assert isinstance(made["retryable"], bool)
    actions = made["next_actions"]
    assert actions, "an agent must always be told what to do"
    assert sum(step["recommended"] for step in actions[1:]) == 0, "the best action comes first, and there is only one"
    assert actions[0]["recommended"] or actions[0]["action"] == "fix_request"
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
def test_advice_to_come_back_says_when(builder, given):
    for step in builder(**given)["next_actions"]:
        if step["action"] == "retry_after_wait":
            assert step["retry_after_seconds"] >= 0


def test_a_claimer_is_told_how_long_and_how_often():
    told = contracts.job_claimed("job", 120, 40)
    assert told["lease_valid"] is True
    assert (told["lease_expires_in_seconds"], told["recommended_heartbeat_interval_seconds"]) == (120, 40)


def test_a_former_holder_is_first_told_to_stop():
    assert contracts.job_lost("job")["next_actions"][0]["action"] == "stop_work"


def test_a_lock_name_is_one_segment_of_its_path():
    assert contracts.lock_path("a/b c\u00e9") == "/locks/a%2Fb%20c%C3%A9"


def test_more_facts_stand_beside_the_promised_fields():
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
