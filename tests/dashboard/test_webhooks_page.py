"""Webhooks page: deliveries, dead letters, replay, pause and rotation."""

import re

import pytest
from playwright.sync_api import expect

from tests.dashboard.client import DashboardClient, text_of
from tests.dashboard.conftest import sign_in
from tests.http.job_client import ROOT_KEY, fresh, root
from tests.support import wait_until
from tests.webhooks.conftest import sending
from tests.webhooks.receiver import Receiver


@pytest.fixture(scope="module")
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture(scope="module")
def server():
    running = sending("memory:").start()
    yield running
    running.close()


@pytest.fixture
def client(server):
    return DashboardClient(server.port).sign_in()


@pytest.fixture
def hook(server, receiver):
    """Create a webhook for the events of one job; it is deleted after the test."""
    made = []

    def hook(job, *plan):
        fields = {"url": receiver.url(f"/{job}", *plan or (200,)), "subject": f"lease:{job}", "events": ["lease.*"]}
        answer = root(server).post("/v1/webhooks", fields)
        assert answer.status == 201, answer
        made.append(answer.json)
        return answer.json

    yield hook
    for each in made:
        root(server).delete(f"/v1/webhooks/{each['webhook_id']}")


def counts(server, hook):
    return root(server).get(f"/v1/webhooks/{hook['webhook_id']}").json["deliveries"]


def test_dead_deliveries_are_shown_and_replayed(stranger, server, receiver, hook):
    job = fresh()
    made = hook(job, 500, 500, 500, 200)
    root(server).claim(job, "somebody")
    wait_until(lambda: counts(server, made).get("dead"), 30)
    page = stranger()
    sign_in(page, ROOT_KEY, "/ui/webhooks")
    row = page.get_by_role("row", name=job)
    expect(row).to_contain_text("failing")
    row.get_by_role("link", name=job).click()
    expect(page.locator("#deliveries")).to_contain_text("lease.claimed")
    expect(page.locator("#deliveries")).to_contain_text("500")
    page.get_by_role("button", name="Replay 1 dead").click()
    expect(page.get_by_text("Replayed with the same message ids")).to_be_visible()
    expect(page.locator("#deliveries")).to_contain_text("delivered")  # by itself
    assert len({message.id for message in receiver.on(f"/{job}")}) == 1


def test_a_webhook_is_tested_paused_resumed_and_replayed(client, server, receiver, hook):
    job = fresh()
    made = hook(job)
    address = f"/ui/webhooks/{made['webhook_id']}"
    token = client.token()
    assert client.post(address, act="test", token=token)[0] == 303
    receiver.await_messages(f"/{job}", 1)
    wait_until(lambda: "answered 200" in client.get(address)[2], 30)
    assert client.post(address, act="pause", token=token)[1]["Location"].endswith("?done=paused")
    assert root(server).get(f"/v1/webhooks/{made['webhook_id']}").json["state"] == "paused"
    root(server).claim(job, "somebody")
    assert client.post(address, act="resume", token=token)[1]["Location"].endswith("?done=resumed")
    wait_until(lambda: counts(server, made).get("delivered", 0) >= 2, 30)
    page = client.get(address)[2]
    (seq,) = set(re.findall(r'name="seq" value="(\d+)"', page))
    assert client.post(address, act="replay", seq=seq, token=token)[0] == 303
    receiver.await_messages(f"/{job}", 3)
    assert client.post(address, act="replay", seq="999999", token=token)[0] == 404
    assert client.post(address, act="replay", seq="x", token=token)[0] == 404


def test_a_new_secret_is_shown_once_and_signs(client, server, receiver, hook):
    job = fresh()
    made = hook(job)
    address = f"/ui/webhooks/{made['webhook_id']}"
    status, _, page = client.post(address, act="rotate", grace="0", token=client.token())
    assert status == 200
    secret = re.search(r"whsec_[A-Za-z0-9+/=]+", text_of(page))[0]
    assert secret != made["secret"]
    assert "hash" not in text_of(page), "it is kept as it is, to sign with"
    assert secret not in text_of(client.get(address)[2])
    root(server).claim(job, "somebody")
    receiver.await_messages(f"/{job}", 1)[0].verify(secret)


def test_only_administrators_see_webhooks(server, client, hook):
    made = hook(fresh())
    address = f"/ui/webhooks/{made['webhook_id']}"
    key = root(server).post("/v1/keys", {"name": "reader", "scopes": ["read"]}).json["apiKey"]
    reader = DashboardClient(server.port).sign_in(key)
    foreign = DashboardClient(server.port).sign_in(root(server).post("/v1/keys/register", {}).json["apiKey"])
    assert (reader.get("/ui/webhooks")[0], reader.get(address)[0], foreign.get(address)[0]) == (403, 403, 404)
    assert "No webhooks yet" in text_of(foreign.get("/ui/webhooks")[2])
    for act in ("test", "pause", "resume", "rotate", "replay"):
        assert reader.post(address, act=act, token=reader.token())[0] == 403
        assert foreign.post(address, act=act, token=foreign.token())[0] == 404
        assert client.post(address, act=act, token="0" * 64)[0] == 403
    assert root(server).get(f"/v1/webhooks/{made['webhook_id']}").json["state"] == "active"
