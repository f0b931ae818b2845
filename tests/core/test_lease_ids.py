"""Lease ids of a session: found again with its secret, and only with it."""

from __future__ import annotations

import uuid

import pytest
from msgspec.structs import replace

from holdfast.core.holdings.lease_ids import (
    held_lease_id,
    is_secret_of,
    recover_lease_id,
    recover_session_lease_id,
    session_lease_id,
)
from holdfast.core.lease import JOB, Lease, proof_of
from holdfast.core.session import Session
from holdfast.core.task import CLAIMED, Task
from tests.support import ACCOUNT, START

SESSION = Session(ACCOUNT, "s1", name="agent", secret=proof_of("secret"), generation=2, opened_at=START)
LEASE_ID = session_lease_id("secret", SESSION)
JOB_ROW = Lease(ACCOUNT, "x", kind=JOB, holder="h1")
TASK_ROW = Task(ACCOUNT, "x", state=CLAIMED, attempt=1)


def test_a_lease_id_is_a_random_looking_uuid_and_the_same_each_time():
    for make in (lambda: session_lease_id("secret", SESSION), lambda: held_lease_id(LEASE_ID, JOB_ROW)):
        assert make() == make()
        assert uuid.UUID(make()).version == 4


def test_every_grant_has_a_lease_id_of_its_own():
    sessions = [
        *(replace(SESSION, **change) for change in ({}, {"generation": 3}, {"opened_at": START + 1}, {"id": "s2"})),
        replace(SESSION, account="other"),
    ]
    made = [session_lease_id(secret, session) for secret in ("secret", "another") for session in sessions]
    rows = [
        *(replace(JOB_ROW, **change) for change in ({}, {"holder": "h2"}, {"id": "y"}, {"account": "other"})),
        *(replace(TASK_ROW, **change) for change in ({}, {"attempt": 2}, {"id": "y"}, {"account": "other"})),
    ]
    made += [held_lease_id(lease_id, row) for lease_id in made for row in rows]
    assert len(set(made)) == len(made) == 10 + 10 * 8


@pytest.mark.parametrize("row", [JOB_ROW, TASK_ROW], ids=["job", "task"])
def test_what_was_claimed_under_the_lease_id_of_the_session_is_recovered_and_nothing_else(row):
    held = replace(row, proof=proof_of(held_lease_id(LEASE_ID, row)))
    assert recover_lease_id(LEASE_ID, held) == held_lease_id(LEASE_ID, row)
    assert recover_lease_id(session_lease_id("another", SESSION), held) is None
    assert recover_lease_id(LEASE_ID, replace(held, proof=proof_of("random"))) is None
    assert recover_lease_id(LEASE_ID, replace(held, proof=None)) is None


def test_the_lease_id_of_a_session_is_recovered_with_its_secret():
    live = replace(SESSION, proof=proof_of(LEASE_ID))
    assert recover_session_lease_id("secret", live) == LEASE_ID
    assert recover_session_lease_id("another", live) is None
    assert recover_session_lease_id("secret", replace(live, generation=3)) is None


def test_a_session_without_a_secret_has_no_secret_at_all():
    assert is_secret_of(SESSION, "secret")
    assert not is_secret_of(SESSION, "Secret")
    assert not is_secret_of(replace(SESSION, secret=None), "")
