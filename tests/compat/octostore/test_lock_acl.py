"""Access lists of locks: stored with the name, shown normalised, tokens redacted."""

import pytest

from tests.compat.octostore.expect import acquired, held, malformed, refused, released, success
from tests.compat.octostore.wire import lock_path


def only(*callers):
    return {"acquire": [f"user:{caller.name}" for caller in callers]}


def acl_of(caller, lock):
    return success(caller.read_lock(lock)).get("acl")


def test_an_acl_sent_with_acquire_is_stored(alice, bob, lock):
    lease = acquired(alice.acquire(lock, acl=only(alice)))
    assert acl_of(bob, lock) == only(alice)
    released(alice.release(lock, lease["lease_id"]))
    assert success(bob.read_lock(lock))["status"] == "free"
    assert acl_of(bob, lock) == only(alice)
    refused(bob.acquire(lock), 403, "forbidden")
    acquired(alice.acquire(lock))


def test_an_acl_applies_to_a_held_lock(alice, bob, lock):
    acquired(alice.acquire(lock, acl=only(alice)))
    refused(bob.acquire(lock), 403, "forbidden")


def test_every_user_on_the_acl_may_acquire(alice, bob, lock):
    acquired(alice.acquire(lock, acl=only(alice, bob)))
    held(bob.acquire(lock))


def test_user_names_are_compared_without_case(alice, bob, lock):
    lease = acquired(alice.acquire(lock, acl={"acquire": [f"user:{alice.name.upper()}", f"user:{bob.name.title()}"]}))
    assert acl_of(alice, lock) == only(alice, bob)
    released(alice.release(lock, lease["lease_id"]))
    acquired(bob.acquire(lock))


def test_an_acl_is_trimmed_lower_cased_sorted_and_without_duplicates(alice, bob, lock):
    untidy = [f"  user:{bob.name} ", f"user:{alice.name.upper()}", f"\tuser:{alice.name}\n", f"user:{bob.name}"]
    acquired(alice.acquire(lock, acl={"acquire": untidy}))
    assert acl_of(alice, lock) == only(alice, bob)


def test_a_token_on_the_acl_admits_its_bearer_and_is_redacted(alice, bob, lock):
    entries = [f"token:{bob.token}", f"user:{alice.name}"]
    lease = acquired(alice.acquire(lock, acl={"acquire": entries}))
    for caller in (alice, bob):
        assert acl_of(caller, lock) == {"acquire": ["token:[redacted]", f"user:{alice.name}"]}
        assert bob.token not in caller.read_lock(lock).raw.decode()
    released(alice.release(lock, lease["lease_id"]))
    acquired(bob.acquire(lock))


def test_each_token_on_the_acl_is_one_redacted_entry(alice, lock):
    entries = [f"user:{alice.name}", "token:one", "token:two", "token:two"]
    acquired(alice.acquire(lock, acl={"acquire": entries}))
    assert acl_of(alice, lock) == {"acquire": ["token:[redacted]", "token:[redacted]", f"user:{alice.name}"]}


def test_the_token_of_another_user_does_not_admit_the_caller(alice, bob, lock):
    entries = [f"token:{bob.token.upper()}", f"user:{alice.name}"]
    acquired(alice.acquire(lock, acl={"acquire": entries}))
    refused(bob.acquire(lock), 403, "forbidden")


def test_a_user_cannot_set_an_acl_without_itself(alice, bob, lock):
    refused(alice.acquire(lock, acl=only(bob)), 403, "forbidden")
    assert acl_of(alice, lock) is None
    acquired(alice.acquire(lock))


def test_an_acl_that_differs_from_the_stored_one_is_a_conflict(alice, bob, lock):
    acquired(alice.acquire(lock, acl=only(alice)))
    refused(alice.acquire(lock, acl=only(alice, bob)), 409, "conflict")
    assert acl_of(alice, lock) == only(alice)


def test_the_same_acl_in_another_spelling_is_not_a_conflict(alice, bob, lock):
    acquired(alice.acquire(lock, acl=only(alice, bob)))
    acquired(alice.acquire(lock, acl={"acquire": [f" user:{bob.name.upper()}", *only(alice, bob)["acquire"]]}))


def test_acquiring_again_sets_an_acl_if_there_is_none(alice, lock):
    acquired(alice.acquire(lock))
    acquired(alice.acquire(lock, acl=only(alice)))
    assert acl_of(alice, lock) == only(alice)


def test_an_acl_of_a_refused_acquire_is_not_stored(alice, bob, lock):
    acquired(alice.acquire(lock))
    held(bob.acquire(lock, acl=only(bob)))
    assert acl_of(alice, lock) is None


# Setting it.


def test_the_holder_may_set_and_replace_the_acl(alice, bob, lock):
    acquired(alice.acquire(lock))
    for acl in (only(alice), only(alice, bob)):
        answer = success(alice.set_acl(lock, *acl["acquire"]))
        assert (answer["name"], answer["acl"]) == (lock, acl)
        assert acl_of(alice, lock) == acl


def test_set_acl_returns_the_acl_normalized_and_redacted(alice, bob, lock):
    acquired(alice.acquire(lock))
    answer = alice.set_acl(lock, f" user:{alice.name.upper()} ", f"token:{bob.token}")
    assert success(answer)["acl"] == {"acquire": ["token:[redacted]", f"user:{alice.name}"]}
    assert bob.token not in answer.raw.decode()


def test_a_holder_removed_from_the_acl_keeps_its_lease_but_cannot_acquire_again(alice, bob, lock):
    lease = acquired(alice.acquire(lock))
    success(alice.set_acl(lock, f"user:{bob.name}"))
    refused(alice.acquire(lock), 403, "forbidden")
    success(alice.renew(lock, lease["lease_id"]))
    assert success(alice.read_lock(lock))["status"] == "held"
    released(alice.release(lock, lease["lease_id"]))
    refused(alice.acquire(lock), 403, "forbidden")


def test_the_owner_of_the_session_that_holds_a_lock_may_set_its_acl(alice, lock, session):
    acquired(alice.acquire(lock, session_id=session, ephemeral=True))
    success(alice.set_acl(lock, f"user:{alice.name}"))


def test_set_acl_is_refused_for_an_unused_name(alice, lock):
    body = refused(alice.set_acl(lock, f"user:{alice.name}"), 404, "not_found", "Lock not found")
    assert body["details"] == f"Lock not found: {lock}"


def test_set_acl_is_refused_for_a_released_name(alice, lock):
    released(alice.release(lock, acquired(alice.acquire(lock))["lease_id"]))
    refused(alice.set_acl(lock, f"user:{alice.name}"), 404, "not_found", "Lock not found")


def test_set_acl_is_refused_for_a_lock_of_another_user(alice, bob, lock):
    acquired(alice.acquire(lock))
    refused(bob.set_acl(lock, f"user:{bob.name}"), 403, "forbidden")
    assert acl_of(alice, lock) is None


def test_set_acl_is_refused_for_an_ephemeral_lock_of_another_user(alice, bob, lock, session):
    acquired(alice.acquire(lock, session_id=session, ephemeral=True))
    refused(bob.set_acl(lock, f"user:{bob.name}"), 403, "forbidden")


# The admin.


def test_the_admin_may_set_an_acl_on_a_free_name(alice, bob, admin, lock):
    assert success(admin.set_acl(lock, f"user:{bob.name}"))["acl"] == only(bob)
    refused(alice.acquire(lock), 403, "forbidden")
    acquired(bob.acquire(lock))


def test_the_admin_may_replace_the_acl_of_a_lock_of_another_user(alice, bob, admin, lock):
    acquired(alice.acquire(lock, acl=only(alice)))
    success(admin.set_acl(lock, f"user:{bob.name}"))
    assert acl_of(alice, lock) == only(bob)


def test_the_admin_may_set_an_acl_on_a_reserved_name(admin, alice, election):
    reserved = f"__election/{election}"
    assert success(admin.set_acl(reserved, f"user:{alice.name}"))["name"] == reserved


def test_the_admin_cannot_set_an_acl_on_an_invalid_name(admin, alice):
    refused(admin.set_acl("a b", f"user:{alice.name}"), 400, "invalid_lock_name")


def test_an_acl_does_not_exclude_the_admin(alice, admin, lock):
    released(alice.release(lock, acquired(alice.acquire(lock, acl=only(alice)))["lease_id"]))
    released(admin.release(lock, acquired(admin.acquire(lock))["lease_id"]))


def test_the_admin_may_set_an_acl_without_itself(alice, admin, lock):
    released(admin.release(lock, acquired(admin.acquire(lock, acl=only(alice)))["lease_id"]))
    assert acl_of(alice, lock) == only(alice)


def test_an_acl_that_differs_from_the_stored_one_is_a_conflict_for_the_admin(alice, admin, lock):
    released(alice.release(lock, acquired(alice.acquire(lock, acl=only(alice)))["lease_id"]))
    refused(admin.acquire(lock, acl={"acquire": ["user:admin"]}), 409, "conflict")


# The shape of a list.


GOOD_ENTRIES = {
    "64-letter-user": "user:" + "u" * 64,
    "hyphens-and-digits": "user:A-1",
    "token-of-one": "token:x",
    "256-bytes": "token:" + "t" * 250,
    "256-bytes-trimmed": "   token:" + "t" * 250 + "   ",
}


@pytest.mark.parametrize("entry", GOOD_ENTRIES.values(), ids=GOOD_ENTRIES)
def test_a_valid_acl_entry_is_accepted(alice, lock, entry):
    acquired(alice.acquire(lock, acl={"acquire": [f"user:{alice.name}", entry]}))


BAD_ENTRIES = {
    "empty": "",
    "blank": "   ",
    "no-kind": "alice",
    "unknown-kind": "group:staff",
    "empty-user": "user:",
    "65-letter-user": "user:" + "u" * 65,
    "underscore": "user:a_b",
    "dot": "user:a.b",
    "space-inside": "user:a b",
    "unicode-user": "user:é",
    "empty-token": "token:",
    "257-bytes": "token:" + "t" * 251,
    "258-bytes-of-unicode": "token:" + "é" * 126,
}


@pytest.mark.parametrize("entry", BAD_ENTRIES.values(), ids=BAD_ENTRIES)
def test_a_malformed_acl_entry_is_refused(alice, lock, entry):
    refused(alice.acquire(lock, acl={"acquire": [f"user:{alice.name}", entry]}), 400, "invalid_input")
    assert success(alice.read_lock(lock))["status"] == "free"


def test_one_hundred_acl_entries_are_accepted(alice, lock):
    others = [f"user:u{number}" for number in range(99)]
    acquired(alice.acquire(lock, acl={"acquire": [f"user:{alice.name}", *others]}))


@pytest.mark.parametrize("count", [0, 101])
def test_acl_entries_are_counted_before_normalization(alice, lock, count):
    refused(alice.acquire(lock, acl={"acquire": [f"user:{alice.name}"] * count}), 400, "invalid_input")


SHAPES = {
    "string": "user:alice",
    "number": 1,
    "no-acquire": {},
    "null-acquire": {"acquire": None},
    "string-acquire": {"acquire": "user:alice"},
    "number-entry": {"acquire": [1]},
    "null-entry": {"acquire": [None]},
}


@pytest.mark.parametrize("acl", SHAPES.values(), ids=SHAPES)
def test_an_acl_of_another_type_is_refused(alice, lock, acl):
    malformed(alice.acquire(lock, acl=acl), 422)
    malformed(alice.put(lock_path(lock, "/acl"), {"acl": acl}), 422)


@pytest.mark.parametrize("body", [{}, {"acl": None}], ids=["absent", "null"])
def test_set_acl_requires_an_acl(alice, lock, body):
    malformed(alice.put(lock_path(lock, "/acl"), body), 422)


def test_set_acl_checks_body_credential_name_acl_and_permission_in_this_order(alice, anyone, lock):
    malformed(anyone.put(lock_path("a b", "/acl"), {}), 422)
    refused(anyone.set_acl("a b"), 401, "authentication_required")
    refused(alice.set_acl("a b"), 400, "invalid_lock_name")
    refused(alice.set_acl(lock), 400, "invalid_input")
    refused(alice.set_acl(lock, f"user:{alice.name}"), 404, "not_found", "Lock not found")
