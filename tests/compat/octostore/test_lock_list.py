"""The list of held locks, by prefix."""

import pytest

from tests.compat.octostore.expect import LOCK_KEYS, acquired, released, success


def test_the_list_contains_live_locks_of_all_users(alice, bob, lock):
    mine = acquired(alice.acquire(f"{lock}.a", metadata="of alice"))
    his = acquired(bob.acquire(f"{lock}.b"))
    answer = success(alice.get(f"/locks?prefix={lock}"))
    assert (answer["total"], answer["prefix"]) == (2, lock)
    rows = {row["name"]: row for row in answer["locks"]}
    assert rows[f"{lock}.a"]["metadata"] == "of alice"
    assert rows[f"{lock}.b"]["metadata"] is None
    for row, lease in ((rows[f"{lock}.a"], mine), (rows[f"{lock}.b"], his)):
        assert row.keys() >= LOCK_KEYS
        assert row["status"] == "held"
        assert (row["fencing_token"], row["expires_at"]) == (lease["fencing_token"], lease["expires_at"])


def test_the_list_omits_released_locks(alice, lock):
    released(alice.release(lock, acquired(alice.acquire(lock))["lease_id"]))
    answer = success(alice.get(f"/locks?prefix={lock}"))
    assert (answer["locks"], answer["total"]) == ([], 0)


def test_the_list_contains_no_acl(alice, lock):
    acquired(alice.acquire(lock, acl={"acquire": [f"user:{alice.name}"]}))
    (row,) = success(alice.get(f"/locks?prefix={lock}"))["locks"]
    assert "acl" not in row


def test_without_a_prefix_the_list_contains_all_locks(alice, lock):
    acquired(alice.acquire(lock))
    answer = success(alice.get("/locks"))
    assert answer["prefix"] is None
    assert answer["total"] == len(answer["locks"])
    assert lock in {row["name"] for row in answer["locks"]}


def test_an_empty_prefix_matches_everything_and_is_echoed(alice, lock):
    acquired(alice.acquire(lock))
    answer = success(alice.get("/locks?prefix="))
    assert answer["prefix"] == ""
    assert lock in {row["name"] for row in answer["locks"]}


@pytest.mark.parametrize(
    ("query", "prefix"),
    [("a%20b!", "a b!"), ("%2F%2F", "//"), ("%C3%A9", "é"), ("%FF", "\ufffd"), ("x%FFy", "x\ufffdy")],
)
def test_a_prefix_is_any_text_decoded_lossily(alice, query, prefix):
    answer = success(alice.get(f"/locks?prefix={query}"))
    assert (answer["prefix"], answer["total"]) == (prefix, 0)


def test_a_prefix_is_not_a_pattern(alice, lock):
    acquired(alice.acquire(f"{lock}a"))
    for wild in ("%25", "_", "*", "?"):
        assert success(alice.get(f"/locks?prefix={lock}{wild}"))["total"] == 0


def test_an_unknown_query_parameter_is_ignored(alice):
    assert success(alice.get("/locks?colour=blue"))["prefix"] is None
