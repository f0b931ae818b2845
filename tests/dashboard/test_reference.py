"""The API reference: complete, readable by everybody, with commands that work."""

import html
import json
import re
import shlex
from collections import Counter
from urllib.parse import urlsplit

import msgspec
import pytest

from holdfast.operations.bounds import DOCUMENTS_PER_ADDRESS
from holdfast.operations.table import OPERATIONS
from holdfast.settings import Settings
from holdfast.transport.dashboard.app import POLICY
from holdfast.transport.dashboard.reference import model, schema_text
from holdfast.transport.http.routing import Router
from holdfast.transport.http.schemas.all_operations import OPERATION_SCHEMAS
from holdfast.transport.http.schemas.examples import examples
from tests.dashboard.in_process import InProcessDashboard

GROUPS = [name for name, _, _ in model._GROUPS]


@pytest.fixture(scope="module")
def pages():
    """Every page of the reference, as a browser that is not signed in gets it."""
    dashboard = InProcessDashboard()
    answers = {name: dashboard.send("GET", f"/ui/reference/{name}") for name in ("", *GROUPS)}
    yield answers
    dashboard.close()


def text_of(answer):
    return answer.raw.decode()


def commands_of(page):
    """The curl command of each operation."""
    found = re.findall(r'<pre id="(\w+)-curl"[^>]*>(.*?)</pre>', page, re.DOTALL)
    return {name: html.unescape(text) for name, text in found}


def test_every_operation_is_on_one_page_and_in_the_list(pages):
    found = Counter(name for group in GROUPS for name in commands_of(text_of(pages[group])))
    assert found == Counter(operation.name for operation in OPERATIONS)
    for operation in OPERATIONS:
        group = next(name for name in GROUPS if f'<h2 id="{operation.name}">' in text_of(pages[name]))
        assert f'href="/ui/reference/{group}#{operation.name}"' in text_of(pages[""])


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_the_command_of_an_operation_sends_its_example(pages, operation):
    example = examples()[operation.name]
    text = next(found for group in GROUPS if (found := commands_of(text_of(pages[group])).get(operation.name)))
    words = iter(shlex.split(text.replace("\\\n", " ")))
    assert next(words) == "curl"
    method, headers, body, address = "GET", {}, None, ""
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name.lower()] = value
        elif word == "-d":
            body = json.loads(next(words))
        elif word != "-N":
            address = word
    assert address.startswith("https://holdfast.example/")
    found, parameter = Router().find(method, urlsplit(address).path.encode())
    assert (found, parameter or "") == (operation, next(iter(example.path.values()), ""))
    assert body == (None if example.body is msgspec.UNSET else example.body)
    assert ("authorization" in headers) == (operation.scope is not None)
    assert example.headers.items() <= headers.items()


def test_each_operation_shows_the_answer_of_its_example(pages):
    shown = {}
    for page in pages.values():
        found = re.findall(r'<pre id="(\w+)-answer"[^>]*>(.*?)</pre>', text_of(page), re.DOTALL)
        shown |= {name: html.unescape(text) for name, text in found}
    for name, example in examples().items():
        if OPERATION_SCHEMAS[name].answers[example.status] is None:
            assert name not in shown
            continue
        assert shown[name] == example.answer or json.loads(shown[name]) == example.answer, name


def test_every_link_within_a_page_has_a_target_and_no_id_is_used_twice(pages):
    for name, page in pages.items():
        ids = re.findall(r'\bid="([^"]+)"', text_of(page))
        assert len(ids) == len(set(ids)), name
        assert set(re.findall(r'href="#([^"]+)"', text_of(page))) <= set(ids), name


def test_the_pages_need_no_key_and_run_no_foreign_script(pages):
    for page in pages.values():
        assert page.status == 200
        assert page.headers["content-security-policy"] == POLICY.decode()
        assert re.findall(r"<script(.*?)>", text_of(page)) == re.findall(
            r'<script( type="module" src="/ui/static/[0-9a-f]+/main.js")>', text_of(page)
        )
        assert not re.search(r'\bstyle="|\bon\w+="|(src|href)="(https?:)?//', text_of(page))


def test_the_reference_and_the_static_page_link_to_each_other(dashboard, pages):
    assert 'href="/docs"' in text_of(pages[""])
    assert 'href="/ui/reference"' in text_of(dashboard.send("GET", "/docs"))
    assert 'href="/ui/reference"' in text_of(dashboard.send("GET", "/", cookie=dashboard.sign_in()))


def test_a_search_finds_operations_by_all_words(dashboard):
    found = text_of(dashboard.send("GET", "/ui/reference?q=TASK+claim"))
    assert "#claim_task_by_id" in found
    assert "#claim_job" not in found
    nothing = text_of(dashboard.send("GET", "/ui/reference?q=%22%3E%3Cb%3E"))
    assert "No operation contains these words" in nothing
    assert 'value="&#34;&gt;&lt;b&gt;"' in nothing


def test_without_a_public_address_commands_have_the_one_that_the_browser_used():
    dashboard = InProcessDashboard(settings=Settings(host="0.0.0.0", port=7700, root_key="x" * 32))
    page = text_of(dashboard.send("GET", "/ui/reference/jobs", host="192.0.2.1:7700"))
    dashboard.close()
    assert all("http://192.0.2.1:7700/v1/" in command for command in commands_of(page).values())


def test_an_unknown_page_is_missing(dashboard):
    assert dashboard.send("GET", "/ui/reference/nothing").status == 404


def test_too_many_requests_from_one_address_are_refused():
    dashboard = InProcessDashboard(settings=Settings(plan="free", root_key="x" * 32))
    for _ in range(DOCUMENTS_PER_ADDRESS.requests):
        assert dashboard.send("GET", "/ui/reference/nothing", host="localhost:7700").status == 404
    refused = dashboard.send("GET", "/ui/reference/nothing", host="localhost:7700")
    dashboard.close()
    assert refused.status == 429
    assert refused.headers["retry-after"]
    assert 'name="key"' not in text_of(refused), "signing in would not help"


@pytest.mark.parametrize(
    ("schema", "kind", "rules"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 3600, "default": 120}, "integer", "1 to 3,600; default 120"),
        ({"format": "uuid", "anyOf": [{"type": "string"}, {"type": "null"}]}, "string (uuid) or null", ""),
        ({"type": "array", "items": {"$ref": "#/x/Task"}, "maxItems": 9}, "list of Task", "at most 9 items"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "object of integer", ""),
        ({"enum": ["a", "b"]}, '"a" or "b"', ""),
        ({"type": ["object", "string"]}, "object or string", ""),
        ({"type": "string", "minLength": 0, "maxLength": 9}, "string", "at most 9 characters"),
        ({"type": "string", "pattern": "^[^\\u0000]*$"}, "string", ""),
        ({"type": "string", "pattern": "^a$"}, "string", "matches ^a$"),
        ({"type": "integer", "minimum": 2}, "integer", "at least 2"),
        ({}, "any JSON", ""),
    ],
)  # fmt: skip
def test_a_schema_is_described_in_words(schema, kind, rules):
    assert "".join(part.text for part in schema_text.type_of(schema)) == kind
    assert schema_text.rules_of(schema) == rules


def test_the_pages_fit_a_phone_and_follow_the_theme(stranger):
    page = stranger(width=390, height=844, color_scheme="dark")
    for path in ("/ui/reference", "/ui/reference/tasks", "/ui/reference/locks", "/docs"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    page.goto("/ui/reference/jobs")
    assert page.locator("#claim_job-curl + button").is_visible()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Light").click()
    page.wait_for_url("**/ui/reference/jobs")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
