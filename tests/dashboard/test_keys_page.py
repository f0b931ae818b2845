"""Keys page: administrators create, rotate and revoke keys; every key sees the usage."""

import re

import pytest
from playwright.sync_api import expect

from tests.dashboard.client import DashboardClient, text_of
from tests.dashboard.conftest import sign_in
from tests.http.job_client import Agent

pytest_plugins = ["tests.http.plan_servers"]


@pytest.fixture
def client(server):
    return DashboardClient(server.port).sign_in()


def bearer(server, key):
    return Agent(server.port, {"Authorization": f"Bearer {key}"}, "somebody", key)


def shown(page):
    return re.search(r"hf_(?:live|test)_\w+", page)[0]


def test_a_key_is_created_shown_once_used_rotated_and_revoked(browse, server, root):
    page = browse(path="/ui/keys")
    if not page.get_by_label("Name", exact=True).is_visible():
        page.get_by_text("Create a key…").click()
    page.get_by_label("Name", exact=True).fill("nightly worker")
    page.locator("[name=scope-jobs]").check()
    page.get_by_label("Name prefix").fill("nightly/")
    page.get_by_label("Expires").select_option("in 7 days")
    page.get_by_role("button", name="Create key").click()
    key = page.locator("#secret").text_content()
    worker = bearer(server, key)
    assert worker.get("/v1/jobs/nightly/backup").status == 200
    assert worker.get("/v1/jobs/daily/backup").status == 403
    assert worker.post("/v1/tasks", {"type": "x", "payload": {}}).status == 403
    page.goto("/ui/keys")
    assert key not in page.content()  # this once
    page.get_by_role("link", name="nightly worker").click()
    expect(page.locator("#key")).to_contain_text("names with prefix nightly/")
    page.get_by_text("Rotate…").click()
    page.get_by_label("Grace period").select_option("stop at once")
    page.get_by_role("button", name="Rotate").click()
    renewed = page.locator("#secret").text_content()
    assert worker.get("/v1/jobs/nightly/backup").status == 401
    assert bearer(server, renewed).get("/v1/jobs/nightly/backup").status == 200
    page.get_by_text("Revoke…").click()
    page.get_by_label("Confirm").check()
    page.get_by_role("button", name="Revoke key").click()
    expect(page.get_by_text("Other servers refuse it within five seconds.")).to_be_visible()
    expect(page.locator("#key")).to_contain_text("revoked")
    assert bearer(server, renewed).get("/v1/jobs/nightly/backup").status == 401
    key_id = page.url.rpartition("/")[2].partition("?")[0]
    actor = root.get("/v1/account").json["key"]["keyId"]
    events = root.get(f"/v1/events?subject=principal:{key_id}").json["events"]
    assert [(event["kind"], event["actor"]) for event in events] == [
        (f"principal.{verb}", actor) for verb in ("created", "rotated", "revoked")
    ]


def test_a_new_key_has_at_most_its_creators_scopes_and_needs_a_name_and_a_scope(server, client):
    token = client.token()
    for fields in ({"name": "x"}, {"scope-read": "yes"}, {"name": "x" * 129, "scope-read": "yes"}):
        assert client.post("/ui/keys", act="create", token=token, **fields)[0] == 400, fields
    made = client.post(
        "/ui/keys", **{"act": "create", "token": token, "name": "short", "scope-admin": "yes", "days": "1"}
    )
    assert made[0] == 200
    assert made[1]["Cache-Control"] == "no-store"
    short = DashboardClient(server.port).sign_in(shown(made[2]))
    longer = {"act": "create", "token": short.token(), "name": "longer", "scope-read": "yes", "days": "30"}
    status, _, page = short.post("/ui/keys", **longer)
    assert (status, "your own key expires before that" in page) == (403, True)


def test_configured_keys_cannot_be_changed(client, root):
    own = root.get("/v1/account").json["key"]["keyId"]
    page = client.get(f"/ui/keys/{own}")[2]
    assert "server settings" in text_of(page)
    assert 'value="rotate"' not in page
    token = client.token()
    assert client.post(f"/ui/keys/{own}", act="rotate", token=token)[0] == 409
    assert client.post(f"/ui/keys/{own}", act="revoke", token=token, sure="yes")[0] == 409
    assert client.post(f"/ui/keys/{own}", act="revoke", token=token)[0] == 400
    assert client.get("/ui/keys/nobody")[0] == 404


def test_a_read_only_key_sees_usage_and_no_keys(server, root):
    made = root.post("/v1/keys", {"name": "reader", "scopes": ["read"]}).json
    reader = DashboardClient(server.port).sign_in(made["apiKey"])
    status, _, page = reader.get("/ui/keys")
    assert (status, "tasks created this month" in page, "Create a key" in page) == (200, True, False)
    assert made["keyId"] not in page
    assert reader.get(f"/ui/keys/{made['keyId']}")[0] == 404
    for act in ("create", "rotate", "revoke"):
        assert reader.post(f"/ui/keys/{made['keyId']}", act=act, token=reader.token(), name="x", sure="yes")[0] == 403
    foreign = DashboardClient(server.port).sign_in(root.post("/v1/keys/register", {}).json["apiKey"])
    assert foreign.get(f"/ui/keys/{made['keyId']}")[0] == 404
    assert foreign.post(f"/ui/keys/{made['keyId']}", act="revoke", token=foreign.token(), sure="yes")[0] == 404


def test_the_usage_of_a_plan_is_shown(server_with_plan):
    server = server_with_plan("memory", "rated")
    key = bearer(server, "").post("/v1/keys/register", {}).json["apiKey"]
    account = bearer(server, key)
    for _ in range(2):
        assert account.post("/v1/tasks", {"type": "counted", "payload": {}}).status == 201
    page = " ".join(text_of(DashboardClient(server.port).sign_in(key).get("/ui/keys")[2]).split())
    assert "tasks created this month 2" in page
    assert "create requests this hour 2 of 5" in page


def test_revoking_a_key_ends_its_browser_session(browse, stranger, server, root):
    made = root.post("/v1/keys", {"name": "short-lived", "scopes": ["admin"]}).json
    page = stranger()
    sign_in(page, made["apiKey"], f"/ui/keys/{made['keyId']}")
    page.get_by_text("Revoke…").click()
    page.get_by_label("Confirm").check()
    page.get_by_role("button", name="Revoke key").click()
    expect(page.get_by_label("Key")).to_be_visible()
