"""Who may acquire: a list that sticks to a name, shown normalised and never with a token in it."""

import pytest

from tests.compat.octostore.expect import acquired, held, malformed, refused, released, success
from tests.compat.octostore.wire import lock_path


def only(*callers):
    return {"acquire": [f"user:{caller.name}" for caller in callers]}


def acl_of(caller, lock):
    return success(caller.look(lock)).get("acl")


def test_an_acl_asked_for_with_a_new_lease_sticks(alice, bob, lock):
    lease = acquired(alice.acquire(lock, acl=only(alice)))
    assert acl_of(bob, lock) == only(alice)
    released(alice.release(lock, lease["lease_id"]))
    assert success(bob.look(lock))["status"] == "free"
    assert acl_of(bob, lock) == only(alice)
    refused(bob.acquire(lock), 403, "forbidden")
    acquired(alice.acquire(lock))


def test_an_acl_gates_a_held_lock_too(alice, bob, lock):
    acquired(alice.acquire(lock, acl=only(alice)))
    refused(bob.acquire(lock), 403, "forbidden")


def test_everybody_on_the_list_may_contend(alice, bob, lock):
    acquired(alice.acquire(lock, acl=only(alice, bob)))
    held(bob.acquire(lock))


def test_user_names_are_compared_without_case(alice, bob, lock):
    lease = acquired(alice.acquire(lock, acl={"acquire": [f"user:{alice.name.upper()}", f"user:{bob.name.title()}"]}))
    assert acl_of(alice, lock) == only(alice, bob)
    released(alice.release(lock, lease["lease_id"]))
    acquired(bob.acquire(lock))


def test_a_list_is_trimmed_lower_cased_sorted_and_without_twins(alice, bob, lock):
    untidy = [f"  user:{bob.name} ", f"user:{alice.name.upper()}", f"\tuser:{alice.name}\n", f"user:{bob.name}"]
    acquired(alice.acquire(lock, acl={"acquire": untidy}))
    assert acl_of(alice, lock) == only(alice, bob)


def test_a_token_may_stand_for_its_bearer_and_is_never_shown(alice, bob, lock):
    entries = [f"token:{bob.token}", f"user:{alice.name}"]
    lease = acquired(alice.acquire(lock, acl={"acquire": entries}))
    for caller in (alice, bob):
        assert acl_of(caller, lock) == {"acquire": ["token:[redacted]", f"user:{alice.name}"]}
        assert bob.token not in caller.look(lock).raw.decode()
    released(alice.release(lock, lease["lease_id"]))
    acquired(bob.acquire(lock))


def test_each_token_on_the_list_is_shown_as_one_redacted_entry(alice, lock):
    entries = [f"user:{alice.name}", "token:one", "token:two", "token:two"]
    acquired(alice.acquire(lock, acl={"acquire": entries}))
    assert acl_of(alice, lock) == {"acquire": ["token:[redacted]", "token:[redacted]", f"user:{alice.name}"]}


def test_a_token_that_is_not_the_callers_lets_nobody_in(alice, bob, lock):
    entries = [f"token:{bob.token.upper()}", f"user:{alice.name}"]
    acquired(alice.acquire(lock, acl={"acquire": entries}))
    refused(bob.acquire(lock), 403, "forbidden")


def test_nobody_can_install_a_list_without_himself(alice, bob, lock):
    refused(alice.acquire(lock, acl=only(bob)), 403, "forbidden")
    assert acl_of(alice, lock) is None
    acquired(alice.acquire(lock))


def test_another_list_than_the_sticky_one_is_a_conflict(alice, bob, lock):
    acquired(alice.acquire(lock, acl=only(alice)))
    refused(alice.acquire(lock, acl=only(alice, bob)), 409, "conflict")
    assert acl_of(alice, lock) == only(alice)


def test_the_same_list_written_otherwise_is_no_conflict(alice, bob, lock):
    acquired(alice.acquire(lock, acl=only(alice, bob)))
    acquired(alice.acquire(lock, acl={"acquire": [f" user:{bob.name.upper()}", *only(alice, bob)["acquire"]]}))


def test_acquiring_again_installs_a_list_where_there_is_none(alice, lock):
    acquired(alice.acquire(lock))
    acquired(alice.acquire(lock, acl=only(alice)))
    assert acl_of(alice, lock) == only(alice)


def test_a_list_asked_for_in_vain_is_not_installed(alice, bob, lock):
    acquired(alice.acquire(lock))
    held(bob.acquire(lock, acl=only(bob)))
    assert acl_of(alice, lock) is None


# Setting it.


def test_the_holder_may_set_and_replace_the_list(alice, bob, lock):
    acquired(alice.acquire(lock))
    for acl in (only(alice), only(alice, bob)):
        answer = success(alice.set_acl(lock, *acl["acquire"]))
        assert (answer["name"], answer["acl"]) == (lock, acl)
        assert acl_of(alice, lock) == acl


def test_the_answer_to_setting_shows_the_list_tidied_and_redacted(alice, bob, lock):
    acquired(alice.acquire(lock))
    answer = alice.set_acl(lock, f" user:{alice.name.upper()} ", f"token:{bob.token}")
    assert success(answer)["acl"] == {"acquire": ["token:[redacted]", f"user:{alice.name}"]}
    assert bob.token not in answer.raw.decode()


def test_a_holder_off_the_list_keeps_the_lease_but_cannot_acquire_again(alice, bob, lock):
    lease = acquired(alice.acquire(lock))
    success(alice.set_acl(lock, f"user:{bob.name}"))
    refused(alice.acquire(lock), 403, "forbidden")
    success(alice.renew(lock, lease["lease_id"]))
    assert success(alice.look(lock))["status"] == "held"
    released(alice.release(lock, lease["lease_id"]))
    refused(alice.acquire(lock), 403, "forbidden")


def test_the_owner_of_the_session_that_holds_a_lock_may_set_its_list(alice, lock, session):
    acquired(alice.acquire(lock, session_id=session, ephemeral=True))
    success(alice.set_acl(lock, f"user:{alice.name}"))


def test_a_name_nobody_holds_has_no_list_to_set(alice, lock):
    body = refused(alice.set_acl(lock, f"user:{alice.name}"), 404, "not_found", "Lock not found")
    assert body["details"] == f"Lock not found: {lock}"


def test_a_released_name_has_no_list_to_set(alice, lock):
    released(alice.release(lock, acquired(alice.acquire(lock))["lease_id"]))
    refused(alice.set_acl(lock, f"user:{alice.name}"), 404, "not_found", "Lock not found")


def test_somebody_elses_list_is_not_to_be_set(alice, bob, lock):
    acquired(alice.acquire(lock))
    refused(bob.set_acl(lock, f"user:{bob.name}"), 403, "forbidden")
    assert acl_of(alice, lock) is None


def test_somebody_elses_ephemeral_locks_list_is_not_to_be_set(alice, bob, lock, session):
    acquired(alice.acquire(lock, session_id=session, ephemeral=True))
    refused(bob.set_acl(lock, f"user:{bob.name}"), 403, "forbidden")


# The admin.


def test_the_admin_sets_a_list_on_a_free_name(alice, bob, admin, lock):
    assert success(admin.set_acl(lock, f"user:{bob.name}"))["acl"] == only(bob)
    refused(alice.acquire(lock), 403, "forbidden")
    acquired(bob.acquire(lock))


def test_the_admin_replaces_the_list_of_somebody_elses_lock(alice, bob, admin, lock):
    acquired(alice.acquire(lock, acl=only(alice)))
    success(admin.set_acl(lock, f"user:{bob.name}"))
    assert acl_of(alice, lock) == only(bob)


def test_the_admin_sets_a_list_even_on_a_reserved_name(admin, alice, room):
    reserved = f"__election/{room}"
    assert success(admin.set_acl(reserved, f"user:{alice.name}"))["name"] == reserved


def test_the_admin_sets_no_list_on_a_name_outside_the_grammar(admin, alice):
    refused(admin.set_acl("a b", f"user:{alice.name}"), 400, "invalid_lock_name")


def test_no_list_keeps_the_admin_out(alice, admin, lock):
    released(alice.release(lock, acquired(alice.acquire(lock, acl=only(alice)))["lease_id"]))
    released(admin.release(lock, acquired(admin.acquire(lock))["lease_id"]))


def test_the_admin_may_install_a_list_without_himself(alice, admin, lock):
    released(admin.release(lock, acquired(admin.acquire(lock, acl=only(alice)))["lease_id"]))
    assert acl_of(alice, lock) == only(alice)


def test_another_list_than_the_sticky_one_is_a_conflict_for_the_admin_too(alice, admin, lock):
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
def test_a_well_formed_entry_is_welcome(alice, lock, entry):
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
def test_a_malformed_entry_is_refused(alice, lock, entry):
    refused(alice.acquire(lock, acl={"acquire": [f"user:{alice.name}", entry]}), 400, "invalid_input")
    assert success(alice.look(lock))["status"] == "free"


def test_a_hundred_entries_are_welcome(alice, lock):
    others = [f"user:u{number}" for number in range(99)]
    acquired(alice.acquire(lock, acl={"acquire": [f"user:{alice.name}", *others]}))


@pytest.mark.parametrize("count", [0, 101])
def test_entries_are_counted_as_sent(alice, lock, count):
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
def test_a_list_of_another_shape_is_no_request(alice, lock, acl):
    malformed(alice.acquire(lock, acl=acl), 422)
    malformed(alice.put(lock_path(lock, "/acl"), {"acl": acl}), 422)


@pytest.mark.parametrize("body", [{}, {"acl": None}], ids=["absent", "null"])
def test_setting_needs_a_list(alice, lock, body):
    malformed(alice.put(lock_path(lock, "/acl"), body), 422)


def test_setting_checks_body_credential_name_list_and_authority_in_this_order(alice, anyone, lock):
    malformed(anyone.put(lock_path("a b", "/acl"), {}), 422)
    refused(anyone.set_acl("a b"), 401, "authentication_required")
    refused(alice.set_acl("a b"), 400, "invalid_lock_name")
    refused(alice.set_acl(lock), 400, "invalid_input")
    refused(alice.set_acl(lock, f"user:{alice.name}"), 404, "not_found", "Lock not found")
