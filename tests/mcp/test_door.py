"""Who may speak at `/mcp`, and what the wire of each era looks like."""

import re
import subprocess
import sys

import pytest

from holdfast.settings import BadSettings, Settings, load
from holdfast.transport.origins import own_origins
from tests.http.in_process_app import REMOTE, InProcessApp
from tests.mcp.clients import KEY, NEW
from tests.mcp.raw import heading, new, old, post

LIST = old("tools/list")
WRONG_KEY = "nobody-knows-this-token-at-all"


@pytest.mark.parametrize("key", [None, WRONG_KEY])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_without_a_good_key_nobody_is_heard(server, key, method):
    said = post(server, LIST, key=key, method=method)
    assert said.status == 401
    assert said.headers["WWW-Authenticate"].startswith("Bearer")
    assert said.headers["Content-Type"] == "application/problem+json"
    assert said.json["agent_contract"]["next_actions"][0]["action"] == "authenticate"
    assert "tools" not in said.body


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "https://agents.example.evil.example"],
)
def test_a_page_from_elsewhere_is_refused(server, origin):
    said = post(server, LIST, Origin=origin)
    assert (said.status, said.json["error"]) == (403, "forbidden")


def test_a_rebound_name_does_not_help_a_page(server):
    evil = f"evil.example:{server.port}"
    assert post(server, LIST, Origin=f"http://{evil}", Host=evil).status == 403


@pytest.mark.parametrize(
    "origin",
    ["http://127.0.0.1:{port}", "http://LOCALHOST:{port}", "https://agents.example", "http://other.example:81", None],
)
def test_our_own_pages_those_in_the_settings_and_programs_are_heard(server, origin):
    origin = origin and origin.format(port=server.port)
    assert post(server, LIST, Origin=origin).status == 200


def test_origins_are_spelled_as_browsers_do():
    settings = Settings(host="10.0.0.1", port=443, public_url="https://Holdfast.example:443/team", store="memory:")
    assert own_origins(settings) == {"http://10.0.0.1:443", "https://holdfast.example"}
    assert "http://[::1]:7700" in own_origins(Settings(host="0.0.0.0"))


@pytest.mark.parametrize("origins", ["agents.example", "https://agents.example/path", "*"])
def test_origins_that_no_browser_sends_are_told_at_the_start(origins):
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
def test_there_are_no_sessions_and_no_standing_streams(server, method):
    said = post(server, LIST, method=method)
    assert (said.status, said.headers["Allow"]) == (405, "POST")


def test_answers_have_the_common_head(server):
    said = post(server, LIST)
    assert said.headers["X-Request-Id"].startswith("req_")
    assert "origin" in said.headers["Vary"]
    assert said.headers["Mcp-Session-Id"] is None


def test_the_old_era_begins_with_a_handshake(server):
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    result = post(server, old("initialize", **client)).json["result"]
    assert result["protocolVersion"] == "2025-06-18"
    assert result["serverInfo"]["name"] == "holdfast"
    assert {"tools", "resources", "prompts"} <= result["capabilities"].keys()
    assert not {"logging", "experimental"} & {name for name, value in result["capabilities"].items() if value}
    assert "agent_contract" in result["instructions"]
    assert len(post(server, LIST, MCP_Protocol_Version="2025-06-18").json["result"]["tools"]) == 15


def test_the_new_era_begins_with_anything(server):
    asked = new("server/discover")
    result = post(server, asked, **heading(asked)).json["result"]
    assert NEW in result["supportedVersions"]
    assert result["resultType"] == "complete"
    asked = new("tools/list")
    result = post(server, asked, **heading(asked)).json["result"]
    assert (result["cacheScope"], result["ttlMs"] > 0, len(result["tools"])) == ("public", True, 15)
    asked = new("resources/read", uri="holdfast://leases/nobody-has-it")
    result = post(server, asked, **heading(asked)).json["result"]
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
    asked = new("tools/list")
    said = post(server, asked, **(heading(asked) | change))
    assert said.status == status
    assert code in {None, said.json["error"]["code"]}


def test_spaces_around_a_header_are_no_part_of_it(server):
    asked = new("tools/call", name="list_tasks", arguments={})
    assert post(server, asked, **(heading(asked) | {"Mcp_Name": "  list_tasks \t"})).status == 200


def test_an_unknown_method_is_told_in_either_era(server):
    asked = new("tools/juggle")
    said = post(server, asked, **heading(asked))
    assert (said.status, said.json["error"]["code"]) == (404, -32601)
    assert post(server, old("tools/juggle")).json["error"]["code"] == -32601


def test_a_message_that_is_too_large_is_refused(server):
    assert post(server, old("tools/call", name="claim_job", arguments={"x": "x" * 2**21})).status == 413


def test_a_tool_call_has_the_request_id_of_its_answer(server):
    said = post(server, old("tools/call", name="get_job_owner", arguments={"jobId": ".."}))
    result = said.json["result"]
    assert result["isError"] is True
    assert result["structuredContent"]["request_id"] == said.headers["X-Request-Id"]


def test_requests_are_counted_as_what_they_are(server):
    def count(kind):
        text = server.admin.get("/metrics/prometheus").raw.decode()
        return sum(int(float(found)) for found in re.findall(rf'_requests_total{{[^}}]*"{kind}"[^}}]*}} (\S+)', text))

    before = count("mcp"), count("task")
    post(server, old("tools/call", name="list_tasks", arguments={}))
    assert (count("mcp"), count("task")) == (before[0] + 1, before[1] + 1)


def test_the_sdk_and_an_http_client_are_imported_when_somebody_first_needs_them():
    late = {"mcp", "pydantic", "httpx2"}
    program = f"import sys, holdfast.transport.cli.commands.serve as _; sys.exit(bool({late} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
