"""OctoStore's `/auth`: registration with a name, namespaces, and rotation of tokens."""

import pytest

from holdfast.core.principal import is_well_formed
from tests.compat.octostore.expect import acquired, refused, success
from tests.compat.octostore.server import ADMIN_KEY, Server, bearer
from tests.compat.orchestrion.account import all_at_once
from tests.faults.program import Program
from tests.http.job_client import ROOT_KEY, fresh
from tests.http.replies import done

NEVER_KEPT = {"Cache-Control": "no-store", "Pragma": "no-cache"}


@pytest.fixture(scope="module")
def registration_servers(request, tmp_path_factory):
    """Servers with registration of users enabled, one for each store."""
    servers = {}

    def registration_server(store):
        if store not in servers:
            url = f"sqlite:///{tmp_path_factory.mktemp('users')}/x.db"
            if store == "postgres":
                url = request.getfixturevalue("new_postgres_database")()
            servers[store] = Program(url, LOCAL_REGISTRATION="true", ROOT_KEY=ROOT_KEY, ADMIN_KEY=ADMIN_KEY).start()
        return servers[store]

    yield registration_server
    for server in servers.values():
        server.close()


@pytest.fixture
def ctx(registration_servers, store):
    return registration_servers(store)


def sign_up(server, username=None, **fields):
    return server.anyone.post("/auth/register", {"username": username or fresh("user"), **fields})


def user(server, **fields):
    """Register a user."""
    body = success(sign_up(server, **fields))
    return bearer(server.port, body["token"], body["username"])


def rotated(answer):
    body = success(answer)
    assert {name: answer.header(name) for name in NEVER_KEPT} == NEVER_KEPT
    assert [*body] == ["token", "user_id", "github_username", "namespace", "agent_contract"]
    assert is_well_formed(body["token"])
    return body


# -- signing up --------------------------------------------------------------------------------------------------


def test_a_name_gets_a_token_that_works(ctx):
    answer = sign_up(ctx, "Ada_Lovelace-1", namespace="/team-1/")
    body = success(answer)
    assert {name: answer.header(name) for name in NEVER_KEPT} == NEVER_KEPT
    assert [*body] == ["token", "user_id", "username", "namespace", "agent_contract"]
    assert (body["username"], body["namespace"]) == ("Ada_Lovelace-1", "team-1")
    assert is_well_formed(body["token"])
    caller = bearer(ctx.port, body["token"])
    acquired(caller.acquire(f"team-1.{fresh('lock')}"))
    session = success(caller.open_session(), 201)["session_id"]
    assert success(caller.get(f"/sessions/{session}"))["user_id"] == body["user_id"]


def test_without_a_namespace_there_is_none(ctx):
    assert success(sign_up(ctx))["namespace"] is None


def test_a_name_is_taken_once_in_any_letter_case(ctx):
    name = fresh("Grace")
    first = success(sign_up(ctx, name))
    for again in (name, name.upper(), name.lower()):
        answer = sign_up(ctx, again)
        refused(answer, 409, "conflict")
        assert b"token" not in answer.raw.lower()
    acquired(bearer(ctx.port, first["token"]).acquire(fresh("lock")))


@pytest.mark.parametrize("name", ["admin", "Admin", "ADMIN", "root", "Root"])
def test_names_of_the_server_are_taken(ctx, name):
    refused(sign_up(ctx, name), 409, "conflict")


def test_of_many_who_want_one_name_at_once_one_gets_it(ctx):
    name = fresh("wanted")
    answers = all_at_once(10, lambda place: sign_up(ctx, name.upper() if place % 2 else name))
    assert sorted(answer.status for answer in answers) == [200] + [409] * 9


@pytest.mark.parametrize("name", ["", "   ", "x" * 65, "a\nb", "a\0b", "a\u200fb", "a b"])
def test_a_name_is_one_plain_word(ctx, name):
    assert sign_up(ctx, name or " ").status == 400


@pytest.mark.parametrize("namespace", ["a/b", "a b", "x" * 65, "ü"])
def test_a_namespace_is_one_plain_word(ctx, namespace):
    assert sign_up(ctx, namespace=namespace).status == 400


@pytest.mark.parametrize("body", [{}, {"username": 1}, {"username": None}, {"username": "x", "namespace": 1}])
def test_a_body_of_another_form_is_refused(ctx, body):
    assert ctx.anyone.post("/auth/register", body).status == 422


def test_a_namespace_holds_for_locks(ctx):
    caller, other = user(ctx, namespace="ns"), user(ctx)
    inside, outside = f"ns.{fresh('lock')}", fresh("lock")
    lease = acquired(caller.acquire(inside))["lease_id"]
    theirs = acquired(other.acquire(outside))["lease_id"]
    for answer in (
        caller.acquire(outside), caller.read_lock(outside), caller.renew(outside, theirs),
        caller.release(outside, theirs),
        caller.acquire("nsx.lock"), caller.get("/locks?prefix=n"), caller.get("/locks?prefix="),
    ):  # fmt: skip
        refused(answer, 403, "forbidden")
    listed = success(caller.get("/locks"))
    assert (listed["prefix"], [lock["name"] for lock in listed["locks"]]) == ("ns.", [inside])
    assert success(other.read_lock(inside))["status"] == "held"
    success(caller.renew(inside, lease))


def test_a_namespace_refuses_what_has_no_name(ctx):
    caller = user(ctx, namespace="ns")
    assert caller.get("/v1/tasks").status == 403
    assert caller.get("/webhooks").json == []
    refused(caller.send_json("PUT", f"/locks/{fresh('lock')}/acl", {"acl": {"acquire": ["user:x"]}}), 403, "forbidden")


def test_a_user_works_with_jobs_and_tasks_but_administers_nothing(ctx):
    caller = user(ctx)
    assert done(caller.get("/v1/account"))["key"]["scopes"] == ["jobs", "tasks"]
    assert caller.get("/v1/keys").status == 403


def test_registration_is_not_found_unless_enabled(server):
    answer = sign_up(server)
    assert (answer.status, answer.json["code"]) == (404, "not_found")
    assert b"token" not in answer.raw


# -- rotating ----------------------------------------------------------------------------------------------------


def test_a_new_token_takes_over_at_once_and_keeps_what_was_held(ctx):
    caller, lock = user(ctx, namespace="team"), f"team.{fresh('lock')}"
    lease = acquired(caller.acquire(lock))["lease_id"]
    session = success(caller.open_session(), 201)["session_id"]
    body = rotated(caller.post("/auth/token/rotate"))
    assert (body["github_username"], body["namespace"]) == (caller.name, "team")
    assert body["token"] != caller.token
    refused(caller.read_lock(lock), 401, "authentication_failed")
    refused(caller.post("/auth/token/rotate"), 401, "authentication_failed")
    new = bearer(ctx.port, body["token"])
    success(new.renew(lock, lease))
    assert success(new.get(f"/sessions/{session}"))["user_id"] == body["user_id"]


def test_the_admin_key_is_no_token(ctx):
    refused(ctx.admin.post("/auth/token/rotate"), 401, "authentication_required")
    refused(ctx.anyone.post("/auth/token/rotate"), 401, "authentication_required")
    refused(bearer(ctx.port, ADMIN_KEY).post("/auth/token/rotate"), 401, "authentication_failed")


def test_the_admin_key_beside_a_token_rotates_the_token(ctx):
    caller = user(ctx)
    body = rotated(caller.with_headers(X_Admin_Key=ADMIN_KEY).post("/auth/token/rotate"))
    assert body["github_username"] == caller.name
    refused(caller.get("/locks"), 401, "authentication_failed")
    success(bearer(ctx.port, body["token"]).get("/locks"))


def test_the_root_key_is_changed_in_the_settings(ctx):
    refused(bearer(ctx.port, ROOT_KEY).post("/auth/token/rotate"), 409, "conflict")


def test_an_account_s_key_may_be_rotated_here_too(server):
    made = success(server.anyone.post("/v1/keys/register"), 201)
    caller = bearer(server.port, made["apiKey"])
    body = rotated(caller.post("/auth/token/rotate"))
    assert body["github_username"] == "first"
    assert done(bearer(server.port, body["token"]).get("/v1/account"))["accountId"] == made["accountId"]


def test_a_rotated_static_token_stays_invalid_after_a_restart(tmp_path):
    server = Server(f"sqlite:///{tmp_path}/x.db").start()
    try:
        alice, bob, lock = server.user("alice-1"), server.user("bob-1"), fresh("lock")
        lease = acquired(alice.acquire(lock, ttl_seconds=300))["lease_id"]
        once = bearer(server.port, rotated(alice.post("/auth/token/rotate"))["token"])
        twice = bearer(server.port, rotated(once.post("/auth/token/rotate"))["token"])
        server.kill()
        server.start()
        for gone in (alice, once):
            refused(gone.get("/locks"), 401, "authentication_failed")
        success(twice.renew(lock, lease))
        success(bob.get("/locks"))
        server.stop()
        server.tokens = ",".join(entry for entry in server.tokens.split(",") if not entry.startswith("alice-1:"))
        server.start()
        refused(twice.get("/locks"), 401, "authentication_failed")
        success(bob.get("/locks"))
    finally:
        server.close()
