"""Registration and authentication."""

from pathlib import Path

import psycopg
import pytest

from tests.compat.octostore.server import bearer
from tests.compat.orchestrion.account import BY_ID, register
from tests.compat.orchestrion.contracts import CLAIM, CREATE, action, plain
from tests.compat.orchestrion.expect import ABSENT, ACCOUNT_ID, API_KEY, created, page, refused, success


@pytest.mark.parametrize("body", [(), ({},)], ids=["no body", "empty object"])
def test_registration_needs_no_key_and_returns_a_key_and_an_account(anyone, body):
    registered = success(anyone.post("/v1/keys/register", *body), 201)
    assert API_KEY.fullmatch(registered["apiKey"])
    assert ACCOUNT_ID.fullmatch(registered["accountId"])


def test_registration_advises_to_create_a_task_and_then_to_claim_one(anyone):
    actual = plain(success(anyone.post("/v1/keys/register"), 201)["agent_contract"])
    assert actual["retryable"] is False
    assert actual["next_actions"][0] == action(*CREATE, best=True)
    then = actual["next_actions"][1]
    assert (then["action"], f"{then['method']} {then['endpoint']}") == CLAIM


def test_every_registration_creates_a_new_account(anyone):
    accounts = [register(anyone) for _ in range(3)]
    assert len({account.id for account in accounts}) == 3
    assert len({account.token for account in accounts}) == 3


def test_a_new_key_works_at_once(account):
    created(account.create())
    assert len(page(account.list())["tasks"]) == 1


def test_registration_ignores_a_key(account, anyone):
    for caller in (account, anyone.with_headers(Authorization="Bearer nonsense")):
        assert success(caller.post("/v1/keys/register"), 201)["accountId"] != account.id


def test_a_key_is_not_stored_in_clear(server, store, account):
    created(account.create())
    stored = {"sqlite": stored_in_sqlite, "postgres": stored_in_postgres}[store](server.store)
    assert account.id.encode() in stored
    secret = account.token.removeprefix("hf_live_")
    assert secret.encode() not in stored
    assert secret.encode().hex().encode() not in stored


def stored_in_sqlite(url):
    """Every byte of the database, including the write-ahead log."""
    folder = Path(url.removeprefix("sqlite:///")).parent
    return b"".join(file.read_bytes() for file in folder.iterdir() if file.is_file())


def stored_in_postgres(url):
    """Every row of every table as text."""
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT schemaname || '.' || tablename FROM pg_tables").fetchall()
        ours = [table for (table,) in tables if not table.startswith(("pg_catalog.", "information_schema."))]
        rows = [row for table in ours for (row,) in connection.execute(f"SELECT t::text FROM {table} t")]
        return "\n".join(rows).encode()


# Callers without a key, or with a wrong one.

CALLS = {
    "create": lambda caller: caller.post("/v1/tasks", {"type": "work", "payload": {}}),
    "create nonsense": lambda caller: caller.post("/v1/tasks", {"type": 5}),
    "list": lambda caller: caller.get("/v1/tasks"),
    "read": lambda caller: caller.get(f"/v1/tasks/{ABSENT}"),
    "claim": lambda caller: caller.post("/v1/tasks/claim", {"type": "work"}),
    **{f"{verb} by id": lambda caller, verb=verb: caller.post(f"/v1/tasks/{ABSENT}/{verb}") for verb in BY_ID},
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_without_a_key_is_refused(anyone, call):
    refused(call(anyone), 401, "missing_api_key")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_with_an_unknown_key_is_refused(anyone, call):
    refused(call(bearer(anyone.port, f"orch_live_{'0' * 64}")), 401, "invalid_api_key")


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic {key}", "{key}", "Bearer{key}"])
def test_a_malformed_authorization_header_is_refused(anyone, account, header):
    asking = anyone.with_headers(Authorization=header.format(key=account.token))
    refused(asking.get("/v1/tasks"), 401, "missing_api_key")


def test_a_key_is_compared_exactly(anyone, account):
    key = account.token
    for wrong in (key[:-1], f"{key}x", key.upper(), key.replace("hf_live_", "hf_test_"), account.id, "x"):
        refused(bearer(anyone.port, wrong).get("/v1/tasks"), 401, "invalid_api_key")


# Keys in the query, where access logs would store them.

NAMES = ["api_key", "apiKey", "apikey", "access_token", "authorization"]
KEYS_IN_QUERIES = [f"{name}=anything" for name in NAMES] + [
    "x={key}",
    "limit=5&anything={key}",
    "x=hf_live_",
    "x=orch_live_0123",
    "x=hf%5Flive%5F0123",
]


@pytest.mark.parametrize("query", KEYS_IN_QUERIES)
def test_a_key_in_the_query_is_refused_and_not_repeated(anyone, account, query):
    query = query.format(key=account.token)
    for caller in (account, anyone):
        answer = caller.get(f"/v1/tasks?{query}")
        refused(answer, 400, "invalid_request")
        assert account.token.encode() not in answer.raw


def test_a_key_in_the_query_is_refused_on_every_route(account):
    made = created(account.create())
    paths = ["/v1/keys/register", "/v1/tasks", "/v1/tasks/claim", *(f"/v1/tasks/{made['id']}/{verb}" for verb in BY_ID)]
    for path in paths:
        refused(
            account.post(f"{path}?api_key={account.token}", {"type": "work", "payload": {}}), 400, "invalid_request"
        )
    refused(account.get(f"/v1/tasks/{made['id']}?api_key={account.token}"), 400, "invalid_request")
    assert page(account.list())["tasks"] == [made]


def test_other_query_parameters_are_not_refused_as_keys(account):
    page(account.list("x=live_hf_&y=my-orch_live_"))
