"""Context of a session: versions, conditional writes, and the bounds of every field."""

import pytest

from tests.http.job_client import Callers, fresh, pointers
from tests.http.replies import done, nothing_changes, refused_as_problem
from tests.http.session_client import begin, path, write

pytest_plugins = ["tests.http.fresh_accounts"]

CONTEXT = {
    "turn": 7,
    "last_action": "wrote the plan",
    "next_action": "run the tests",
    "context_hash": "sha256:abc",
    "memory_ref": "s3://bucket/memory",
    "context": {"files": ["a.py"], "budget": 3},
}
OTHERS = {
    "turn": 8,
    "last_action": "ran the tests",
    "next_action": "mend them",
    "context_hash": "sha256:def",
    "memory_ref": "s3://bucket/other",
    "context": [1, 2],
}


def test_each_write_of_the_context_is_a_version(account):
    life = begin(account, **CONTEXT)
    written = done(write(account, life, turn=8))
    assert (written["turn"], written["context"], written["context_version"]) == (8, CONTEXT["context"], 2)
    assert done(write(account, life, **OTHERS))["context_version"] == 3
    seen = done(account.get(path(life)))
    assert {name: seen[name] for name in OTHERS} == OTHERS


def test_a_write_may_insist_on_the_version_it_has_read(account):
    life = begin(account, **CONTEXT)
    assert done(write(account, life, turn=8, if_version=1))["context_version"] == 2
    with nothing_changes(account):
        body = refused_as_problem(write(account, life, turn=9, if_version=1), 409, "context_conflict")
    assert body["version"] == 2
    assert done(account.get(path(life)))["turn"] == 8


def test_of_two_writes_from_one_version_one_wins(account):
    life = begin(account)
    with Callers() as callers:
        sent = [callers.send(write, account, life, turn=turn, if_version=0) for turn in range(6)]
        statuses = sorted(future.result(10)[0].status for future in sent)
    assert statuses == [200] + [409] * 5


def test_writing_the_context_renews_the_session(account):
    life = begin(account)
    assert done(write(account, life, turn=1))["expires_at"] > life["expires_at"]


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("turn", [0, 2**53 - 1, None], [-1, 2**53 + 1, 1.5, "1"]),
        *((name, ["", "x" * 4096, None], ["x" * 4097, "a\0b", 5])
          for name in ("last_action", "next_action", "context_hash", "memory_ref")),
        ("context", [None, 0, {}, "x" * 65_534], ["a\0b", [{"k\0": 1}]]),
        ("if_version", [None], ["0", 1.5, {}]),
    ],
)  # fmt: skip
def test_the_bounds_of_a_context(account, field, good, bad):
    life = begin(account)
    with nothing_changes(account):
        for value in bad:
            body = refused_as_problem(write(account, life, **{field: value}), 400, "invalid_request")
            assert pointers(body) == {f"/{field}"}, value
    for value in good:
        done(write(account, life, **{field: value}))


def test_a_context_has_at_most_64_kilobytes(account):
    life = begin(account)
    with nothing_changes(account):
        assert pointers(refused_as_problem(write(account, life, context="x" * 65_535), 413, "too_large")) == {
            "/context"
        }


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("name", ["x", "x" * 256, "ü/ ß"], ["", "  ", "x" * 257, "a\0b", 5, None]),
        ("ttl_seconds", [10, 3600], [9, 3601, 0, -1, 10.5, "60", None]),
        ("secret", [None], ["x" * 257, "a\0b", 5]),
        ("lane", [True, False, None], [1, "true"]),
        ("turn", [0], [-1]),
    ],
)
def test_the_bounds_of_opening(account, field, good, bad):
    with nothing_changes(account):
        for value in bad:
            answer = account.post("/v1/sessions", {"name": "me", field: value})
            assert pointers(refused_as_problem(answer, 400, "invalid_request")) == {f"/{field}"}, value
    for value in good:
        begin(account, **{"name": fresh(), field: value})
