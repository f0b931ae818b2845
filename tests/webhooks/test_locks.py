"""OctoStore's webhooks: its checks in its order, its bodies and signatures; and ours beside them."""

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
def strict(tmp_path_factory):
    """A server that sends nowhere but to the open internet."""
    server = Server(f"sqlite:///{tmp_path_factory.mktemp('strict')}/x.db", ROOT_KEY=ROOT_KEY).start()
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
    made = []

    def make(url, by=alice, **fields):
        made.append((by, success(by.post("/webhooks", {"url": url, **fields}), 201)))
        return made[-1][1]

    yield make
    for by, each in made:
        by.delete(f"/webhooks/{each['id']}")


# -- the routes --------------------------------------------------------------------------------------------------


def test_a_webhook_is_shown_in_octostore_s_order_without_its_secret(alice, lock_hook):
    made = lock_hook("https://Hooks.Example.com", secret="my-secret-key", events=["acquired"], lock_pattern="jobs/*")
    assert list(made)[:8] == ["id", "user_id", "url", "secret", "events", "lock_pattern", "created_at", "active"]
    assert made["id"] == str(uuid.UUID(made["id"]))
    assert made["user_id"] == str(uuid.UUID(made["user_id"]))
    assert (made["url"], made["secret"]) == ("https://hooks.example.com/", "****")
    assert (made["events"], made["lock_pattern"], made["active"]) == (["acquired"], "jobs/*", True)
    assert made["created_at"].endswith("Z")
    plain = lock_hook(HERE, events=None, lock_pattern=None)
    assert (plain["secret"], plain["events"], plain["lock_pattern"]) == (None, ["*"], None)
    assert lock_hook(HERE, events=[])["events"] == []
    listed = alice.get("/webhooks").json
    assert {each["id"] for each in listed} >= {made["id"], plain["id"]}
    assert all("agent_contract" not in each for each in listed)
    assert "my-secret-key" not in alice.get("/webhooks").raw.decode()


def test_they_are_a_user_s_own(alice, bob, boss, lock_hook):
    made = lock_hook(HERE)
    assert made["id"] not in bob.get("/webhooks").raw.decode()
    refused(bob.delete(f"/webhooks/{made['id']}"), 404, "not_found", "Resource not found")
    refused(alice.delete(f"/webhooks/{uuid.uuid4()}"), 404, "not_found", "Resource not found")
    assert made["id"] in {each["webhook_id"] for each in boss.get("/v1/webhooks").json["webhooks"]}
    answer = alice.delete(f"/webhooks/{made['id'].upper()}")
    assert (answer.status, answer.raw) == (204, b"")
    refused(alice.delete(f"/webhooks/{made['id']}"), 404, "not_found", "Resource not found")


def test_what_cannot_be_read_comes_before_who_asks(server, alice):
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
def test_what_octostore_refuses_is_refused(strict, url, events):
    body = refused(root(strict).post("/webhooks", {"url": url, "events": events}), 400, "invalid_input")
    assert body["details"].startswith("Invalid input: ")
    assert root(strict).get("/webhooks").json == []


@pytest.mark.parametrize(
    "url", ["https://localhost./", "https://hooks.example.com:8443/x", "https://8.8.8.8/", "https://[2606:4700::1111]/"]
)
def test_what_octostore_takes_is_taken(strict, url):
    caller = agent(strict)
    made = success(caller.post("/webhooks", {"url": url, "lock_pattern": "x" * 256, "secret": "é" * 1024}), 201)
    assert made["url"] == url
    assert caller.delete(f"/webhooks/{made['id']}").status == 204


@pytest.mark.parametrize(
    "more", [{"lock_pattern": "x" * 257}, {"secret": "x" * 1025}, {"url": f"{HERE}/{'x' * 2048}"}, {"secret": "a\0b"}]
)
def test_what_nobody_needs_is_not_kept(strict, more):
    refused(root(strict).post("/webhooks", {"url": HERE, **more}), 400, "invalid_input")
    assert root(strict).get("/webhooks").json == []


def test_an_event_that_is_named_often_is_kept_once(strict):
    made = success(root(strict).post("/webhooks", {"url": HERE, "events": ["renewed", "acquired"] * 50_000}), 201)
    assert made["events"] == ["renewed", "acquired"]
    assert root(strict).delete(f"/webhooks/{made['id']}").status == 204


def test_a_user_has_ten_and_no_more(strict):
    caller, other = agent(strict, "alice-2"), agent(strict, "bob-2")
    made = [success(caller.post("/webhooks", {"url": HERE}), 201)["id"] for _ in range(10)]
    refused(caller.post("/webhooks", {"url": HERE}), 400, "invalid_input")
    refused(caller.post("/webhooks", {"url": "https://localhost/"}), 400, "invalid_input")
    success(other.post("/webhooks", {"url": HERE}), 201)
    assert caller.delete(f"/webhooks/{made[0]}").status == 204
    success(caller.post("/webhooks", {"url": HERE}), 201)


# -- the messages ------------------------------------------------------------------------------------------------


def test_a_message_has_exactly_octostore_s_body_and_both_signatures(alice, lock_hook, receiver, path):
    secret, lock = "my-secret-key", fresh("jobs")
    made = lock_hook(receiver.url(path), secret=secret, lock_pattern="jobs*")
    lease = acquired(alice.acquire(lock))
    alice.renew(lock, lease["lease_id"])
    alice.acquire(lock)
    alice.release(lock, lease["lease_id"])
    told = receiver.await_messages(path, 4)
    assert [message.json["event"] for message in told] == ["acquired", "renewed", "renewed", "released"]
    for message in told:
        body = message.json
        assert list(body) == ["event", "lock", "holder_id", "fencing_token", "timestamp"]
        assert (body["lock"], body["fencing_token"]) == (lock, lease["fencing_token"])
        assert body["holder_id"] == pseudonym(made["user_id"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00", body["timestamp"])
        assert message.headers["user-agent"] == "OctoStore-Webhook/1.0"
        digest = hmac.new(secret.encode(), message.raw, hashlib.sha256).hexdigest()
        assert message.headers["x-octostore-signature"] == f"sha256={digest}"
        message.verify(b64encode(secret.encode()).decode())


def test_without_a_secret_nothing_is_signed(alice, lock_hook, receiver, path):
    lock_hook(receiver.url(path))
    acquired(alice.acquire(fresh("lock")))
    (message,) = receiver.await_messages(path, 1)
    assert not {"x-octostore-signature", "webhook-signature"} & message.headers.keys()
    assert message.id


def test_only_one_s_own_locks_are_told_ephemeral_ones_too(server, alice, lock_hook, receiver, path):
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
    told = receiver.await_messages(path, 3)
    by_lock = {lock: [each.json["event"] for each in told if each.json["lock"] == lock] for lock in (mine, ours)}
    assert by_lock == {mine: ["acquired", "released"], ours: ["acquired"]}
    assert {each.json["holder_id"] for each in told if each.json["lock"] == mine} == {pseudonym(session)}
    assert [each.json["event"] for each in receiver.await_messages(other, 2)] == ["acquired", "released"]
    assert {each.json["lock"] for each in receiver.on(other)} == {theirs}


def test_a_lock_that_ran_out_is_told(alice, lock_hook, receiver, path):
    lock = fresh("lock")
    lock_hook(receiver.url(path), events=["expired"], lock_pattern=lock)
    acquired(alice.acquire(lock, ttl_seconds=1))
    (message,) = receiver.await_messages(path, 1)
    assert message.json["event"] == "expired"


def test_an_empty_list_of_events_never_fires_and_failures_are_tried_again(alice, boss, lock_hook, receiver, path):
    lock_hook(receiver.url(f"{path}/never"), events=[])
    made = lock_hook(receiver.url(path, 500, 204))
    acquired(alice.acquire(fresh("lock")))
    first, second = receiver.await_messages(path, 2)
    assert first.id == second.id
    where = f"/v1/webhooks/{made['id']}"
    wait_until(lambda: boss.get(where).json["deliveries"] == {"delivered": 1})
    assert receiver.on(f"{path}/never") == []
    for body in ({"url": HERE}, {"events": ["*"]}, {"subject": "x"}):
        assert boss.send_json("PATCH", where, body).status == 400
    assert boss.post(f"{where}/rotate", {}).status == 400
    boss.post(f"{where}/test")
    assert receiver.await_messages(path, 3)[2].json["event"] == "test"
