"""Authentication with static tokens and the admin key."""

import pytest

from tests.compat.octostore.expect import ABSENT_LEASE, acquired, refused, released, success
from tests.compat.octostore.server import ADMIN_KEY, Server, bearer

LEASE = {"lease_id": ABSENT_LEASE}
BEARER_CALLS = {
    "list": lambda caller: caller.get("/locks"),
    "read": lambda caller: caller.get("/locks/name"),
    "acquire": lambda caller: caller.post("/locks/name/acquire", {}),
    "renew": lambda caller: caller.post("/locks/name/renew", LEASE),
    "release": lambda caller: caller.post("/locks/name/release", LEASE),
    "acl": lambda caller: caller.set_acl("name", "user:x"),
    "open session": lambda caller: caller.post("/sessions", {}),
    "see session": lambda caller: caller.get(f"/sessions/{ABSENT_LEASE}"),
    "end session": lambda caller: caller.delete(f"/sessions/{ABSENT_LEASE}"),
    "keep session": lambda caller: caller.keep_alive(ABSENT_LEASE),
}


@pytest.mark.parametrize("call", BEARER_CALLS.values(), ids=BEARER_CALLS)
def test_a_call_without_a_credential_is_refused(anyone, call):
    refused(call(anyone), 401, "authentication_required")


@pytest.mark.parametrize("call", BEARER_CALLS.values(), ids=BEARER_CALLS)
def test_a_call_with_an_unknown_token_is_refused(anyone, call):
    refused(call(bearer(anyone.port, "nobody-knows-this-token-at-all")), 401, "authentication_failed")


NO_CREDENTIALS = {
    "lower-case scheme": "bearer {token}",
    "upper-case scheme": "BEARER {token}",
    "another scheme": "Basic {token}",
    "token alone": "{token}",
    "scheme alone": "Bearer",
    "no space": "Bearer{token}",
    "tab for the space": "Bearer\t{token}",
    "empty": "",
    "not visible ascii": "Bearer {token}é",
}


@pytest.mark.parametrize("text", NO_CREDENTIALS.values(), ids=NO_CREDENTIALS)
def test_a_header_of_another_form_is_no_credential(alice, anyone, text):
    caller = anyone.with_headers(Authorization=text.format(token=alice.token))
    refused(caller.get("/locks"), 401, "authentication_required")


NEARLY = {
    "two spaces": "Bearer  {token}",
    "upper-case": "Bearer {upper}",
    "cut": "Bearer {cut}",
    "longer": "Bearer {token}x",
    "user and token": "Bearer {name}:{token}",
    "user name": "Bearer {name}",
}


@pytest.mark.parametrize("text", NEARLY.values(), ids=NEARLY)
def test_a_token_is_compared_exactly(alice, anyone, text):
    token = alice.token
    text = text.format(token=token, upper=token.upper(), cut=token[:-1], name=alice.name)
    refused(anyone.with_headers(Authorization=text).get("/locks"), 401, "authentication_failed")


# The admin key.


@pytest.mark.parametrize("header", ["X-Admin-Key", "X-OctoStore-Admin-Key", "x-admin-key"])
def test_the_admin_key_is_a_principal_on_ordinary_calls(anyone, header):
    success(anyone.with_headers(**{header: ADMIN_KEY}).get("/locks"))


def test_the_admin_can_hold_locks(admin, alice, lock):
    lease = acquired(admin.acquire(lock))
    refused(alice.release(lock, lease["lease_id"]), 400, "lease_not_current")
    released(admin.release(lock, lease["lease_id"]))


def test_the_admin_key_wins_over_a_bearer(alice, lock):
    both = alice.with_headers(X_Admin_Key=ADMIN_KEY)
    lease = acquired(both.acquire(lock))
    refused(alice.release(lock, lease["lease_id"]), 400, "lease_not_current")
    released(both.release(lock, lease["lease_id"]))


def test_the_admin_key_wins_over_an_unknown_bearer(admin):
    success(admin.with_headers(Authorization="Bearer nobody-knows-this-token-at-all").get("/locks"))


def test_of_two_admin_headers_only_the_first_counts(anyone):
    refused(
        anyone.with_headers(X_Admin_Key="wrong", X_OctoStore_Admin_Key=ADMIN_KEY).get("/locks"),
        401,
        "authentication_required",
    )
    success(anyone.with_headers(X_Admin_Key=ADMIN_KEY, X_OctoStore_Admin_Key="wrong").get("/locks"))


@pytest.mark.parametrize("key", ["wrong", "", ADMIN_KEY.upper(), ADMIN_KEY[:-1], ADMIN_KEY + "x"])
def test_a_wrong_admin_key_is_no_credential(anyone, key):
    refused(anyone.with_headers(X_Admin_Key=key).get("/locks"), 401, "authentication_required")
    refused(anyone.with_headers(X_OctoStore_Admin_Key=key).get("/locks"), 401, "authentication_required")


def test_a_wrong_admin_key_falls_through_to_the_bearer(alice, lock):
    lease = acquired(alice.with_headers(X_Admin_Key="wrong").acquire(lock))
    released(alice.release(lock, lease["lease_id"]))


def test_a_wrong_admin_key_with_an_unknown_bearer_fails_authentication(anyone):
    caller = anyone.with_headers(X_Admin_Key="wrong", Authorization="Bearer nobody-knows-this-token-at-all")
    refused(caller.get("/locks"), 401, "authentication_failed")


@pytest.mark.parametrize("token", [ADMIN_KEY, f"admin:{ADMIN_KEY}"], ids=["key", "admin-and-key"])
def test_the_admin_key_is_no_bearer_token(anyone, token):
    refused(bearer(anyone.port, token).get("/locks"), 401, "authentication_failed")


# The static list.

LISTED = """
# people
  spaced : spaced-token-0123456789abcdef  , colon:colon:token:0123456789abcdef
#commented:commented-token-0123456789

,,bare-token-0123456789abcdef,
upper:Upper-Token-0123456789ABCDEF
"""


@pytest.fixture(scope="module")
def listed(new_sqlite_url):
    """A server whose token list has every accepted notation; one store is enough, because none is used."""
    server = Server(new_sqlite_url(), tokens=LISTED).start()
    yield server
    server.close()


@pytest.mark.parametrize(
    "token",
    [
        "spaced-token-0123456789abcdef",
        "colon:token:0123456789abcdef",
        "bare-token-0123456789abcdef",
        "Upper-Token-0123456789ABCDEF",
    ],
)
def test_entries_of_the_token_list_are_parsed_leniently(listed, token):
    success(bearer(listed.port, token).get("/locks"))


@pytest.mark.parametrize("token", ["commented-token-0123456789", "#commented:commented-token-0123456789", "spaced"])
def test_malformed_entries_of_the_token_list_grant_nothing(listed, token):
    refused(bearer(listed.port, token).get("/locks"), 401, "authentication_failed")


GOOD = "somebody:somebodys-token-0123456789"
BAD_LISTS = {
    "no entries": "  , \n# only a remark",
    "empty": "",
    "empty user": f"{GOOD},:nobodys-token-0123456789abc",
    "empty token": f"{GOOD},nobody:",
    "space in a token": f"{GOOD},nobody:nobodys token 0123456789abc",
    "same user twice": f"{GOOD},SomeBody:another-token-0123456789abc",
    "same token twice": f"{GOOD},another:{GOOD.partition(':')[2]}",
    "the admin key": f"{GOOD},another:{ADMIN_KEY}",
    "short token": f"{GOOD},another:only-twenty-3-characters"[:-1],
}


@pytest.fixture(scope="module")
def attempts(new_sqlite_url):
    """One server for each malformed list, all started at once to save time."""
    servers = {kind: Server(new_sqlite_url(), tokens=tokens) for kind, tokens in BAD_LISTS.items()}
    for server in servers.values():
        server.launch()
    yield servers
    for server in servers.values():
        server.close()


@pytest.mark.parametrize("kind", BAD_LISTS)
def test_a_malformed_token_list_is_a_startup_error(attempts, kind):
    assert attempts[kind].process.wait(20) != 0
    assert attempts[kind].log().strip()
