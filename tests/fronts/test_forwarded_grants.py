"""Grants to callers behind a front: they are given back in whichever order the engine learns of them."""

from __future__ import annotations

from holdfast.transport.fronts.forwarded_grants import ForwardedGrants


def test_a_grant_is_given_back_whether_the_caller_left_before_or_after_it():
    grants, given_back = ForwardedGrants(), []
    grants.caller_left("7.1")
    for number in ("7.1", "7.2", "7.3"):
        grants.add(number, lambda number=number: given_back.append(number))
    assert given_back == ["7.1"]
    grants.caller_left("7.2")
    assert given_back == ["7.1", "7.2"]
