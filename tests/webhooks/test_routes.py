"""`/v1/webhooks`: bounds, filters, pages and limits; secrets are never returned again."""

import re
import time

import msgspec
import pytest
from msgspec.structs import astuple

from holdfast.core.event import Event
from holdfast.core.webhooks.delivery import Delivery
from holdfast.operations.bounds import REPLAYED_DELIVERIES
from holdfast.store.sql import delivery_queries
from tests.compat.octostore.server import Server
from tests.http.job_client import ROOT_KEY, Agent, claimed, fresh, ok, pointers, problem, root
from tests.http.replies import done
from tests.store_inspection import assert_store_is_consistent, opened
from tests.support import every, wait_until
from tests.webhooks.conftest import sending

HERE = "https://hooks.example.com/x"


@pytest.fixture(params=["sqlite"])
def store(request):
    return request.param


@pytest.fixture(scope="module")
def public_only_server(tmp_path_factory):
    server = Server(f"sqlite:///{tmp_path_factory.mktemp('public_only_server')}/x.db", ROOT_KEY=ROOT_KEY).start()
    yield root(server)
    server.close()


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, "/url"),
        ({"url": "http://hooks.example.com/"}, "/url"),
        ({"url": "https://hooks.example.com:8443/"}, "/url"),
        ({"url": "https://8.8.8.8/"}, "/url"),
        ({"url": "https://localhost./"}, "/url"),
        ({"url": "https://999.1.1.1/"}, "/url"),
        ({"url": "nonsense"}, "/url"),
        ({"url": "https://" + "a" * 3000 + ".com/"}, "/url"),
        ({"url": HERE, "events": "task.*"}, "/events"),
        ({"url": HERE, "events": ["Task.*"]}, "/events"),
        ({"url": HERE, "events": ["task"]}, "/events"),
        ({"url": HERE, "events": ["*"] * 21}, "/events"),
        ({"url": HERE, "subject": "x" * 1025}, "/subject"),
        ({"url": HERE, "subject": "a\0b"}, "/subject"),
    ],
)
def test_an_invalid_webhook_is_refused_with_the_pointer_of_the_field(public_only_server, body, wrong):
    assert wrong in pointers(problem(public_only_server.post("/v1/webhooks", body), 400, "invalid_request"))
    assert public_only_server.get("/v1/webhooks").json["webhooks"] == []


def test_a_webhook_is_created_read_changed_and_deleted(admin, hook):
    webhook = hook(HERE, subject="lease:deploy/*")
    where = f"/v1/webhooks/{webhook['webhook_id']}"
    assert re.fullmatch(r"whk_[0-9A-Z]{26}", webhook["webhook_id"])
    assert (webhook["events"], webhook["subject"], webhook["state"], webhook["family"]) == (
        ["*"], "lease:deploy/*", "active", "standard",
    )  # fmt: skip
    seen = ok(admin.get(where))
    assert "secret" not in seen
    assert seen["deliveries"] == {}
    changed = ok(admin.send_json("PATCH", where, {"url": f"{HERE}/2", "events": ["task.dead_lettered"], "subject": ""}))
    assert (changed["url"], changed["events"], changed["subject"]) == (f"{HERE}/2", ["task.dead_lettered"], None)
    assert ok(admin.send_json("PATCH", where, {}))["url"] == f"{HERE}/2"
    assert pointers(problem(admin.send_json("PATCH", where, {"state": "disabled"}), 400, "invalid_request")) == {
        "/state"
    }
    for wrong in ({"grace_seconds": -1}, {"grace_seconds": 604801}):
        problem(admin.post(f"{where}/rotate", wrong), 400, "invalid_request")
    assert ok(admin.delete(where)) | {"agent_contract": None} == {
        "webhook_id": webhook["webhook_id"], "deleted": True, "agent_contract": None,
    }  # fmt: skip
    for answer in (
        admin.get(where),
        admin.delete(where),
        admin.send_json("PATCH", where, {"state": "paused"}),
        admin.post(f"{where}/rotate", {}),
        admin.post(f"{where}/test"),
        admin.get(f"{where}/deliveries"),
        admin.post(f"{where}/replay", {}),
        admin.get("/v1/webhooks/%00"),
    ):
        problem(answer, 404, "webhook_not_found")


def test_deliveries_are_listed_in_pages(admin, hook, receiver, path):
    webhook = hook(receiver.url(path), events=["task.never"])
    where = f"/v1/webhooks/{webhook['webhook_id']}"
    sent = [ok(admin.post(f"{where}/test"))["delivery"]["seq"] for _ in range(5)]
    wait_until(lambda: ok(admin.get(where))["deliveries"] == {"delivered": 5})
    seen, cursor = [], ""
    while cursor is not None:
        page = ok(admin.get(f"{where}/deliveries?limit=2{cursor and '&cursor='}{cursor}"))
        assert page["hasMore"] == (page["nextCursor"] is not None)
        seen += [each["seq"] for each in page["deliveries"]]
        cursor = page["nextCursor"]
    assert seen == sorted(sent, reverse=True)
    assert ok(admin.get(f"{where}/deliveries?state=dead"))["deliveries"] == []
    for wrong in ("?state=lost", "?limit=0", "?cursor=x"):
        problem(admin.get(f"{where}/deliveries{wrong}"), 400, "invalid_request")
    problem(admin.post(f"{where}/replay", {"seq": 1, "after": 1}), 400, "invalid_request")
    problem(admin.post(f"{where}/replay", {"seq": 1}), 404, "webhook_not_found")


@pytest.fixture(scope="module")
def slow_retry_server(tmp_path_factory):
    """A server that retries after an hour, and its file."""
    url = f"sqlite:///{tmp_path_factory.mktemp('slow_retry_server')}/x.db"
    server = sending(url, WEBHOOK_RETRIES="3600,3600").start()
    yield root(server), url
    server.close()


def test_a_long_replay_continues_at_next_after(slow_retry_server):
    admin, url = slow_retry_server
    webhook = done(admin.post("/v1/webhooks", {"url": HERE}), 201)
    where = f"/v1/webhooks/{webhook['webhook_id']}"
    ok(admin.send_json("PATCH", where, {"state": "paused"}))
    settled = {"state": "delivered", "settled_at": time.time_ns() // 1_000}
    with opened(url) as store, store.write() as (execute, _):
        messages = [Delivery("default", webhook["webhook_id"], seq, f"task:{seq}", "task.created", "{}", 0, **settled)
                for seq in range(-REPLAYED_DELIVERIES - 2, 0)]  # fmt: skip
        execute(delivery_queries.ADD, msgspec.json.encode([astuple(each) for each in messages]).decode())
    first = ok(admin.post(f"{where}/replay", {"after": -REPLAYED_DELIVERIES - 3}))
    assert (first["replayed"], first["hasMore"], first["nextAfter"]) == (REPLAYED_DELIVERIES, True, -3)
    assert first["agent_contract"]["next_actions"][0]["action"] == "replay_deliveries"
    rest = ok(admin.post(f"{where}/replay", {"after": first["nextAfter"]}))
    assert (rest["replayed"], rest["hasMore"], rest["nextAfter"]) == (2, False, None)
    ok(admin.delete(where))


def test_a_changed_url_or_a_resume_retries_pending_deliveries_at_once(slow_retry_server, receiver, path):
    admin, _ = slow_retry_server
    old = receiver.url(f"{path}/old", 500)
    webhook = done(admin.post("/v1/webhooks", {"url": old, "events": ["task.never"]}), 201)
    where = f"/v1/webhooks/{webhook['webhook_id']}"

    def await_attempts(count):
        wait_until(lambda: ok(admin.get(f"{where}/deliveries"))["deliveries"][0]["attempts"] == count)

    ok(admin.post(f"{where}/test"))
    await_attempts(1)
    ok(admin.send_json("PATCH", where, {"url": receiver.url(path, 500, 204)}))
    await_attempts(2)
    for state in ("paused", "active"):
        ok(admin.send_json("PATCH", where, {"state": state}))
    receiver.await_messages(path, 2)


def test_a_key_with_a_prefix_cannot_use_webhooks(admin, server, hook):
    webhook = hook(HERE)
    bound = {"name": "bound", "scopes": ["admin"], "prefix": "deploy/"}
    key = done(admin.post("/v1/keys", bound), 201)["apiKey"]
    caller = Agent(server.port, {"Authorization": f"Bearer {key}"}, "bound", key)
    problem(caller.post("/v1/webhooks", {"url": HERE}), 403, "forbidden")
    problem(caller.send_json("PATCH", f"/v1/webhooks/{webhook['webhook_id']}", {"url": f"{HERE}/2"}), 403, "forbidden")
    problem(caller.post(f"/v1/webhooks/{webhook['webhook_id']}/rotate", {}), 403, "forbidden")
    problem(caller.delete(f"/v1/webhooks/{webhook['webhook_id']}"), 403, "forbidden")
    problem(caller.get(f"/v1/webhooks/{webhook['webhook_id']}"), 403, "forbidden")
    assert ok(admin.get(f"/v1/webhooks/{webhook['webhook_id']}"))["url"] == HERE


def test_an_account_has_at_most_fifty_webhooks(public_only_server):
    webhook = [done(public_only_server.post("/v1/webhooks", {"url": HERE}), 201)["webhook_id"] for _ in range(50)]
    problem(public_only_server.post("/v1/webhooks", {"url": HERE}), 409, "too_many_webhooks")
    ok(public_only_server.delete(f"/v1/webhooks/{webhook[0]}"))
    webhook[0] = done(public_only_server.post("/v1/webhooks", {"url": HERE}), 201)["webhook_id"]
    for each in webhook:
        ok(public_only_server.delete(f"/v1/webhooks/{each}"))


def test_a_large_event_is_sent_without_its_data(admin, hook, receiver, path):
    job = fresh()
    hook(receiver.url(path), subject=f"lease:{job}")
    lease = claimed(admin.claim(job, metadata={"text": "é" * 500}))["lease_id"]
    ok(admin.heartbeat(job, lease, note="\x01" * 4000))
    messages = receiver.await_messages(path, 2)
    assert all(len(message.raw) < 20_000 for message in messages)
    assert messages[0].json["data"]["data"]["metadata"] == {"text": "é" * 500}
    assert "truncated" not in messages[0].json["data"]
    large = messages[1].json["data"]
    assert (large["truncated"], large["data"], large["kind"]) == (True, {}, "lease.renewed")


# -- secrets -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_secrets_are_not_in_events_exports_or_later_responses(request, tmp_path, receiver, path, kind):
    url = f"sqlite:///{tmp_path}/x.db"
    if kind == "postgres":
        url = request.getfixturevalue("new_postgres_database")()
    server = sending(url).start()
    try:
        admin = root(server)
        address = receiver.url(f"{path}/canary-of-an-address", 410)
        webhook = done(admin.post("/v1/webhooks", {"url": address}), 201)
        where = f"/v1/webhooks/{webhook['webhook_id']}"
        rotated = ok(admin.post(f"{where}/rotate", {}))
        last = ok(admin.post(f"{where}/rotate", {}))
        chosen = "canary-of-a-chosen-secret"
        lock = done(admin.post("/webhooks", {"url": address, "secret": chosen}), 201)
        secrets = [webhook["secret"], rotated["secret"], last["secret"], chosen]
        ok(admin.post(f"{where}/test"))
        wait_until(lambda: ok(admin.get(where))["state"] == "disabled")
        looks = [
            "/v1/webhooks",
            where,
            f"{where}/deliveries",
            "/webhooks",
            "/v1/events?limit=1000",
            "/v1/account/export",
        ]
        looks += ["/v1/events?subject=webhook:*", "/status", "/admin/status", "/metrics/prometheus"]
        heard = "".join(admin.get(look).raw.decode() for look in looks)
        assert '"kind":"webhook.rotated"' in heard
        assert '"webhook.disabled"' in heard
        admin.delete(f"/webhooks/{lock['id']}")
        server.stop()
        server.output.seek(0)
        said = server.output.read().decode()
    finally:
        server.close()
    with opened(url) as store:
        messages = "".join(str(event) for event in every(store, Event))
    assert "webhook.removed" in messages
    assert "Holdfast is listening" in said
    for secret in secrets:
        bare = secret.removeprefix("whsec_")
        assert bare not in heard
        assert bare not in said
        assert bare not in messages
    assert "canary-of-an-address" not in messages
    assert "canary-of-an-address" not in said
    assert_store_is_consistent(url)
