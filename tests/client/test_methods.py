"""One method for every operation, with a parameter for every field."""

import inspect
import re

import pytest

import holdfast
from holdfast.client import request
from holdfast.client.methods.all import Methods
from holdfast.operations.table import OPERATIONS
from holdfast.transport.http.schemas.all_operations import OPERATION_SCHEMAS

EVERY = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)


class Recorder(Methods):
    """Records the calls of methods without sending them."""

    def call(self, operation, /, **arguments):
        return operation, arguments

    listen = call


@EVERY
def test_every_operation_has_a_method_that_calls_it_with_all_its_fields(operation):
    method = getattr(Recorder(), operation.name)
    parameters = inspect.signature(method).parameters
    name, arguments = method(**dict.fromkeys(parameters, "x"))
    shape = OPERATION_SCHEMAS[operation.name]
    fields = set((shape.body or shape.query).__struct_fields__) if shape.body or shape.query else set()
    fields |= {"session_secret"} if shape.takes_session_secret else set()
    path = set(re.findall(r"{(\w+)", operation.path))
    assert name == operation.name
    arguments = {request.FIELD_NAMES.get(name, {}).get(field, field): value for field, value in arguments.items()}
    assert set(arguments) | {"key"} == fields | path | {"key"}  # `key` is a second word for `unique_key`
    request.build_request(operation, method(**dict.fromkeys(parameters, "x"))[1])
    assert method.__doc__.startswith(operation.summary.removesuffix("."))


@pytest.mark.parametrize("client", [holdfast.Client, holdfast.AsyncClient])
def test_both_clients_have_the_same_methods(client):
    ours = {name for name in dir(Methods) if not name.startswith("_")}
    assert ours <= set(dir(client))


def test_the_five_job_methods_take_positional_arguments(client, name):
    claimed = client.claim_job(name, "agent-3", {"branch": "fix"}, ttl=60)
    assert (claimed["status"], claimed["ttl_seconds"]) == ("claimed", 60)
    assert client.claim_job(name, "agent-5", None)["status"] == "held"
    assert client.heartbeat_job(name, claimed["lease_id"])["status"] == "claimed"
    assert client.get_job_owner(name)["owner"] == "agent-3"
    assert [job["job_id"] for job in client.list_claimed_jobs(name)["jobs"]] == [name]
    assert client.release_job(name, claimed["lease_id"])["status"] == "released"
    assert client.list_claimed_jobs(prefix=name)["jobs"] == []
