"""Documents for agents that know only the address: every operation, action and error code is described."""

import json
import re
from pathlib import Path

import jsonschema_rs
import pytest

from holdfast.core import errors
from holdfast.operations.operation import SYSTEM
from holdfast.operations.table import OPERATIONS, OPERATIONS_BY_NAME
from holdfast.settings import Settings
from holdfast.transport.documents import agent_entry, capabilities, guides, tool_manifest, vocabulary
from holdfast.transport.http.system.openapi import openapi
from holdfast.transport.mcp.endpoint import PATH as MCP_PATH
from tests.advice import starts

ROOT = Path(__file__).parents[3]
SOURCES = sorted((ROOT / "src/holdfast/transport").rglob("*.py"))
SETTINGS = Settings(store="memory:")
TEXTS = {"agents": guides.agents_md(SETTINGS), "capabilities": json.dumps(capabilities.capabilities(SETTINGS))}
PATHS = [operation.path for operation in OPERATIONS if (operation.family, operation.limit) == (SYSTEM, "discovery")]


def advised():
    """Every action code that the code may advise."""
    codes = set()
    for source in SOURCES:
        text = source.read_text()
        codes |= set(re.findall(r'\baction\(\s*"(\w+)"', text))
        codes |= set(re.findall(r'\b(?:check_state|stop_work|for_payment)\(\s*"(\w+)"', text))
    return codes


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_operation_is_described(text, operation):
    assert re.search(rf"[`\"]{operation.name}[`\"]", text)
    assert operation.path.replace("...", "") in text


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_action_and_every_error_code_is_described(text):
    codes = advised()
    assert {"claim_job", "retry_after_wait", "upgrade_plan", "stop_work"} <= codes
    for code in codes | {word.code for word in vocabulary.error_codes()}:
        assert re.search(rf"[`\"]{code}[`\"]", text), code


def test_every_error_names_actions_that_are_known():
    words = {word.code: word for word in vocabulary.error_codes()}
    assert {"invalid_request", "task_not_found", "quota_exceeded", "lease_lost", "storage_full"} <= words.keys()
    for word in words.values():
        assert word.actions
        assert set(word.actions) <= vocabulary.ACTIONS.keys()
        assert word.meaning


def test_every_operation_is_a_tool_whose_input_schema_is_valid():
    manifest = tool_manifest.tool_manifest(openapi())["tools"]
    assert [tool["name"] for tool in manifest] == [each.name for each in OPERATIONS if each.family != SYSTEM]
    for tool in manifest:
        jsonschema_rs.meta.validate(tool["inputSchema"])
        jsonschema_rs.validator_for(tool["inputSchema"])  # every reference leads somewhere
        assert tool["inputSchema"]["type"] == "object"
    create = next(tool for tool in manifest if tool["name"] == "create_task")["inputSchema"]
    assert jsonschema_rs.is_valid(create, {"type": "a", "payload": {}})
    assert not jsonschema_rs.is_valid(create, {"type": "a"})


def test_the_entry_document_leads_to_everything_else():
    document = agent_entry.agent_json(SETTINGS)
    assert {
        "name",
        "description",
        "capabilities_url",
        "tool_manifest_url",
        "openapi_schema_url",
        "registration_url",
        "documentation_url",
    } <= document.keys()
    paths = {operation.path for operation in OPERATIONS} | {MCP_PATH}
    for name, value in document.items():
        if name.endswith("_url"):
            assert value in paths, name


def test_the_card_lists_no_interface_that_does_not_exist():
    card = agent_entry.agent_card(SETTINGS)
    assert card["supportedInterfaces"] == []
    assert {skill["id"] for skill in card["skills"]} == {
        "own-a-job",
        "reserve-files",
        "work-a-queue",
        "survive-a-restart",
        "lead-a-group",
    }


def test_the_skill_has_the_head_that_loaders_ask_for():
    head, body = guides.skill_md(SETTINGS).removeprefix("---\n").split("\n---\n", 1)
    fields = dict(re.findall(r"^(\w+): (.+(?:\n  .+)*)", head, re.MULTILINE))
    assert fields["name"] == "holdfast"
    assert 1 <= len(fields["description"]) <= 1024
    assert len(body.splitlines()) < 500


def test_the_documents_follow_the_settings():
    settings = Settings(store="memory:", plan="free", task_retention_days=3)
    told = capabilities.capabilities(settings)
    assert told["billing"]["given"] == "free"
    assert {limit["class"]: limit["limit"] for limit in told["rate_limits"]}["create"] == 120
    assert told["retention"]["tasks_days"] == 7
    assert capabilities.capabilities(SETTINGS)["rate_limits"][0]["limit"] is None


@pytest.mark.parametrize("path", PATHS)
def test_every_document_is_public_and_cacheable(server, path):
    first = server.anyone.get(path)
    assert first.status == 200
    assert "max-age" in first.headers["cache-control"]
    again = server.anyone.send("GET", path, If_None_Match=first.headers["etag"])
    assert (again.status, again.raw) == (304, b"")
    assert server.anyone.send("GET", path, If_None_Match='"other"').raw == first.raw


def test_documents_are_refused_in_the_envelope_of_their_api():
    for name, path in (("capabilities", "/v1/capabilities"), ("agent_json", "/.well-known/agent.json")):
        start = starts.refusal(OPERATIONS_BY_NAME[name], path, errors.RateLimited)
        assert start.document.keys() == {"error", "message", "request_id", "agent_contract"}
        assert start.document["error"] == "rate_limited"
