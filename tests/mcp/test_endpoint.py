"""`/mcp` over HTTP: authentication, Origin check, and the messages of both protocol versions."""

import re
import subprocess
import sys

import pytest

from holdfast.settings import BadSettings, Settings, load
from holdfast.transport.mcp.tools import DEFAULT_TOOLS
from holdfast.transport.origins import own_origins
from tests.http.in_process_app import REMOTE, InProcessApp
from tests.mcp.clients import KEY, NEW
from tests.mcp.raw_requests import headers_of, new, old, post

LIST = old("tools/list")
WRONG_KEY = "nobody-knows-this-token-at-all"


@pytest.mark.parametrize("key", [None, WRONG_KEY])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_request_without_a_valid_key_is_refused(server, key, method):
    response = post(server, LIST, key=key, method=method)
    assert response.status == 401
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.json["agent_contract"]["next_actions"][0]["action"] == "authenticate"
    assert "tools" not in response.body


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "https://agents.example.evil.example"],
)
def test_an_unknown_origin_is_refused(server, origin):
    response = post(server, LIST, Origin=origin)
    assert (response.status, response.json["error"]) == (403, "forbidden")


def test_an_unknown_origin_is_refused_even_if_the_host_equals_it(server):
    evil = f"evil.example:{server.port}"
    assert post(server, LIST, Origin=f"http://{evil}", Host=evil).status == 403


@pytest.mark.parametrize(
    "origin",
    ["http://127.0.0.1:{port}", "http://LOCALHOST:{port}", "https://agents.example", "http://other.example:81", None],
)
def test_own_origins_configured_origins_and_no_origin_are_accepted(server, origin):
    origin = origin and origin.format(port=server.port)
    assert post(server, LIST, Origin=origin).status == 200


def test_origins_are_normalized_as_browsers_do():
    settings = Settings(host="10.0.0.1", port=443, public_url="https://Holdfast.example:443/team", store="memory:")
    assert own_origins(settings) == {"http://10.0.0.1:443", "https://holdfast.example"}
    assert "http://[::1]:7700" in own_origins(Settings(host="0.0.0.0"))


@pytest.mark.parametrize("origins", ["agents.example", "https://agents.example/path", "*"])
def test_malformed_origins_in_the_settings_are_refused(origins):
    with pytest.raises(BadSettings, match="ALLOWED_ORIGINS"):
        load({}, {"HOLDFAST_ALLOWED_ORIGINS": origins})


def test_a_key_over_plain_http_from_another_machine_is_refused_first():
    app = InProcessApp(Settings(root_key=KEY, store="memory:"))
    try:
        answer = app.ask("/mcp", {"Authorization": f"Bearer {KEY}", "Origin": "http://evil.example"}, peer=REMOTE)
        assert (answer.status, answer.json["error"]) == (403, "insecure_transport")
    finally:
        app.close()


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_only_post_is_allowed(server, method):
    response = post(server, LIST, method=method)
    assert (response.status, response.headers["Allow"]) == (405, "POST")


def test_responses_have_the_common_headers(server):
    response = post(server, LIST)
    assert response.headers["X-Request-Id"].startswith("req_")
    assert "origin" in response.headers["Vary"]
    assert response.headers["Mcp-Session-Id"] is None


def test_the_old_protocol_starts_with_initialize(server):
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    result = post(server, old("initialize", **client)).json["result"]
    assert result["protocolVersion"] == "2025-06-18"
    assert result["serverInfo"]["name"] == "holdfast"
    assert {"tools", "resources", "prompts"} <= result["capabilities"].keys()
    assert not {"logging", "experimental"} & {name for name, value in result["capabilities"].items() if value}
    assert "agent_contract" in result["instructions"]
    assert len(post(server, LIST, MCP_Protocol_Version="2025-06-18").json["result"]["tools"]) == len(DEFAULT_TOOLS)


def test_the_new_protocol_needs_no_handshake(server):
    message = new("server/discover")
    result = post(server, message, **headers_of(message)).json["result"]
    assert NEW in result["supportedVersions"]
    assert result["resultType"] == "complete"
    message = new("tools/list")
    result = post(server, message, **headers_of(message)).json["result"]
    assert (result["cacheScope"], result["ttlMs"] > 0, len(result["tools"])) == ("public", True, len(DEFAULT_TOOLS))
    message = new("resources/read", uri="holdfast://leases/nobody-has-it")
    result = post(server, message, **headers_of(message)).json["result"]
    assert result["cacheScope"] == "private"


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"Mcp_Method": "tools/call"}, 400, -32020),
        ({"MCP_Protocol_Version": "2031-01-01"}, 400, None),
        ({"Mcp_Method": None}, 400, -32020),
    ],
)
def test_headers_that_differ_from_the_message_are_refused(server, change, status, code):
    message = new("tools/list")
    response = post(server, message, **(headers_of(message) | change))
    assert response.status == status
    assert code in {None, response.json["error"]["code"]}


def test_spaces_around_a_header_value_are_ignored(server):
    message = new("tools/call", name="list_tasks", arguments={})
    assert post(server, message, **(headers_of(message) | {"Mcp_Name": "  list_tasks \t"})).status == 200


def test_an_unknown_method_is_an_error_in_both_protocols(server):
    message = new("tools/juggle")
    response = post(server, message, **headers_of(message))
    assert (response.status, response.json["error"]["code"]) == (404, -32601)
    assert post(server, old("tools/juggle")).json["error"]["code"] == -32601


def test_a_message_that_is_too_large_is_refused(server):
    assert post(server, old("tools/call", name="claim_job", arguments={"x": "x" * 2**21})).status == 413


def test_a_tool_result_has_the_request_id_of_the_response(server):
    response = post(server, old("tools/call", name="get_job_owner", arguments={"jobId": ".."}))
    result = response.json["result"]
    assert result["isError"] is True
    assert result["structuredContent"]["request_id"] == response.headers["X-Request-Id"]


def test_a_tool_call_counts_as_mcp_and_as_its_operation(server):
    def count(kind):
        text = server.admin.get("/metrics/prometheus").raw.decode()
        return sum(int(float(found)) for found in re.findall(rf'_requests_total{{[^}}]*"{kind}"[^}}]*}} (\S+)', text))

    before = count("mcp"), count("task")
    post(server, old("tools/call", name="list_tasks", arguments={}))
    assert (count("mcp"), count("task")) == (before[0] + 1, before[1] + 1)


def test_the_sdk_and_the_http_client_are_not_imported_at_server_start():
    late = {"mcp", "pydantic", "httpx2"}
    program = f"import sys, holdfast.transport.cli.commands.serve as _; sys.exit(bool({late} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
