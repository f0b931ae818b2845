"""Isolation of accounts: every operation with a scope, called with keys that do not allow it.

That is another account's key, a wrong key, a wrong scope or no key. Resources of another account are answered exactly
like absent ones, and nothing is changed.
"""

import re
import time
import uuid
from types import SimpleNamespace

import pytest

from holdfast.core.principal import SCOPES, format_key, grants
from holdfast.operations.operation import HOLDFAST_API, OCTOSTORE, ORCHESTRION
from holdfast.operations.table import OPERATIONS
from holdfast.settings import sqlite_path
from holdfast.store.postgres import PostgresStore
from holdfast.store.rows import ROW_TYPES
from holdfast.store.sqlite import SqliteStore
from holdfast.transport.http.routing import Router
from tests.compat.octostore.wire import NOTHING
from tests.compat.orchestrion.account import Account, register
from tests.compat.orchestrion.states import held, pending
from tests.http.account_resources import OPERATORS, REQUESTS, Absent, Resources
from tests.http.job_client import fresh, job_path
from tests.http.replies import done, events, refused_as_problem
from tests.http.session_client import begin
from tests.proof_size import FULL

SCOPED = {each.name: each for each in OPERATIONS if each.scope is not None and each.name not in OPERATORS}
OWN_KEY = {"rotate_own_key", "rotate_token", "link_dashboard"}
"""Operations that every key may call for itself, also one with the read scope only."""
OPEN_TO_EVERY_KEY = {*OWN_KEY, "read_account", "billing_status", "list_sessions", "read_session", "list_mine"}
OF_ONE_PRINCIPAL = {"get_session", "list_mine"}
"""Sessions of OctoStore belong to the user who opened them, not to the account, and so does what a key holds."""

ANSWERED_OTHERWISE = {"checkout": 402, "verify_payment": 402, "delete_account": 400}
"""Expected refusals: the server has no merchant, and deleting an account needs its id, which test_export.py tests."""

one_store = pytest.mark.parametrize("store", ["sqlite", *(["postgres"] if FULL else [])], indirect=True)
"""`make test` runs these on one store: what a key allows is decided before the store is used."""

EXPIRY_SECONDS = 1
MOST_ROWS = 60
"""More rows of a kind than any account here has."""
CHANGING = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"/ui/enter/[A-Za-z0-9_-]+"), "/ui/enter/SECRET"),
    (re.compile(r"hf_live_[0-9A-Za-z_]+(…[0-9A-Za-z]+)?"), "KEY"),
    (re.compile(r"(tsk|acct|whk)_[0-9A-Z]{26}"), "ULID"),
    (re.compile(r"whsec_[0-9A-Za-z+/]+="), "SECRET"),
    (re.compile(r'("[a-z_]*token"|"secret"|"[A-Za-z_]*(_ms|_seconds|nextCursor)"):("[0-9a-f]{64}"|[0-9.]+)'), r"\1:N"),
]
"""Values that differ between any two successful answers."""


@pytest.fixture
def rows(server, stores):
    """Read all stored rows of an account and the bounds of its log."""

    def rows(account):
        with stores(server).read() as reader:
            kept = [row for kind in ROW_TYPES for row in reader.rows_after(kind, account.id, "", MOST_ROWS)]
            return [row for row in kept if row.account == account.id], reader.log_bounds(account.id)

    return rows


@pytest.fixture(scope="module")
def stores():
    """Open the store of a server directly."""
    opened = {}

    def store(server):
        if server.store not in opened:
            sqlite = server.store.startswith("sqlite:")
            opened[server.store] = SqliteStore(sqlite_path(server.store)) if sqlite else PostgresStore(server.store)
        return opened[server.store]

    yield store
    for each in opened.values():
        each.close()


@pytest.fixture
def victim(server):
    return Resources(register(server.anyone))


@pytest.fixture
def stranger(server):
    return register(server.anyone)


@pytest.fixture(scope="module")
def keyed_accounts():
    """One account for each server, with a key of every kind."""
    known = {}

    def keyed_account(server):
        if server.port not in known:
            known[server.port] = KeyedAccount(register(server.anyone))
        return known[server.port]

    return keyed_account


@pytest.fixture
def keyed_account(keyed_accounts, server):
    keyed_account = keyed_accounts(server)
    keyed_account.things.keep_alive()
    return keyed_account


class KeyedAccount:
    """An account with resources, a key for every scope, and invalid keys."""

    def __init__(self, account):
        self.account = account
        self.things = Resources(account)
        self.keys = {scope: self.key(scope)[0] for scope in SCOPES}
        expired, self.expires_at = self.key("admin", expiresInSeconds=EXPIRY_SECONDS)[0], time.monotonic()
        revoked, revoked_id = self.key("admin")
        done(account.delete(f"/v1/keys/{revoked_id}"))
        never = format_key(b"a key that nobody was given"[:24])
        mistyped = account.token[:-1] + ("A" if account.token[-1] != "A" else "B")
        self.refused = {
            "mistyped": self.by(mistyped),
            "unknown": self.by(never),
            "expired": expired,
            "revoked": revoked,
        }
        for request in REQUESTS.values():
            request(self.things)

    def key(self, *scopes, **fields):
        made = done(self.account.post("/v1/keys", {"name": "k", "scopes": scopes, **fields}), 201)
        return self.by(made["apiKey"]), made["keyId"]

    def by(self, token):
        return Account(self.account.port, {"Authorization": f"Bearer {token}"}, token=token, id=self.account.id)

    def callers_with_invalid_keys(self):
        """Callers with a mistyped, unknown, expired or revoked key; waits until the expiring key has expired."""
        time.sleep(max(self.expires_at + EXPIRY_SECONDS + 0.05 - time.monotonic(), 0))
        return self.refused


def ask(name, caller, things):
    path, body = REQUESTS[name](things)
    operation = SCOPED[name]
    found, _ = Router().find(operation.method, path.partition("?")[0].encode())
    assert found is operation, f"the row of {name} asks for {found.name}"
    return caller.send(operation.method, path) if body is NOTHING else caller.send_json(operation.method, path, body)


def comparable(answer, things, *, changing=False):
    """The text of an answer, with ids and other values that always differ replaced by placeholders."""
    text = answer.raw.decode().replace(answer.header("X-Request-Id"), "REQUEST")
    for place, thing in enumerate(vars(things)["_made"].values() if isinstance(things, Absent) else ()):
        text = text.replace(thing if isinstance(thing, str) else thing.id, f"ID{place}")
    if isinstance(things, SimpleNamespace):
        for place, thing in enumerate(things.ids):
            text = text.replace(thing, f"ID{place}")
    for pattern, word in CHANGING if changing else ():
        text = pattern.sub(word, text)
    return text


def head(answer):
    skipped = {"date", "x-request-id"}
    return sorted((name.lower(), value) for name, value in answer.headers.items() if name.lower() not in skipped)


# -- the table of requests ---------------------------------------------------------------------------------------


def test_every_operation_with_a_scope_has_its_row():
    assert REQUESTS.keys() == SCOPED.keys()
    assert OPERATORS.keys() == {each.name for each in OPERATIONS if each.scope is not None} - SCOPED.keys()


def test_every_scope_of_the_table_is_one_that_keys_can_open():
    for operation in SCOPED.values():
        assert [scope for scope in SCOPES if grants(scope, operation.scope)], operation.name


# -- resources: own, of another account, absent ------------------------------------------------------------------


@pytest.mark.parametrize("name", SCOPED)
def test_an_account_reads_its_own_resources(victim, name):
    answer = ask(name, victim.account, victim)
    assert answer.status in {200, 201, 204, ANSWERED_OTHERWISE.get(name)}, str(answer)


@pytest.mark.parametrize("name", SCOPED)
def test_resources_of_another_account_are_answered_like_absent_ones_and_not_changed(server, victim, rows, name):
    REQUESTS[name](victim)
    absent = Absent(victim)
    before = rows(victim.account)
    foreign_answer = ask(name, register(server.anyone), victim)
    absent_answer = ask(name, register(server.anyone), absent)
    assert rows(victim.account) == before
    # Both answers name the ids they were asked about; apart from those they must be the same.
    shown = SimpleNamespace(ids=[_id_of(getattr(victim, made)) for made in vars(absent)["_made"]])
    success = foreign_answer.status < 300
    assert foreign_answer.status == absent_answer.status
    assert comparable(foreign_answer, shown, changing=success) == comparable(absent_answer, absent, changing=success)
    if not success:
        assert head(foreign_answer) == head(absent_answer)


@pytest.mark.parametrize("name", SCOPED)
def test_no_answer_to_another_account_contains_an_id_or_secret_of_the_account(keyed_account, stranger, rows, name):
    """The account has every kind of resource. Only ids that the request itself contains may be in the answer."""
    before = rows(keyed_account.account)
    answer = ask(name, stranger, keyed_account.things)
    path, body = REQUESTS[name](keyed_account.things)
    said = f"{path} {body}"
    things = keyed_account.things.made
    secrets = {
        keyed_account.account.id,
        keyed_account.account.token,
        *(part for thing in things for part in vars(thing).values()),
    }
    heard = answer.raw.decode() + str(answer.headers)
    assert not [secret for secret in secrets if secret and secret in heard and secret not in said]
    assert rows(keyed_account.account) == before


@pytest.mark.parametrize("path", OPERATORS.values())
def test_pages_of_the_operator_are_refused_to_every_account(server, keyed_account, root, path):
    assert root.get(path).status == 200
    assert server.anyone.get(path).status == 401
    for caller in (keyed_account.account, *keyed_account.keys.values()):
        assert caller.get(path).json["code"] == "forbidden"
    for caller in keyed_account.callers_with_invalid_keys().values():
        assert caller.get(path).json["code"] == "authentication_failed"


def _id_of(thing):
    return thing if isinstance(thing, str) else thing.id


# -- missing and invalid keys, scopes ----------------------------------------------------------------------------

MISSING = {HOLDFAST_API: "missing_api_key", ORCHESTRION: "missing_api_key", OCTOSTORE: "authentication_required"}
INVALID = {HOLDFAST_API: "invalid_api_key", ORCHESTRION: "invalid_api_key", OCTOSTORE: "authentication_failed"}


def refused(answer, name, status, code):
    """A refusal in the format of the API that the operation belongs to."""
    family = SCOPED[name].family
    assert answer.status == status, str(answer)
    body = answer.json
    assert body["code" if family == OCTOSTORE else "error"] == code
    assert body["request_id"] == answer.header("X-Request-Id")
    assert answer.header("Content-Type") == (
        "application/problem+json" if family == HOLDFAST_API else "application/json"
    )
    return body


@one_store
@pytest.mark.parametrize("name", SCOPED)
def test_a_request_without_a_key_is_refused_and_changes_nothing(server, keyed_account, rows, name):
    before = rows(keyed_account.account)
    answer = ask(name, server.anyone, keyed_account.things)
    body = refused(answer, name, 401, MISSING[SCOPED[name].family])
    assert body["agent_contract"]["retryable"] is True
    if SCOPED[name].family != OCTOSTORE:
        assert answer.header("WWW-Authenticate") == "Bearer"
    assert rows(keyed_account.account) == before


@one_store
@pytest.mark.parametrize("name", SCOPED)
def test_all_invalid_keys_are_refused_with_the_same_message(keyed_account, rows, name):
    before = rows(keyed_account.account)
    answers = {
        kind: ask(name, caller, keyed_account.things)
        for kind, caller in keyed_account.callers_with_invalid_keys().items()
    }
    for answer in answers.values():
        body = refused(answer, name, 401, INVALID[SCOPED[name].family])
        assert body["agent_contract"]["retryable"] is False
    assert len({comparable(answer, None) for answer in answers.values()}) == 1
    assert len({str(head(answer)) for answer in answers.values()}) == 1
    assert rows(keyed_account.account) == before


@one_store
@pytest.mark.parametrize("name", SCOPED)
def test_a_key_without_the_scope_is_refused_with_the_name_of_the_scope(keyed_account, rows, name):
    operation = SCOPED[name]
    wrong = [scope for scope in SCOPES if not grants(scope, operation.scope)]
    before = rows(keyed_account.account)
    for scope in wrong:
        answer = ask(name, keyed_account.keys[scope], keyed_account.things)
        body = refused(answer, name, 403, "forbidden")
        if operation.family != OCTOSTORE:
            assert body["scope"] == operation.scope
        if operation.family == HOLDFAST_API:
            assert answer.header("WWW-Authenticate") == 'Bearer error="insufficient_scope"'
    assert wrong or name in OPEN_TO_EVERY_KEY
    assert rows(keyed_account.account) == before


@one_store
@pytest.mark.parametrize("name", SCOPED)
def test_every_scope_that_grants_an_operation_is_accepted(server, name):
    """In a new account, because many operations change the resources."""
    own = Resources(register(server.anyone))
    REQUESTS[name](own)
    for scope in (scope for scope in SCOPES if grants(scope, SCOPED[name].scope)):
        made = done(own.account.post("/v1/keys", {"name": scope, "scopes": [scope]}), 201)
        caller = Account(own.account.port, {"Authorization": f"Bearer {made['apiKey']}"}, id=own.account.id)
        answer = ask(name, caller, own)
        lacks = answer.status == 403 and "scope" in str(answer)
        assert answer.status != 401, scope
        assert not lacks, f"{scope}: {answer}"


@one_store
@pytest.mark.parametrize("name", sorted(SCOPED.keys() - OWN_KEY))
def test_a_key_for_reading_reads_and_does_not_write(keyed_account, rows, name):
    operation = SCOPED[name]
    before = rows(keyed_account.account)
    answer = ask(name, keyed_account.keys["read"], keyed_account.things)
    is_read = operation.method == "GET" or operation.scope.endswith(":read")
    if is_read and "admin" not in operation.scope:
        assert answer.status == (404 if name in OF_ONE_PRINCIPAL else 200), str(answer)
    else:
        refused(answer, name, 403, "forbidden")
    assert rows(keyed_account.account) == before


# -- lists, cursors, keys ----------------------------------------------------------------------------------------


def test_cursors_of_another_account_are_refused_like_cursors_that_never_existed(victim, stranger):
    owner = victim.account
    for _ in range(3):
        pending(owner)
        begin(owner, fresh())
        done(owner.post(job_path(fresh(), "/claim"), {"owner": "me"}))
    for path, absent in (("/v1/tasks", "tsk_none"), ("/v1/sessions", str(uuid.uuid4())), ("/v1/jobs", "bm9uZQ")):
        foreign = done(owner.get(f"{path}?limit=1"))["nextCursor"]
        answers = [stranger.get(f"{path}?limit=1&cursor={cursor}") for cursor in (foreign, absent)]
        assert [answer.status for answer in answers] == [400, 400], path
        assert answers[0].json["errors"] == answers[1].json["errors"]
    cursor = events(owner)[-1]["seq"]
    assert refused_as_problem(stranger.get(f"/v1/events?after={cursor}"), 409, "cursor_ahead")["last"] < cursor


def test_filters_match_nothing_of_another_account(victim, stranger):
    owner = victim.account
    pending(owner, tag="theirs", uniqueKey="theirs", createdBy="them")
    claimed = held(owner)
    request_id = events(owner)[-1]["request_id"]
    for query in ("tag=theirs", "key=theirs", f"sessionId={victim.named_session.id}", "status=claimed", "type=work"):
        assert done(stranger.list(query))["tasks"] == [], query
    for query in (f"request_id={request_id}", f"subject=task:{claimed['id']}", "kind=task.*"):
        assert events(stranger, query) == [], query
    assert done(stranger.get("/v1/jobs?prefix="))["jobs"] == []
    assert done(stranger.get("/locks"))["locks"] == []


def test_requests_that_wait_are_not_woken_by_another_account(victim, stranger):
    """Neither a read of events nor a claim that waits ends because of a task of another account."""
    started = time.monotonic()
    last = events(stranger)[-1]["seq"]
    pending(victim.account)
    assert done(stranger.get(f"/v1/events?after={last}&wait_seconds=0.3"))["events"] == []
    assert done(stranger.post("/v1/tasks/claim", {"wait_seconds": 0.3}))["task"] is None
    assert time.monotonic() - started >= 0.6


def test_idempotency_keys_of_two_accounts_are_separate(victim, stranger):
    key, name = fresh(), fresh()
    answers = [
        caller.with_headers(Idempotency_Key=key).send_json("POST", job_path(name, "/claim"), {"owner": "me"})
        for caller in (victim.account, stranger)
    ]
    assert [done(answer)["status"] for answer in answers] == ["claimed", "claimed"]
    assert answers[0].json["lease_id"] != answers[1].json["lease_id"]
    assert [answer.header("Idempotency-Replayed") for answer in answers] == [None, None]
    made = [
        done(
            caller.with_headers(Idempotency_Key=key + "-c").send_json(
                "POST", "/v1/tasks", {"type": "x", "payload": {}}
            ),
            201,
        )
        for caller in (victim.account, stranger)
    ]
    assert made[0]["id"] != made[1]["id"]


def test_nothing_can_be_claimed_for_a_session_of_another_account(victim, stranger, rows):
    session = victim.named_session
    before = rows(victim.account)
    task = pending(stranger)["id"]
    for answer in (
        stranger.do("claim", task, session_id=session.id),
        stranger.post("/v1/tasks/claim", {"session_id": session.id}),
        stranger.post(job_path(fresh(), "/claim"), {"owner": "me", "session_id": session.id}),
        stranger.acquire(fresh("lock"), session_id=session.id, ephemeral=True),
    ):
        assert answer.status == 404, str(answer)
    assert rows(victim.account) == before


def test_a_batch_about_tasks_of_another_account_changes_none_of_them(victim, stranger, rows):
    targets = [victim.pending, victim.held, victim.dead]
    items = [
        {
            "op": verb,
            "id": thing.id,
            **({"lease_id": thing.proof} if thing.proof and verb in {"complete", "fail"} else {}),
        }
        for verb in ("cancel", "complete", "fail", "requeue", "resolve")
        for thing in targets
    ]
    before = rows(victim.account)
    body = done(stranger.post("/v1/tasks/batch", {"items": items}))
    assert {(result["status"], result["error"]) for result in body["results"]} == {(404, "task_not_found")}
    assert rows(victim.account) == before


def test_every_registration_creates_an_account_with_its_own_key(server):
    accounts = [register(server.anyone) for _ in range(3)]
    assert len({account.id for account in accounts}) == 3
    assert len({account.token for account in accounts}) == 3
