"""A key that was rotated does its work until its grace period ends, and nothing about keys."""

from holdfast.operations.table import OPERATIONS
from tests.compat.octostore.wire import NOTHING
from tests.compat.orchestrion.account import register
from tests.http.account_resources import OPERATORS, REQUESTS, Resources
from tests.http.replies import done

ENDLESS = {"watch_lock"}
"""Answers that do not end by themselves."""
SCOPED = [each for each in OPERATIONS if each.scope is not None and each.name not in {*OPERATORS, *ENDLESS}]


def ask(operation, things):
    path, body = REQUESTS[operation.name](things)
    caller = things.account
    return caller.send(operation.method, path) if body is NOTHING else caller.send_json(operation.method, path, body)


def test_operations_under_the_key_routes_are_marked_as_about_keys():
    on_keys = {each.name for each in SCOPED if each.path.startswith(("/v1/keys", "/auth/"))}
    about_keys = {each.name for each in OPERATIONS if each.is_about_keys}
    assert about_keys == on_keys | {"link_dashboard", "delete_account"}


def test_a_rotated_key_does_its_work_and_nothing_about_keys(server):
    things = Resources(register(server.anyone))
    for request in REQUESTS.values():
        request(things)
    things.account.get("/v1/account")  # the server knows the key
    done(things.account.post("/v1/keys/rotate", {}))
    for operation in SCOPED:
        answer = ask(operation, things)
        assert (answer.status == 403) == operation.is_about_keys, f"{operation.name}: {answer}"
        assert ("this key was rotated" in answer.raw.decode()) == operation.is_about_keys
