"""Keys: shown once, with scopes, prefix and expiry, rotated with a grace period, revoked at once."""

import asyncio
import re
import threading
import time
from collections import Counter

import pytest

from holdfast.app import sync_credentials
from holdfast.core.principal import SCOPES, format_key, is_well_formed
from holdfast.engine.engine import Engine
from holdfast.settings import Settings
from holdfast.store.sqlite import SqliteStore
from holdfast.transport.http.access.auth import CACHE_SECONDS
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from tests.compat.octostore.expect import eventually
from tests.compat.octostore.server import Server
from tests.compat.orchestrion.account import Account, register
from tests.compat.orchestrion.expect import instant, seconds_left
from tests.compat.orchestrion.states import held
from tests.http.job_client import ROOT_KEY, Callers, fresh, job_path, pointers, problem
from tests.http.job_client import root as root_of
from tests.http.replies import done, events

pytestmark = pytest.mark.waits(6)

DOCUMENT = {
    "keyId", "name", "source", "shown", "scopes", "prefix", "createdAt", "expiresAt", "oldKeyUntil", "revokedAt",
    "lastUsedAt", "agent_contract",
}  # fmt: skip


@pytest.fixture
def account(server):
    return register(server.anyone)


def with_key(account, key):
    return Account(account.port, {"Authorization": f"Bearer {key}"}, token=key, id=account.id)


def make(account, *scopes, **fields):
    """Create a key: (a caller with it, the answer)."""
    made = done(account.post("/v1/keys", {"name": "new", "scopes": scopes or ["jobs"], **fields}), 201)
    return with_key(account, made["apiKey"]), made


def works(caller):
    """Whether the key of a caller is accepted."""
    answer = caller.get("/v1/account")
    assert answer.status in {200, 401}, str(answer)
    return answer.status == 200


def rotate(account, key_id=None, **fields):
    return account.post("/v1/keys/rotate" if key_id is None else f"/v1/keys/{key_id}/rotate", fields)


# -- creating and reading ----------------------------------------------------------------------------------------


def test_a_new_key_is_shown_once_and_works(account):
    answer = account.post("/v1/keys", {"name": "ci", "scopes": ["jobs", "read", "jobs"]})
    made = done(answer, 201)
    assert answer.header("Cache-Control") == "no-store"
    assert made.keys() == DOCUMENT | {"apiKey"}
    key = made["apiKey"]
    assert re.fullmatch(r"hf_live_[0-9A-Za-z]{32}_[0-9A-Za-z]{6}", key)
    assert is_well_formed(key)
    assert (made["name"], made["scopes"], made["source"]) == ("ci", ["jobs", "read"], "issued")
    assert made["shown"] == f"{key[:12]}…{key[-4:]}"
    assert [made[name] for name in ("prefix", "expiresAt", "oldKeyUntil", "revokedAt", "lastUsedAt")] == [None] * 5
    assert abs(seconds_left(made["createdAt"])) < 5
    assert works(with_key(account, key))


def test_keys_are_listed_and_read_without_their_secrets(account):
    caller, made = make(account, "tasks:work", expiresInSeconds=600)
    listed = done(account.get("/v1/keys"))["keys"]
    read = done(account.get(f"/v1/keys/{made['keyId']}"))
    assert read.keys() == DOCUMENT
    assert {key["name"] for key in listed} == {"first", "new"}
    assert {**next(key for key in listed if key["name"] == "new")} == {
        name: value for name, value in read.items() if name != "agent_contract"
    }
    assert abs(seconds_left(read["expiresAt"]) - 600) < 5
    for text in (account.get("/v1/keys").raw.decode(), account.get(f"/v1/keys/{made['keyId']}").raw.decode()):
        assert caller.token not in text
        assert account.token not in text
        assert "hash" not in text


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, {"/name", "/scopes"}),
        ({"name": "", "scopes": ["jobs"]}, {"/name"}),
        ({"name": "x" * 129, "scopes": ["jobs"]}, {"/name"}),
        ({"name": "x\0", "scopes": ["jobs"]}, {"/name"}),
        ({"name": "x", "scopes": []}, {"/scopes"}),
        ({"name": "x", "scopes": ["everything"]}, {"/scopes"}),
        ({"name": "x", "scopes": ["jobs", "job"]}, {"/scopes"}),
        ({"name": "x", "scopes": "jobs"}, {"/scopes"}),
        ({"name": "x", "scopes": ["jobs"], "prefix": ""}, {"/prefix"}),
        ({"name": "x", "scopes": ["jobs"], "prefix": "x" * 257}, {"/prefix"}),
        ({"name": "x", "scopes": ["jobs"], "expiresInSeconds": 0}, {"/expiresInSeconds"}),
        ({"name": "x", "scopes": ["jobs"], "expiresInSeconds": 315_360_001}, {"/expiresInSeconds"}),
        ({"name": "", "scopes": [], "prefix": "", "expiresInSeconds": 0},
         {"/name", "/scopes", "/prefix", "/expiresInSeconds"}),
    ],
)  # fmt: skip
def test_an_invalid_key_request_is_refused_with_a_pointer_to_every_wrong_field(account, fields, wrong):
    assert pointers(problem(account.post("/v1/keys", fields), 400, "invalid_request")) == wrong
    assert len(done(account.get("/v1/keys"))["keys"]) == 1


@pytest.mark.parametrize("name", ["x" * 128, "ключ 🔑"])
def test_values_at_the_bounds_are_accepted(account, name):
    made = make(account, *SCOPES, name=name, prefix="x" * 256, expiresInSeconds=315_360_000)[1]
    assert (made["name"], made["prefix"], made["scopes"]) == (name, "x" * 256, [*SCOPES])


@pytest.mark.parametrize("key_id", ["00000000-0000-4000-8000-000000000000", "no-uuid", "%00", "x" * 300])
def test_a_key_that_is_not_there_is_not_found(account, key_id):
    for answer in (
        account.get(f"/v1/keys/{key_id}"),
        account.delete(f"/v1/keys/{key_id}"),
        account.post(f"/v1/keys/{key_id}/rotate"),
    ):
        problem(answer, 404, "not_found")


def test_a_test_key_has_its_own_prefix(account):
    caller, made = make(account, "tasks", test=True)
    assert caller.token.startswith("hf_test_")
    assert made["shown"].startswith("hf_test_")
    assert works(caller)


# -- scopes, prefix and expiry -----------------------------------------------------------------------------------


def test_a_key_cannot_create_a_key_with_more_permissions_than_its_own(account):
    limited, _ = make(account, "admin", prefix="ci/", expiresInSeconds=600)
    for beyond in ({}, {"prefix": "ci/"}, {"expiresInSeconds": 60}, {"prefix": "c", "expiresInSeconds": 60}):
        problem(limited.post("/v1/keys", {"name": "x", "scopes": ["jobs"], **beyond}), 403, "forbidden")
    problem(limited.post("/v1/keys", {"name": "x", "scopes": ["jobs"], "prefix": "ci/", "expiresInSeconds": 601}), 403,
            "forbidden")  # fmt: skip
    within, made = make(limited, "admin", prefix="ci/x", expiresInSeconds=500)
    assert made["prefix"] == "ci/x"
    assert works(within)


def test_a_key_cannot_rotate_a_key_with_more_permissions_than_its_own(account):
    limited, _ = make(account, "admin", prefix="ci/")
    first = next(key for key in done(account.get("/v1/keys"))["keys"] if key["name"] == "first")
    problem(rotate(limited, first["keyId"]), 403, "forbidden")
    assert works(account)


def test_a_prefix_holds_for_jobs_and_locks_and_lists_of_them(account):
    caller, _ = make(account, "jobs", prefix="ci-")
    inside, outside = fresh("ci"), fresh("prod")
    lease = done(account.post(job_path(outside, "/claim"), {"owner": "me"}))["lease_id"]
    done(caller.post(job_path(inside, "/claim"), {"owner": "me"}))
    for verb, body in (
        ("/claim", {"owner": "me"}),
        ("/heartbeat", {"lease_id": lease}),
        ("/release", {"lease_id": lease}),
    ):
        problem(caller.post(job_path(outside, verb), body), 403, "forbidden")
    problem(caller.get(job_path(outside)), 403, "forbidden")
    assert [shown["job_id"] for shown in done(caller.get("/v1/jobs"))["jobs"]] == [inside]
    assert [shown["job_id"] for shown in done(caller.get(f"/v1/jobs?prefix={inside}"))["jobs"]] == [inside]
    for prefix in ("", "c", "prod-"):
        problem(caller.get(f"/v1/jobs?prefix={prefix}"), 403, "forbidden")
    assert done(account.get(job_path(outside)))["owner"] == "me"


def test_a_prefix_holds_for_locks(account):
    caller, _ = make(account, "jobs", prefix="ci-")
    inside, outside = fresh("ci"), fresh("prod")
    assert done(caller.acquire(inside))["status"] == "acquired"
    lease = done(account.acquire(outside))["lease_id"]
    for answer in (caller.acquire(outside), caller.read_lock(outside), caller.renew(outside, lease),
                   caller.release(outside, lease), caller.get("/locks?prefix=prod-")):  # fmt: skip
        assert (answer.status, answer.json["code"]) == (403, "forbidden"), str(answer)
    listed = done(caller.get("/locks"))
    assert ([lock["name"] for lock in listed["locks"]], listed["prefix"]) == ([inside], "ci-")


def test_a_key_is_refused_after_its_expiry(account):
    caller, made = make(account, "jobs", expiresInSeconds=1)
    assert works(caller)
    assert instant(made["expiresAt"]) - instant(made["createdAt"]) == pytest.approx(1)
    time.sleep(1.1)
    assert not works(caller)
    assert done(account.get(f"/v1/keys/{made['keyId']}"))["revokedAt"] is None


def test_revoking_a_key_ends_its_requests_that_wait(account):
    caller, made = make(account, "admin")
    job = fresh()
    done(account.post(job_path(job, "/claim"), {"owner": "me"}))
    last = done(account.get("/v1/events?limit=1000"))["nextCursor"]
    with Callers() as callers:
        waits = [
            callers.send(caller.post, job_path(job, "/claim"), {"owner": "next", "wait_seconds": 50}),
            callers.send(caller.post, "/v1/tasks/claim", {"type": "none", "wait_seconds": 50}),
            callers.send(caller.get, f"/v1/events?after={last}&kind=none&wait_seconds=50"),
        ]
        look = (job_path(job, "/claim"), {"owner": "looking"})
        eventually(lambda: account.post(*look).json["waiting"], lambda count: count == 1, within=10)
        done(account.delete(f"/v1/keys/{made['keyId']}"))
        for wait in waits:
            answer = wait.result(20)[0]
            assert (answer.status, answer.json["error"]) == (401, "invalid_api_key")


# -- rotation ----------------------------------------------------------------------------------------------------


def test_rotation_changes_the_secret_and_keeps_everything_else(account):
    caller, made = make(account, "tasks", prefix="ci/", expiresInSeconds=600)
    answer = rotate(caller)
    again = done(answer)
    assert answer.header("Cache-Control") == "no-store"
    same = ("keyId", "name", "scopes", "prefix", "createdAt", "expiresAt", "source")
    assert {name: again[name] for name in same} == {name: made[name] for name in same}
    assert again["apiKey"] != made["apiKey"]
    assert again["shown"] != made["shown"]
    assert abs(seconds_left(again["oldKeyUntil"]) - 3600) < 5
    assert works(caller)
    assert works(with_key(account, again["apiKey"]))


def test_without_a_grace_the_old_key_is_over_at_once(account):
    caller, made = make(account)
    assert works(caller)
    by_itself = done(rotate(caller, graceSeconds=0))["apiKey"]
    assert not works(caller)
    assert works(with_key(account, by_itself))
    by_another = done(rotate(account, made["keyId"], graceSeconds=0))["apiKey"]
    assert not works(with_key(account, by_itself))
    assert works(with_key(account, by_another))


def test_an_old_key_is_over_when_its_grace_is(account):
    caller, _ = make(account)
    new = with_key(account, done(rotate(caller, graceSeconds=1))["apiKey"])
    assert works(caller)
    time.sleep(1.1)
    assert not works(caller)
    assert works(new)


@pytest.mark.parametrize(("grace", "status"), [(-1, 400), (0, 200), (86_400, 200), (86_401, 400)])
def test_a_grace_is_a_day_at_most(account, grace, status):
    caller, made = make(account)
    for answer in (rotate(caller, graceSeconds=grace), rotate(account, made["keyId"], graceSeconds=grace)):
        assert answer.status == status, str(answer)
        assert status == 200 or pointers(answer.json) == {"/graceSeconds"}


@pytest.mark.parametrize("test", [True, False])
def test_a_rotated_key_is_of_the_same_kind_for_every_caller(account, test):
    kind = "hf_test_" if test else "hf_live_"
    caller, made = make(account, "jobs", test=test)
    assert done(rotate(caller))["apiKey"].startswith(kind)
    assert done(rotate(account, made["keyId"]))["apiKey"].startswith(kind)
    tester, _ = make(account, "admin", test=True)
    assert done(rotate(tester, made["keyId"]))["apiKey"].startswith(kind)


def test_what_a_key_holds_stays_its_own_over_a_rotation(account):
    caller, _ = make(account, "jobs")
    lock = fresh("lock")
    lease = done(caller.acquire(lock))["lease_id"]
    new = with_key(account, done(rotate(caller, graceSeconds=0))["apiKey"])
    assert new.renew(lock, lease).status == 200


# -- revocation --------------------------------------------------------------------------------------------------


def test_a_revoked_key_is_over_at_once_with_the_one_before_it(account):
    caller, made = make(account)
    new = with_key(account, done(rotate(caller))["apiKey"])
    assert works(caller)
    assert works(new)
    revoked = done(account.delete(f"/v1/keys/{made['keyId']}"))
    assert abs(seconds_left(revoked["revokedAt"])) < 5
    assert not works(caller)
    assert not works(new)
    assert done(account.delete(f"/v1/keys/{made['keyId']}"))["revokedAt"] == revoked["revokedAt"]
    problem(rotate(account, made["keyId"]), 404, "not_found")
    assert [event["kind"] for event in events(account)][-3:] == [
        "principal.created", "principal.rotated", "principal.revoked",
    ]  # fmt: skip


def test_the_last_admin_key_cannot_be_revoked(account):
    first = done(account.get("/v1/keys"))["keys"][0]["keyId"]
    make(account, "admin", expiresInSeconds=600)
    problem(account.delete(f"/v1/keys/{first}"), 409, "last_admin_key")
    other, _ = make(account, "admin")
    done(account.delete(f"/v1/keys/{first}"))
    assert not works(account)
    assert works(other)


def test_a_revoked_key_is_over_on_another_server_within_its_cache(postgres_server, second_postgres_server):
    account = register(postgres_server.anyone)
    caller, made = make(account)
    elsewhere = Account(second_postgres_server.port, caller.headers)
    assert works(elsewhere)
    done(account.delete(f"/v1/keys/{made['keyId']}"))
    eventually(lambda: works(elsewhere), lambda still: not still, within=CACHE_SECONDS + 2)


# -- configured keys ---------------------------------------------------------------------------------------------


def test_configured_keys_cannot_be_rotated_or_revoked(server):
    root, admin = root_of(server), server.admin
    listed = {key["name"]: key for key in done(root.get("/v1/keys"))["keys"]}
    assert (listed["root"]["source"], listed["alice-1"]["source"]) == ("root", "static")
    problem(rotate(root), 409, "configured_key")
    problem(rotate(admin), 409, "configured_key")
    problem(rotate(admin, listed["root"]["keyId"]), 409, "configured_key")
    for name in ("root", "alice-1"):
        problem(root.delete(f"/v1/keys/{listed[name]['keyId']}"), 409, "configured_key")
    assert works(root)
    assert works(server.user("alice-1"))


def test_keys_of_one_account_are_not_listed_in_another(server, account):
    assert {key["name"] for key in done(account.get("/v1/keys"))["keys"]} == {"first"}
    assert "first" not in {key["name"] for key in done(root_of(server).get("/v1/keys"))["keys"]}


def test_the_time_of_last_use_is_stored_when_the_server_stops(tmp_path):
    """A server writes the times once a minute, and when it stops."""
    server = Server(f"sqlite:///{tmp_path}/x.db", ROOT_KEY=ROOT_KEY).start()
    try:
        account = register(server.anyone)
        used, made = make(account)
        _, unused = make(account)
        assert works(used)
        server.stop()
        server.start()
        shown = {key["keyId"]: key["lastUsedAt"] for key in done(account.get("/v1/keys"))["keys"]}
        assert abs(seconds_left(shown[made["keyId"]])) < 30
        assert shown[unused["keyId"]] is None
        assert done(account.get(f"/v1/keys/{made['keyId']}"))["lastUsedAt"] == shown[made["keyId"]]
    finally:
        server.close()


# -- malformed keys ----------------------------------------------------------------------------------------------


class CountingStore(SqliteStore):
    """A store that counts the reads of requests, not those in the background."""

    read_count = 0

    def read(self):
        self.read_count += threading.current_thread().name not in {"holdfast-sweep", "holdfast-cleanup"}
        return super().read()


async def send_request(app, token):
    """Send one request to the application in this process; returns the status."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b""}

    async def send(message):
        sent.append(message)

    headers = [(b"authorization", f"Bearer {token}".encode())]
    path = "/v1/account"
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": headers, "client": ("127.0.0.1", 1),
    }  # fmt: skip
    await app(scope, receive, send)
    return sent[0]["status"]


def test_a_key_with_a_wrong_checksum_or_length_is_refused_without_reading_the_store(tmp_path):
    store = CountingStore(tmp_path / "x.db")
    store.open()
    engine = Engine(store)
    engine.start()
    key = sync_credentials(engine, Settings(store=f"sqlite:///{tmp_path}/x.db"))
    unknown = format_key(b"another twenty-four byte")
    malformed = [key[:-1] + ("0" if key[-1] != "0" else "1"), key[:-1], key + "x", key.replace("hf_live_", "hf_test_")]

    async def scenario():
        ctx = HandlerContext(engine, Settings())
        ctx.open()
        app, looked = App(ctx), Counter()
        for word, tokens in (("malformed", malformed), ("unknown", [unknown]), ("known", [key])):
            before = store.read_count
            statuses = {await send_request(app, token) for token in tokens}
            looked[word] = store.read_count - before
            assert statuses == ({200} if word == "known" else {401})
        ctx.close()
        return looked

    looked = asyncio.run(scenario())
    engine.stop()
    store.close()
    assert looked["malformed"] == 0
    assert looked["unknown"] == 1
    assert looked["known"] > 1


# -- batches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        ("tasks:produce", {"create", "cancel", "requeue", "resolve"}),
        ("tasks:work", {"heartbeat", "complete", "fail", "release", "snooze"}),
        ("tasks", {"create", "cancel", "requeue", "resolve", "heartbeat", "complete", "fail", "release", "snooze"}),
    ],
)
def test_each_item_of_a_batch_needs_the_scope_of_its_verb(account, scope, allowed):
    """Keys for producers cannot finish tasks, and keys for workers cannot create them, also in a batch."""
    caller, _ = make(account, scope)
    verbs = ("create", "cancel", "requeue", "resolve", "heartbeat", "complete", "fail", "release", "snooze")
    for verb in verbs:
        task = held(account, maxAttempts=1)
        fields = {"type": "work", "payload": {}} if verb == "create" else {"id": task["id"]}
        fields |= {"seconds": 1} if verb == "snooze" else {}
        before = events(account)
        (result,) = done(caller.post("/v1/tasks/batch", {"items": [{"op": verb, **fields}]}))["results"]
        assert (result["status"] == 403) is (verb not in allowed), (verb, result)
        if verb not in allowed:
            assert (result["error"], result["scope"]) == (
                "forbidden",
                f"tasks:{'work' if scope != 'tasks:work' else 'produce'}",
            )
            assert events(account) == before
