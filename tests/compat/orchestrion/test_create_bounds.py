"""Every bound of a new task: the last value inside is taken, the first outside refused and nothing is created."""

import pytest

from tests.compat.octostore.wire import Answer
from tests.compat.orchestrion.expect import created, in_seconds, instant, page, refused

DAY = 86_400

INSIDE = {
    "type of 1": ("type", "a"),
    "type of 100": ("type", "t" * 100),
    "type of every kind": ("type", "azAZ09-_"),
    "type of digits": ("type", "42"),
    "priority 0": ("priority", 0),
    "priority 1": ("priority", 1),
    "priority 99": ("priority", 99),
    "priority 100": ("priority", 100),
    "1 attempt": ("maxAttempts", 1),
    "2 attempts": ("maxAttempts", 2),
    "9 attempts": ("maxAttempts", 9),
    "10 attempts": ("maxAttempts", 10),
    "lease of 30": ("leaseDurationSeconds", 30),
    "lease of 31": ("leaseDurationSeconds", 31),
    "lease of 3599": ("leaseDurationSeconds", 3599),
    "lease of 3600": ("leaseDurationSeconds", 3600),
}


@pytest.mark.parametrize(("field", "value"), INSIDE.values(), ids=INSIDE)
def test_a_value_inside_its_bounds_is_kept(account, field, value):
    assert created(account.create(**{field: value}))[field] == value


def wrong_kinds(field: str, *values: object) -> dict[str, tuple[str, object]]:
    return {f"{field} {value!r}": (field, value) for value in values}


OUTSIDE = {
    "type of 0": ("type", ""),
    "type of 101": ("type", "t" * 101),
    **wrong_kinds("type", "a.b", "a/b", "a b", " a", "a:b", "a\n", "ä", "٣", "a%20b", 5, None, True, ["a"], {"a": 1}),
    **wrong_kinds("payload", None, [], [{}], "text", "{}", 5, True),
    **wrong_kinds("priority", -1, 101, 10**30, 0.5, "5", True, [5], {}),
    **wrong_kinds("maxAttempts", 0, 11, -1, 1.5, "3", True, [3]),
    **wrong_kinds("leaseDurationSeconds", 29, 3601, 0, -30, 45.5, "300", True),
    **wrong_kinds("scheduledAt", "", "soon", "2026-13-01T00:00:00Z", 5, True, [], "2020-01-01T00:00:00Z"),
    **wrong_kinds("idempotencyKey", "", "k" * 256, "ключ", "a\nb", "a\x7f", 5, True),
}


@pytest.mark.parametrize(("field", "value"), OUTSIDE.values(), ids=OUTSIDE)
def test_a_value_outside_its_bounds_is_refused_and_nothing_is_created(account, field, value):
    refused(account.create(**{field: value}), 400, "invalid_request")
    assert page(account.list())["tasks"] == []


@pytest.mark.parametrize("field", ["max_attempts", "lease_duration_seconds", "scheduled_at", "idempotency_key"])
def test_snake_case_fields_have_the_same_bounds(account, field):
    refused(account.create(**{field: -1}), 400, "invalid_request")
    assert page(account.list())["tasks"] == []


@pytest.mark.parametrize("body", [{}, {"type": "work"}, {"payload": {}}], ids=["both", "payload", "type"])
def test_type_and_payload_are_required(account, body):
    refused(account.post("/v1/tasks", body), 400, "invalid_request")
    assert page(account.list())["tasks"] == []


# When it may start: strictly in the future, at most 30 days ahead.


def schedule(account, seconds: float) -> tuple[str, Answer]:
    due = in_seconds(seconds)
    return due, account.create(scheduledAt=due)


@pytest.mark.parametrize("seconds", [2, 60, 30 * DAY - 5])
def test_a_task_can_be_scheduled_for_up_to_thirty_days(account, seconds):
    due, answer = schedule(account, seconds)
    assert created(answer)["scheduledAt"] == due


@pytest.mark.parametrize("seconds", [-DAY, -1, -0.05, 30 * DAY + 5, 3650 * DAY])
def test_a_schedule_in_the_past_or_beyond_thirty_days_is_refused(account, seconds):
    _, answer = schedule(account, seconds)
    refused(answer, 400, "invalid_request")
    assert page(account.list())["tasks"] == []


def test_a_time_may_be_written_without_milliseconds_or_with_an_offset(account):
    due = in_seconds(7200)[:19]
    for written in (f"{due}Z", f"{due}+00:00", f"{due}.000000Z"):
        assert created(account.create(scheduledAt=written))["scheduledAt"] == f"{due}.000Z"
    offset = created(account.create(scheduledAt=f"{due}-01:00"))
    assert instant(offset["scheduledAt"]) == instant(f"{due}.000Z") + 3600


# Idempotency keys, in the body and in the header.

KEYS = {"1": "k", "255": "k" * 255, "every kind": "azAZ09 !\"#$%&'()*+,-./:;<=>?@[]^_`{|}~"}
NO_KEYS = {"0": "", "256": "k" * 256, "not ascii": "clé"}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_of_1_to_255_printable_characters_is_accepted(account, key):
    made = created(account.create(idempotencyKey=key))
    assert created(account.with_headers(Idempotency_Key=key).create()) == made


@pytest.mark.parametrize("key", NO_KEYS.values(), ids=NO_KEYS)
def test_any_other_key_in_the_header_is_refused(account, key):
    refused(account.with_headers(Idempotency_Key=key).create(), 400, "invalid_request")
    assert page(account.list())["tasks"] == []
