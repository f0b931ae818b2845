"""Registration of accounts: closed on a self-hosted server, where an agent without a key is told what to use."""

import re

import pytest

from holdfast.core.plan import FREE
from holdfast.settings import Settings, load
from holdfast.store.memory.store import MemoryStore
from holdfast.transport.documents import agent_entry, capabilities, guides
from tests.http.in_process_app import VARIABLES, InProcessServer

CLOSED = {name: value for name, value in VARIABLES.items() if name != "HOLDFAST_REGISTRATION"}
PATH = "/v1/keys/register"


@pytest.fixture(scope="module")
def store():
    return MemoryStore()


@pytest.fixture(scope="module")
def closed(store):
    server = InProcessServer(store, CLOSED)
    yield server
    server.close()


def first_action(answer):
    return answer.json["agent_contract"]["next_actions"][0]


@pytest.mark.parametrize(
    ("plan", "setting", "is_open"),
    [
        ("self-hosted", None, False),
        ("self-hosted", "closed", False),
        ("self-hosted", "open", True),
        (FREE, None, True),
        (FREE, "closed", False),
    ],
)
def test_registration_is_open_by_setting_and_else_by_plan(plan, setting, is_open):
    given = {"HOLDFAST_PLAN": plan} | ({} if setting is None else {"HOLDFAST_REGISTRATION": setting})
    settings, _ = load({"store": "memory:"}, given)
    assert settings.is_registration_open is is_open
    entry, state = agent_entry.agent_json(settings), "open" if is_open else "closed"
    assert (entry["registration_url"], entry["registration"]) == (PATH, state)
    assert capabilities.capabilities(settings)["auth"]["registration"]["state"] == state


def test_a_closed_server_creates_no_account(closed, store):
    before = dict(store.rows)
    for body in ((), ({},), ({"name": "me"},), ([],)):
        refused = closed.anyone.post(PATH, *body)
        assert (refused.status, refused.json["error"]) == (403, "registration_closed")
        assert refused.json["agent_contract"]["retryable"] is False
        assert "endpoint" not in first_action(refused)
    assert store.rows == before


def test_a_caller_without_a_key_is_told_what_to_use_and_never_to_register(closed):
    refusals = [
        closed.anyone.post("/v1/tasks", {"type": "a", "payload": {}}),
        closed.anyone.post("/v1/jobs/a/claim", {"owner": "me"}),
        closed.anyone.get("/locks"),
        closed.anyone.get(PATH),
        closed.anyone.get("/"),
    ]
    for answer in refusals:
        step = first_action(answer)
        assert (step["action"], step["recommended"], "endpoint" in step) == ("authenticate", True, False)
        assert "ask the operator" in step["description"]
        assert "Do not register" in step["description"]


def test_the_guides_of_a_closed_server_name_no_way_to_register():
    for document in (guides.agents_md, guides.skill_md, guides.llms_txt):
        text = document(Settings())
        how_to = text.split("## Every operation")[0]
        assert "ask the operator" in how_to
        assert "Do not register" in re.sub(r"\s+", " ", how_to)
        assert PATH not in how_to
    assert PATH in guides.skill_md(Settings(registration="open"))


def test_octostores_registration_has_a_switch_of_its_own():
    variables = {name: value for name, value in CLOSED.items() if name != "HOLDFAST_STATIC_TOKENS"}
    server = InProcessServer(variables=variables | {"HOLDFAST_LOCAL_REGISTRATION": "true"})
    try:
        assert server.anyone.post("/auth/register", {"username": "ann"}).status == 200
        assert server.anyone.post(PATH).status == 403
    finally:
        server.close()
