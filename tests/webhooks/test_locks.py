"""OctoStore's `/webhooks`: order of checks, message bodies and signatures."""

import hashlib
import hmac
import re
import uuid
from base64 import b64encode

import pytest

from holdfast.transport.http.octostore.bodies import pseudonym
from tests.compat.octostore.expect import acquired, malformed, refused, success
from tests.compat.octostore.server import Server
from tests.compat.octostore.wire import NOTHING
from tests.http.job_client import ROOT_KEY, agent, fresh, root
from tests.support import wait_until

HERE = "https://hooks.example.com/locks"


@pytest.fixture(params=["sqlite"])
def store(request):
    return request.param


@pytest.fixture(scope="module")
def public_only_server(tmp_path_factory):
    """A server that sends only to public addresses."""
    server = Server(f"sqlite:///{tmp_path_factory.mktemp('public_only_server')}/x.db", ROOT_KEY=ROOT_KEY).start()
    yield server
    server.close()


@pytest.fixture
def alice(server):
    return agent(server, "alice-1")


@pytest.fixture
def bob(server):
    return agent(server, "bob-1")


@pytest.fixture
def lock_hook(alice):
    webhook = []

    def make(url, by=alice, **fields):
        webhook.append((by, success(by.post("/webhooks", {"url": url, **fields}), 201)))
        return webhook[-1][1]

    yield make
    for by, each in webhook:
        by.delete(f"/webhooks/{each['id']}")


# -- the routes --------------------------------------------------------------------------------------------------


def test_a_webhook_is_returned_in_octostore_order_without_its_secret(alice, lock_hook):
    webhook = lock_hook("https://Hooks.Example.com", secret="my-secret-key", events=["acquired"], lock_pattern="jobs/*")
    assert list(webhook)[:8] == ["id", "user_id", "url", "secret", "events", "lock_pattern", "created_at", "active"]
    assert webhook["id"] == str(uuid.UUID(webhook["id"]))
    assert webhook["user_id"] == str(uuid.UUID(webhook["user_id"]))
    assert (webhook["url"], webhook["secret"]) == ("https://hooks.example.com/", "****")
    assert (webhook["events"], webhook["lock_pattern"], webhook["active"]) == (["acquired"], "jobs/*", True)
    assert webhook["created_at"].endswith("Z")
    plain = lock_hook(HERE, events=None, lock_pattern=None)
    assert (plain["secret"], plain["events"], plain["lock_pattern"]) == (None, ["*"], None)
    assert lock_hook(HERE, events=[])["events"] == []
    listed = alice.get("/webhooks").json
    assert {each["id"] for each in listed} >= {webhook["id"], plain["id"]}
    assert all("agent_contract" not in each for each in listed)
    assert "my-secret-key" not in alice.get("/webhooks").raw.decode()


def test_users_see_only_their_own_webhooks(alice, bob, admin, lock_hook):
    webhook = lock_hook(HERE)
    assert webhook["id"] not in bob.get("/webhooks").raw.decode()
    refused(bob.delete(f"/webhooks/{webhook['id']}"), 404, "not_found", "Resource not found")
    refused(alice.delete(f"/webhooks/{uuid.uuid4()}"), 404, "not_found", "Resource not found")
    assert webhook["id"] in {each["webhook_id"] for each in admin.get("/v1/webhooks").json["webhooks"]}
    answer = alice.delete(f"/webhooks/{webhook['id'].upper()}")
    assert (answer.status, answer.raw) == (204, b"")
    refused(alice.delete(f"/webhooks/{webhook['id']}"), 404, "not_found", "Resource not found")


def test_a_malformed_body_is_refused_before_authentication(server, alice):
    malformed(server.anyone.delete("/webhooks/none"), 400)
    malformed(server.anyone.post("/webhooks", {}), 422)
    malformed(server.anyone.post("/webhooks", {"url": 1}), 422)
    malformed(server.anyone.send("POST", "/webhooks", b"{", Content_Type="application/json"), 400)
    malformed(server.anyone.post("/webhooks", NOTHING), 415)
    refused(server.anyone.post("/webhooks", {"url": "nonsense"}), 401, "authentication_required")
    refused(server.anyone.get("/webhooks"), 401, "authentication_required")
    refused(server.anyone.delete(f"/webhooks/{uuid.uuid4()}"), 401, "authentication_required")


@pytest.mark.parametrize(
    ("url", "events"),
    [
        ("nonsense", None),
        ("http://hooks.example.com/", None),
        ("https:///path", None),
        ("https://user:pass@hooks.example.com/", None),
        ("https://user@hooks.example.com/", None),
        ("https://localhost/", None),
        ("https://LocalHost:8443/", None),
        ("https://127.0.0.1/", None),
        ("https://10.1.2.3/", None),
        ("https://192.0.1.1/", None),
        ("https://169.254.169.254/", None),
        ("https://[::1]/", None),
        ("https://[::ffff:10.0.0.1]/", None),
        ("https://0x7f.1/", None),
        (HERE, ["claimed"]),
        (HERE, ["Acquired"]),
        (HERE, ["acquired", ""]),
    ],
)
def test_urls_and_events_that_octostore_refuses_are_refused(public_only_server, url, events):
    body = refused(root(public_only_server).post("/webhooks", {"url": url, "events": events}), 400, "invalid_input")
    assert body["details"].startswith("Invalid input: ")
    assert root(public_only_server).get("/webhooks").json == []


@pytest.mark.parametrize(
    "url", ["https://localhost./", "https://hooks.example.com:8443/x", "https://8.8.8.8/", "https://[2606:4700::1111]/"]
)
def test_urls_that_octostore_accepts_are_accepted(public_only_server, url):
    caller = agent(public_only_server)
    webhook = success(caller.post("/webhooks", {"url": url, "lock_pattern": "x" * 256, "secret": "é" * 1024}), 201)
    assert webhook["url"] == url
    assert caller.delete(f"/webhooks/{webhook['id']}").status == 204


@pytest.mark.parametrize(
    "more", [{"lock_pattern": "x" * 257}, {"secret": "x" * 1025}, {"url": f"{HERE}/{'x' * 2048}"}, {"secret": "a\0b"}]
)
def test_values_that_are_too_long_or_contain_nul_are_refused(public_only_server, more):
    refused(root(public_only_server).post("/webhooks", {"url": HERE, **more}), 400, "invalid_input")
    assert root(public_only_server).get("/webhooks").json == []


def test_repeated_events_are_stored_once(public_only_server):
    webhook = success(
        root(public_only_server).post("/webhooks", {"url": HERE, "events": ["renewed", "acquired"] * 50_000}), 201
    )
    assert webhook["events"] == ["renewed", "acquired"]
    assert root(public_only_server).delete(f"/webhooks/{webhook['id']}").status == 204


def test_a_user_has_at_most_ten_webhooks(public_only_server):
    caller, other = agent(public_only_server, "alice-2"), agent(public_only_server, "bob-2")
    webhook = [success(caller.post("/webhooks", {"url": HERE}), 201)["id"] for _ in range(10)]
    refused(caller.post("/webhooks", {"url": HERE}), 400, "invalid_input")
    refused(caller.post("/webhooks", {"url": "https://localhost/"}), 400, "invalid_input")
    success(other.post("/webhooks", {"url": HERE}), 201)
    assert caller.delete(f"/webhooks/{webhook[0]}").status == 204
    success(caller.post("/webhooks", {"url": HERE}), 201)


# -- the messages ------------------------------------------------------------------------------------------------


def test_a_message_has_the_octostore_body_and_both_signatures(alice, lock_hook, receiver, path):
    secret, lock = "my-secret-key", fresh("jobs")
    webhook = lock_hook(receiver.url(path), secret=secret, lock_pattern="jobs*")
    lease = acquired(alice.acquire(lock))
    alice.renew(lock, lease["lease_id"])
    alice.acquire(lock)
    alice.release(lock, lease["lease_id"])
    messages = receiver.await_messages(path, 4)
    assert [message.json["event"] for message in messages] == ["acquired", "renewed", "renewed", "released"]
    for message in messages:
        body = message.json
        assert list(body) == ["event", "lock", "holder_id", "fencing_token", "timestamp"]
        assert (body["lock"], body["fencing_token"]) == (lock, lease["fencing_token"])
        assert body["holder_id"] == pseudonym(webhook["user_id"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00", body["timestamp"])
        assert message.headers["user-agent"] == "OctoStore-Webhook/1.0"
        digest = hmac.new(secret.encode(), message.raw, hashlib.sha256).hexdigest()
        assert message.headers["x-octostore-signature"] == f"sha256={digest}"
        message.verify(b64encode(secret.encode()).decode())


def test_messages_without_a_secret_are_not_signed(alice, lock_hook, receiver, path):
    lock_hook(receiver.url(path))
    acquired(alice.acquire(fresh("lock")))
    (message,) = receiver.await_messages(path, 1)
    assert not {"x-octostore-signature", "webhook-signature"} & message.headers.keys()
    assert message.id


def test_messages_are_sent_for_own_locks_only_including_ephemeral_ones(server, alice, lock_hook, receiver, path):
    bob = agent(server, "bob-1")
    lock_hook(receiver.url(path))
    other = f"{path}/bob"
    lock_hook(receiver.url(other), by=bob, events=["released", "acquired"])
    theirs, mine, ours = fresh("lock"), fresh("lock"), fresh("lock")
    held = acquired(bob.acquire(theirs))
    alice.claim(fresh("job"))
    session = success(alice.open_session(), 201)["session_id"]
    acquired(alice.acquire(mine, session_id=session, ephemeral=True))
    alice.delete(f"/sessions/{session}")
    acquired(alice.acquire(ours))
    bob.renew(theirs, held["lease_id"])
    bob.release(theirs, held["lease_id"])
    messages = receiver.await_messages(path, 3)
    by_lock = {lock: [each.json["event"] for each in messages if each.json["lock"] == lock] for lock in (mine, ours)}
    assert by_lock == {mine: ["acquired", "released"], ours: ["acquired"]}
    assert {each.json["holder_id"] for each in messages if each.json["lock"] == mine} == {pseudonym(session)}
    assert [each.json["event"] for each in receiver.await_messages(other, 2)] == ["acquired", "released"]
    assert {each.json["lock"] for each in receiver.on(other)} == {theirs}


def test_an_expired_lock_is_sent(alice, lock_hook, receiver, path):
    lock = fresh("lock")
    lock_hook(receiver.url(path), events=["expired"], lock_pattern=lock)
    acquired(alice.acquire(lock, ttl_seconds=1))
    (message,) = receiver.await_messages(path, 1)
    assert message.json["event"] == "expired"


def test_an_empty_list_of_events_sends_nothing_and_failures_are_retried(alice, admin, lock_hook, receiver, path):
    lock_hook(receiver.url(f"{path}/never"), events=[])
    webhook = lock_hook(receiver.url(path, 500, 204))
    acquired(alice.acquire(fresh("lock")))
    first, second = receiver.await_messages(path, 2)
    assert first.id == second.id
    where = f"/v1/webhooks/{webhook['id']}"
    wait_until(lambda: admin.get(where).json["deliveries"] == {"delivered": 1})
    assert receiver.on(f"{path}/never") == []
    for body in ({"url": HERE}, {"events": ["*"]}, {"subject": "x"}):
        assert admin.send_json("PATCH", where, body).status == 400
    assert admin.post(f"{where}/rotate", {}).status == 400
    admin.post(f"{where}/test")
    assert receiver.await_messages(path, 3)[2].json["event"] == "test"
