"""Jobs, agents and elections pages: contents, permissions and actions, also by keyboard and without scripts."""

import re

import pytest
from playwright.sync_api import expect

from tests.dashboard.client import DashboardClient
from tests.http.job_client import ROOT_KEY, Callers, fresh
from tests.support import wait_until


@pytest.fixture
def client(server):
    return DashboardClient(server.port).sign_in()


def made_key(root, **more):
    return root.post("/v1/keys", {"name": fresh("key"), "scopes": ["read"], **more}).json["apiKey"]


# -- jobs --------------------------------------------------------------------------------------------------------


def test_jobs_are_found_by_name_prefix_and_paged(client, root):
    name_prefix = fresh("page")
    names = [f"{name_prefix}/{number:02d}" for number in range(52)]
    for name in names:
        root.claim(name, "owner", ttl_seconds=600)
    root.claim(f"{name_prefix}x", "another")
    _, _, first = client.get(f"/ui/jobs?q={name_prefix}/")
    found = re.findall(r'href="/ui/jobs/([^"?]+)"', first)
    assert found == names[:50]
    following = re.search(r'href="(\?[^"]*after=[^"]*)"', first)[1].replace("&amp;", "&")
    _, _, second = client.get(f"/ui/jobs{following}")
    assert re.findall(r'href="/ui/jobs/([^"?]+)"', second) == names[50:]


def test_an_offered_job_and_task_show_until_when_and_to_whom(client, root):
    job = fresh("offered")
    lease = root.claim(job, "giver", ttl_seconds=60).json["lease_id"]
    code = root.offer(job, lease, to="builder", expires_in_seconds=7200).json["offer"]
    page = client.get(f"/ui/jobs/{job}")[2]
    assert re.search(r"<dt>Offered</dt><dd>for another <time[^>]*>[^<]+</time> to the session builder", page)
    assert code not in page
    assert "offered</span>" in client.get("/ui/held")[2]
    task = root.post("/v1/tasks", {"type": "offered", "payload": {}}).json["id"]
    claimed = root.post(f"/v1/tasks/{task}/claim", {}).json
    assert root.post(f"/v1/tasks/{task}/offer", {"lease_id": claimed["leaseId"]}).status == 200
    assert "<dt>Offered</dt>" in client.get(f"/ui/tasks/{task}")[2]


def test_free_names_are_shown_on_request(client, root):
    job = fresh("free")
    lease = root.claim(job, "former").json["lease_id"]
    root.release_job(job, lease)
    assert job not in client.get(f"/ui/jobs?q={job}")[2].partition("<main")[2].partition("<table")[2]
    assert "former, released" in client.get(f"/ui/jobs?q={job}&state=all")[2]


def test_a_name_that_was_never_held_is_not_found(client):
    for path in (f"/ui/jobs/{fresh()}", "/ui/jobs/__election/some-room-id", "/ui/agents/nobody", "/ui/nothing"):
        assert client.get(path)[0] == 404, path


def test_an_administrator_force_releases_a_job_and_the_log_records_it(browse, root):
    job = fresh("stuck")
    lease = root.claim(job, "sleeper", ttl_seconds=600).json["lease_id"]
    page = browse(path=f"/ui/jobs/{job}")
    page.locator("#force-release summary").click()
    page.get_by_role("button", name="Force-release").click()
    assert root.owner_of(job)["owner"] == "sleeper"  # neither a reason nor sure
    page.get_by_label("Reason").fill("it sleeps")
    page.get_by_label("Confirm").check()
    page.get_by_role("button", name="Force-release").click()
    expect(page.get_by_role("status").filter(has_text="Released by force")).to_be_visible()
    expect(page.locator("#owners")).to_contain_text("it sleeps")
    document = root.heartbeat(job, lease).json
    assert (document["error"], document["reason"], document["ended_by"]) == ("lease_lost", "it sleeps", "root")
    event = root.get(f"/v1/events?subject=lease:{job}&kind=lease.forced").json["events"][0]
    assert event["actor"] == root.get("/v1/account").json["key"]["keyId"]


# -- who sees what -----------------------------------------------------------------------------------------------


def test_a_key_that_only_reads_sees_everything_and_changes_nothing(root, server):
    job = fresh("seen")
    root.claim(job, "owner", ttl_seconds=600)
    reader = DashboardClient(server.port).sign_in(made_key(root))
    _, _, text = reader.get(f"/ui/jobs/{job}")
    assert "owner" in text
    assert "force-release" not in text
    assert "/ui/elections" not in text
    assert reader.get("/ui/elections")[0] == 403
    fields = {"act": "force-release", "reason": "no", "sure": "yes", "token": reader.token()}
    assert reader.post(f"/ui/jobs/{job}", **fields)[0] == 403
    assert root.owner_of(job)["owner"] == "owner"


def test_a_key_with_a_prefix_sees_no_other_names(root, server):
    mine, theirs = fresh("mine/"), fresh("theirs/")
    for name in (mine, theirs):
        root.claim(name, f"owner of {name}", ttl_seconds=600)
        root.post("/v1/sessions", {"name": fresh("secretive")})
    bound = DashboardClient(server.port).sign_in(made_key(root, scopes=["jobs", "read"], prefix="mine/"))
    for path in (
        "/",
        "/ui/jobs",
        "/ui/jobs?state=all",
        "/ui/jobs?q=theirs",
        "/ui/jobs?q=theirs&state=all",
        "/ui/agents",
    ):
        _, _, text = bound.get(path)
        assert theirs not in text, path
        assert "secretive" not in text, path
    assert mine in bound.get("/ui/jobs")[2]
    assert mine in bound.get("/ui/jobs?q=m&state=all")[2]
    assert bound.get(f"/ui/jobs/{mine}")[0] == 200
    assert bound.get(f"/ui/jobs/{theirs}")[0] == 404


def test_another_account_sees_nothing_of_this_one(root, server):
    job = fresh("ours")
    root.claim(job, "owner", ttl_seconds=600)
    stranger = DashboardClient(server.port).sign_in(root.post("/v1/keys/register", {}).json["apiKey"])
    for path in ("/", "/ui/jobs", "/ui/jobs?state=all", "/ui/agents"):
        assert "ours" not in stranger.get(path)[2]
    assert "No activity yet" in stranger.get("/")[2]
    with Callers() as callers:
        waits = callers.send(root.claim, job, "patient", wait_seconds=5)
        wait_until(lambda: "<b>1</b> waiting" in DashboardClient(server.port).sign_in().get("/")[2])
        assert "<b>0</b> waiting" in stranger.get("/")[2]
        root.force_release(job)
        waits.result()
    assert stranger.get("/ui/elections")[0] == 403
    foreign, absent = stranger.get(f"/ui/jobs/{job}"), stranger.get(f"/ui/jobs/{fresh('ours')}")
    assert foreign[0] == absent[0] == 404
    assert foreign[2] == absent[2]


# -- agents and elections ----------------------------------------------------------------------------------------


def test_an_agent_is_shown_with_its_leases_and_its_context(client, root):
    name, job = fresh("agent"), fresh("held")
    document = {"turn": 7, "last_action": "read the log", "next_action": "write the fix", "context": {"branch": "fix"}}
    session = root.post("/v1/sessions", {"name": name, **document}).json
    root.claim(job, name, session_id=session["session_id"])
    listed = client.get("/ui/agents")[2]
    assert name in listed
    assert f'href="/ui/jobs/{job}"' in listed
    shown = client.get(f"/ui/agents/{session['session_id']}")[2]
    for word in ("read the log", "write the fix", "&#34;branch&#34;: &#34;fix&#34;", job, "healthy"):
        assert word in shown, word
    root.send_json("DELETE", f"/v1/sessions/{session['session_id']}", {"lease_id": session["lease_id"]})
    assert name not in client.get("/ui/agents")[2].partition("<main")[2]
    assert name in client.get("/ui/agents?state=all")[2]


def test_leaders_and_vacant_elections_are_shown(client, root):
    room = fresh("room")
    token = root.campaign(room, "candidate-7", ttl_seconds=60).json["leader_token"]
    text = client.get("/ui/elections")[2]
    assert room in text
    assert "candidate-7" in text
    root.resign(room, token)
    assert "candidate-7, released" in client.get("/ui/elections")[2]


# -- with less, or otherwise -------------------------------------------------------------------------------------


def test_everything_works_without_scripts(browse, root):
    job = fresh("plain")
    root.claim(job, "owner", ttl_seconds=600)
    page = browse(path="/ui/jobs", java_script_enabled=False)
    page.get_by_label("Name prefix").fill(job)
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name=job).click()
    page.locator("#force-release summary").click()
    page.get_by_label("Reason").fill("no scripts here")
    page.get_by_label("Confirm").check()
    page.get_by_role("button", name="Force-release").click()
    expect(page.locator("#owners")).to_contain_text("no scripts here")
    page.get_by_role("button", name="Dark").click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Key")).to_be_visible()


def test_everything_works_by_keyboard_alone(stranger, root):
    job = fresh("keyed")
    root.claim(job, "owner", ttl_seconds=600)
    page = stranger()
    page.goto("/")
    keys = page.keyboard
    keys.type(ROOT_KEY)  # the field has the focus
    keys.press("Enter")
    page.wait_for_selector("#live-state[data-state=live]")  # its scripts are there, this very moment
    keys.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    keys.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    keys.press("Escape")
    expect(page.get_by_role("dialog")).not_to_be_visible()
    keys.press("g")
    keys.press("j")
    page.wait_for_url("**/ui/jobs")
    page.wait_for_selector("#live-state[data-state=live]")
    keys.press("/")
    assert page.evaluate("document.activeElement.id") == "filter"
    keys.type(job)
    keys.press("Enter")
    page.wait_for_url(f"**/ui/jobs?q={job}")
    for _ in range(30):
        keys.press("Tab")
        if page.evaluate("document.activeElement.textContent") == job:
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    keys.press("Enter")
    page.wait_for_url(f"**/ui/jobs/{job}")
    expect(page.get_by_role("heading", name=job)).to_be_visible()


@pytest.mark.parametrize("path", ["/", "/ui/jobs", "/ui/agents", "/ui/elections"])
def test_pages_are_labelled_for_screen_readers(browse, path):
    page = browse(path=path)
    assert page.locator("h1").count() == 1
    assert page.locator("html").get_attribute("lang") == "en"
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, a, input:not([type=hidden]), svg[role=img], progress, meter')]
            .filter((each) => !(each.textContent.trim() || each.getAttribute('aria-label') || each.labels?.length
                                || each.getAttribute('aria-labelledby') || each.title)).map((each) => each.outerHTML)"""
    )
    assert nameless == []
    twice = page.evaluate(
        "() => { const ids = [...document.querySelectorAll('[id]')].map((each) => each.id);"
        " return ids.filter((id, place) => ids.indexOf(id) !== place) }"
    )
    assert twice == []
