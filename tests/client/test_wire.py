"""Requests are built from the table of operations, and match the server's OpenAPI document."""

import pytest

from holdfast.client import request
from holdfast.client.errors import Invalid
from holdfast.operations.table import OPERATIONS
from holdfast.transport.http.routing import Router
from holdfast.transport.http.schemas.all_operations import OPERATION_SCHEMAS


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_requests_carry_an_idempotency_key_where_the_server_accepts_one(operation):
    assert request.accepts_idempotency_key(operation) == OPERATION_SCHEMAS[operation.name].takes_idempotency_key


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_request_reaches_its_operation(operation):
    arguments = {name: "a/b c" for name in ("job_id", "name", "id", "type") if f"{{{name}" in operation.path}
    made = request.build_request(operation, arguments)
    found, parameter = Router().find(made.method, made.target.partition("?")[0].encode())
    assert found == operation
    assert not arguments or parameter == "a/b c"


@pytest.mark.parametrize("job_id", ["", ".", ".."])
def test_an_id_that_would_change_the_path_is_refused(job_id):
    with pytest.raises(Invalid):
        request.build_request(request.find_operation("get_job_owner"), {"job_id": job_id})


def test_query_parameters_have_the_names_of_the_list_routes():
    made = request.build_request(
        request.find_operation("list_tasks"), {"session_id": "s", "resolved": True, "limit": 3, "type": None}
    )
    assert made.target == "/v1/tasks?sessionId=s&resolved=true&limit=3"


def test_every_filter_of_a_list_is_a_parameter():
    for name, shape in OPERATION_SCHEMAS.items():
        if shape.query is not None:
            fields = dict.fromkeys(shape.query.__struct_fields__, "x")
            parameters = {key: "x" for key in ("id", "job_id") if f"{{{key}" in request.find_operation(name).path}
            made = request.build_request(request.find_operation(name), parameters | fields)
            sent = {pair.partition("=")[0] for pair in made.target.partition("?")[2].split("&")}
            assert sent == set(shape.query.__struct_encode_fields__), name
