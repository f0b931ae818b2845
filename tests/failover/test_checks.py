"""The checks of the failover drill find what they are for: each test plants one fault in a correct history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.failover.checks import Findings, check
from tests.failover.history import Call, History, Outcome
from tests.log_entry import LogEntry

SECOND = 1_000_000


def a_call(number, verb="claimed", **more):
    known = {
        "verb": verb, "subject": "job", "server": "hf1", "request_ids": (f"request-{number}",),
        "sent_at": float(number), "answered_at": number + 0.5, "outcome": Outcome.ACKNOWLEDGED,
        "token": number, "ttl": 10,
    }  # fmt: skip
    return Call(**known | more)


def an_event(seq, verb="claimed", **more):
    token = {"token": seq} if verb == "claimed" else {}
    ends = None if verb in {"released", "expired"} else (seq + 10) * SECOND
    known = {
        "seq": seq, "subject": "lease:job", "version": seq, "kind": f"lease.{verb}", "at": seq * SECOND,
        "request_id": f"request-{seq}", "data": {"expires_at": ends} | token,
    }  # fmt: skip
    return LogEntry(**known | more)


CALLS = [a_call(1), a_call(2, "renewed", token=1), a_call(3, "released", token=1), a_call(4)]
EVENTS = [an_event(1), an_event(2, "renewed"), an_event(3, "released"), an_event(4)]


def found(calls, events):
    """The names of the findings that are not empty."""
    findings = check(calls, events)
    return {name for name, value in vars(findings).items() if isinstance(value, list) and value}


def test_a_correct_history_has_no_findings():
    assert check(CALLS, EVENTS) == Findings(acknowledged=4)


def test_an_acknowledged_call_without_its_event_is_lost():
    assert found([*CALLS, a_call(5, "released", token=4)], EVENTS) == {"lost"}


def test_an_unknown_call_may_be_applied_or_not():
    unknown = a_call(5, "released", token=4, outcome=Outcome.UNKNOWN)
    assert check([*CALLS, unknown], EVENTS).problems() == []
    assert check([*CALLS, unknown], [*EVENTS, an_event(5, "released")]).problems() == []


def test_a_call_that_was_refused_must_not_be_applied():
    refused = a_call(5, "released", token=4, outcome=Outcome.NOT_APPLIED)
    assert found([*CALLS, refused], [*EVENTS, an_event(5, "released")]) == {"applied_although_refused"}


def test_a_call_that_was_repeated_must_be_applied_once():
    repeated = a_call(5, "created", request_ids=("request-5", "request-6"), token=None, ttl=0)
    created = [an_event(seq, "created", subject=f"task:{seq}", version=1, data={}) for seq in (5, 6)]
    assert found([*CALLS, repeated], [*EVENTS, *created]) == {"applied_twice"}
    assert found([*CALLS, repeated], [*EVENTS, created[0]]) == set()


@pytest.mark.parametrize("token", [1, 3])
def test_a_token_that_does_not_grow_is_found(token):
    events = [*EVENTS[:3], an_event(4, data={"token": token, "expires_at": 14 * SECOND})]
    calls = [*CALLS[:3], a_call(4, token=token)]
    assert ("tokens_reused" in found(calls, events)) is (token == 1)


def test_a_token_that_is_granted_again_after_its_grant_was_lost_is_found():
    other = a_call(4, request_ids=("lost",), subject="other")
    assert found([*CALLS, other], EVENTS) == {"lost", "tokens_reused"}


def test_a_smaller_token_for_a_later_request_is_found():
    later = [a_call(5, subject="other", token=2, request_ids=("request-5",))]
    event = an_event(5, subject="lease:other", version=1, data={"token": 2, "expires_at": 15 * SECOND})
    assert found([*CALLS, *later], [*EVENTS, event]) == {"tokens_reused"}


def test_a_grant_while_the_name_is_held_is_found():
    events = [*EVENTS[:2], an_event(3, "renewed"), EVENTS[3]]
    assert "two_holders" in found(CALLS[:2], events)


def test_a_lease_that_expires_early_is_found():
    assert found(CALLS[:2], [*EVENTS[:2], an_event(3, "expired")]) == {"two_holders"}
    assert found(CALLS[:2], [*EVENTS[:2], an_event(3, "expired", at=12 * SECOND)]) == set()


def test_two_clients_that_were_told_yes_are_found_although_the_log_has_one():
    other = a_call(5, token=9, sent_at=1.6, answered_at=1.7, request_ids=("lost",))
    assert found([*CALLS, other], EVENTS) == {"lost", "tokens_reused", "two_holders"}


def test_a_missing_event_is_found():
    assert "gaps" in found(CALLS, [*EVENTS[:1], *EVENTS[2:]])
    assert found(CALLS, [*EVENTS[:3], replace(EVENTS[3], version=5)]) == {"gaps"}


def test_the_longest_outage_is_the_longest_time_without_an_acknowledgement():
    history = History([a_call(1), a_call(2), a_call(6, outcome=Outcome.UNKNOWN), a_call(8)])
    assert history.longest_outage("hf1", since=1.0, until=9.0) == 6.0
    assert history.longest_outage("hf2", since=1.0, until=9.0) == 8.0
