"""A key with a prefix: every operation with every rule, and nothing outside the prefix is shown or changed."""

import pytest

from holdfast.core.prefix_rule import COVERED, NAMED, OWN, PUBLIC, WHOLE
from holdfast.operations.prefix_rules import PREFIX_RULES
from holdfast.operations.table import OPERATIONS
from holdfast.store.rows import ROW_TYPES
from tests.compat.octostore.wire import NOTHING
from tests.compat.orchestrion.account import Account, register
from tests.http.account_resources import OPERATORS, REQUESTS, Resources
from tests.http.job_client import fresh, job_path
from tests.http.replies import done

PREFIX = "team/"
SCOPED = [each for each in OPERATIONS if each.scope is not None and each.name not in OPERATORS]
LIMITED = [each for each in SCOPED if each.prefix_rule != OWN]
MCP = "mcp"
"""Has a rule, but is not in the table of operations."""


@pytest.fixture(scope="module")
def outside(server):
    """An account whose resources are all outside the prefix."""
    things = Resources(register(server.anyone))
    for request in REQUESTS.values():
        request(things)
    return things


@pytest.fixture(scope="module")
def limited(outside):
    """An administrator of that account whose key has a prefix."""
    return limited_key(outside.account)


def limited_key(account, *scopes, **fields):
    body = {"name": "limited", "scopes": scopes or ("admin", "jobs", "tasks", "read"), "prefix": PREFIX, **fields}
    made = done(account.post("/v1/keys", body), 201)
    return Account(account.port, {"Authorization": f"Bearer {made['apiKey']}"}, token=made["apiKey"], id=made["keyId"])


def ask(operation, caller, things):
    path, body = REQUESTS[operation.name](things)
    if body is NOTHING:
        return caller.send(operation.method, path)
    return caller.send_json(operation.method, path, body)


def rows(server, account):
    with server._app.engine.store.read() as reader:
        kept = [row for kind in ROW_TYPES for row in reader.rows_after(kind, account, "", 100)]
        return [row for row in kept if row.account == account]


# -- the table ---------------------------------------------------------------------------------------------------


def test_every_operation_has_a_rule_and_only_those_without_a_key_are_public():
    assert PREFIX_RULES.keys() - {each.name for each in OPERATIONS} == {MCP}
    for operation in OPERATIONS:
        assert operation.prefix_rule in {NAMED, COVERED, OWN, WHOLE, PUBLIC}
        assert (operation.prefix_rule == PUBLIC) == (operation.scope is None), operation.name


def test_every_path_with_a_name_has_the_rule_for_names():
    named = {each.name for each in OPERATIONS if each.path.startswith(("/v1/jobs/{", "/locks/"))}
    assert named == {name for name, rule in PREFIX_RULES.items() if rule == NAMED}


# -- HTTP: Holdfast's, Orchestrion's and OctoStore's routes ------------------------------------------------------


@pytest.mark.parametrize("operation", LIMITED, ids=lambda each: each.name)
def test_nothing_outside_the_prefix_is_shown_or_changed(server, outside, limited, operation):
    before = rows(server, outside.account.id)
    answer = ask(operation, limited, outside)
    assert rows(server, outside.account.id) == before
    if operation.prefix_rule in {NAMED, WHOLE}:
        assert answer.status == 403, str(answer)
        assert f"only names that begin with {PREFIX}" in answer.raw.decode()
        assert ("a key without a prefix" in answer.raw.decode()) == (operation.prefix_rule == WHOLE)
    path, body = REQUESTS[operation.name](outside)
    asked, told = f"{path} {body}", answer.raw.decode()
    things = {part for thing in outside.made for part in (thing.id, thing.proof) if part}
    assert not [part for part in things if part in told and part not in asked]


def test_a_name_within_the_prefix_is_open_to_the_same_key(limited):
    job = PREFIX + fresh()
    lease = done(limited.post(job_path(job, "/claim"), {"owner": "me"}))["lease_id"]
    assert [each["job_id"] for each in done(limited.get("/v1/jobs"))["jobs"]] == [job]
    assert {each["subject"] for each in done(limited.get("/v1/events"))["events"]} == {f"lease:{job}"}
    done(limited.post(job_path(job, "/release"), {"lease_id": lease}))
    name = PREFIX + fresh("lock")
    done(limited.acquire(name))
    done(limited.send_json("PUT", f"/locks/{name.replace('/', '%2F')}/acl", {"acl": {"acquire": ["user:x"]}}))


def test_keys_are_listed_and_read_only_within_the_prefix(outside):
    limited = limited_key(outside.account)
    inner = done(limited.post("/v1/keys", {"name": "inner", "scopes": ["jobs"], "prefix": f"{PREFIX}a/"}), 201)
    shown = {key["keyId"] for key in done(limited.get("/v1/keys"))["keys"]}
    assert {limited.id, inner["keyId"]} <= shown
    assert outside.key.id not in shown
    assert limited.get(f"/v1/keys/{outside.key.id}").status == 404
    assert done(limited.get(f"/v1/keys/{inner['keyId']}"))["prefix"] == f"{PREFIX}a/"


@pytest.mark.parametrize("operation", [each for each in SCOPED if each.prefix_rule == OWN], ids=lambda each: each.name)
def test_what_is_about_the_caller_itself_is_not_refused_for_its_prefix(server, operation):
    limited = limited_key(register(server.anyone))
    answer = ask(operation, limited, Resources(limited))
    assert answer.status < 300, str(answer)


@pytest.mark.parametrize("path", OPERATORS.values())
def test_the_operator_s_pages_are_refused_to_a_key_with_a_prefix(root, path):
    assert root.get(path).status == 200
    made = done(root.post("/v1/keys", {"name": "limited", "scopes": ["admin"], "prefix": PREFIX}), 201)
    answer = Account(root.port, {"Authorization": f"Bearer {made['apiKey']}"}).get(path)
    assert (answer.status, answer.json["code"]) == (403, "forbidden")
    assert "a key without a prefix" in answer.json["details"]


def test_only_an_administrator_without_a_prefix_counts_as_the_last_one(server):
    account = register(server.anyone)
    limited = limited_key(account)
    keys = done(account.get("/v1/keys"))["keys"]
    first = next(key["keyId"] for key in keys if key["keyId"] != limited.id)
    assert account.delete(f"/v1/keys/{first}").json["error"] == "last_admin_key"


@pytest.mark.parametrize(("scope", "is_warned"), [("tasks:work", True), ("admin", True), ("jobs", False)])
def test_creating_a_key_with_a_prefix_and_the_tasks_scope_returns_a_warning(outside, scope, is_warned):
    made = done(outside.account.post("/v1/keys", {"name": "x", "scopes": [scope], "prefix": PREFIX}), 201)
    assert ("may not use tasks" in str(made.get("warnings"))) == is_warned
    free = done(outside.account.post("/v1/keys", {"name": "x", "scopes": [scope]}), 201)
    assert "warnings" not in free


def test_the_covered_operations_are_those_whose_handlers_filter():
    """Each of these has its own check above or in `test_nothing_outside_the_prefix_is_shown_or_changed`."""
    assert {name for name, rule in PREFIX_RULES.items() if rule == COVERED} == {
        "reserve_files", "list_reservations", "check_files", "read_reservation", "heartbeat_reservation",
        "extend_reservation", "release_files", "force_release_reservation", "offer_reservation",
        "withdraw_reservation_offer", "claim_reservation",
        "claim_any_job", "heartbeat_leases", "list_claimed_jobs", "list_locks", "list_events",
        "list_keys", "create_key", "read_key", "rotate_key", "revoke_key",
    }  # fmt: skip
