"""Advice that is obeyed word for word leads on: never in a circle, to a dead end, to nothing, or to unasked work."""

import re
from pathlib import Path

import pytest

from holdfast.operations.operation import OCTOSTORE
from holdfast.operations.table import OPERATIONS_BY_NAME as BY_NAME
from holdfast.transport.advice.orchestrion import FIXED
from tests.advice import starts
from tests.advice.survey import page, survey
from tests.advice.walker import WAYS, BadAdvice, Walker
from tests.compat.orchestrion.account import register
from tests.http.account_resources import Resources
from tests.http.in_process_app import InProcessServer
from tests.proof_size import FULL
from tests.support import make_store

PAGE = Path(__file__).parents[2] / "docs/reference/advice.md"
ERRORS = PAGE.with_name("errors.md")
STORES = ("memory", "sqlite", "postgres") if FULL else ("memory",)


@pytest.fixture
def server(request, tmp_path):
    new_database = request.getfixturevalue("new_postgres_database") if request.param == "postgres" else str
    store = make_store(request.param, tmp_path, new_database)
    server = InProcessServer(store)
    yield server
    server.close()
    store.close()


@pytest.mark.parametrize("server", STORES, indirect=True)
def test_every_walk_ends_well_and_as_the_page_of_the_table_says(server):
    rows = list(survey(server))
    assert page(rows) == PAGE.read_text()
    assert len({row.name for row in rows if row.table == "refusals"}) > 50
    assert {row.way for row in rows} == {way.name for way in WAYS}


@pytest.mark.parametrize("server", ["memory"], indirect=True)
def test_the_capabilities_say_of_every_code_what_its_answers_advise(server):
    listed = {code["code"]: code for code in server.anyone.get("/v1/capabilities").json["error_codes"]}
    refusals = [
        start
        for start in starts.of_refusals(Resources(register(server.anyone)))
        if start.operation.error_family != OCTOSTORE
    ]
    assert {start.document["error"] for start in refusals} <= listed.keys()
    for start in refusals:
        code, contract = listed[start.document["error"]], start.document["agent_contract"]
        advised = [(each["retryable"], each["actions"][0]) for each in (code, code.get("elsewhere")) if each]
        first = contract["retryable"], contract["next_actions"][0]["action"]
        reads_again = code["code"].startswith("cursor_") and first[1] in {start.operation.name, "fix_request"}
        names_no_task = code["code"] in FIXED and not start.subject
        assert first in advised or reads_again or names_no_task, start
    page = ERRORS.read_text().partition("## OctoStore's routes")[0]
    assert listed.keys() == set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) | {"method_not_allowed"}
    assert "`method_not_allowed`" in page


@pytest.mark.parametrize("server", ["memory"], indirect=True)
def test_the_walk_finds_each_kind_of_bad_advice(server):
    """Advice as it was: each of these answers led an agent astray."""
    account = register(server.anyone)
    tools = {tool["name"]: tool for tool in server.anyone.get("/v1/tool").json["tools"]}

    def found(operation, step):
        document = {"agent_contract": {"next_actions": [{"available": True, "recommended": True, **step}]}}
        with pytest.raises(BadAdvice) as problem:
            Walker(account, tools, WAYS[0]).walk(document, operation)
        return str(problem.value).partition(":")[0].partition(",")[0]

    def step(action, method="GET", endpoint="/v1/keys"):
        return {"action": action, "method": method, "endpoint": endpoint}

    assert found(BY_NAME["list_keys"], step("create_task", "POST", "/v1/tasks")) == "harm"
    assert found(BY_NAME["read_session"], step("x", "GET", "/v1/nowhere/at/all")) == "no route"
    assert found(BY_NAME["list_claimed_jobs"], step("claim_job", "POST", "/v1/jobs/{job_id}/claim")) == "a dead end"
    assert found(BY_NAME["claim_job"], step("open_session", "POST", "/sessions")).endswith("leads to another family")
    assert found(BY_NAME["list_keys"], {"action": "look_around"}) == "a dead end"
    assert found(BY_NAME["list_keys"], {"action": "stop_work"}) == "a dead end without words"
    assert found(BY_NAME["list_keys"], step("x") | {"recommended": False}) == "nothing is recommended"
