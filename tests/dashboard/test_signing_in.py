"""Signing in with keys and links, signing out, form checks and response headers."""

import os
import pty
import re
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.compat.octostore.server import ADMIN_KEY
from tests.dashboard.client import FORM, DashboardClient
from tests.dashboard.conftest import sign_in
from tests.http import job_client as agents
from tests.http.job_client import fresh
from tests.support import wait_until


@pytest.fixture
def client(server):
    return DashboardClient(server.port).sign_in()


@pytest.fixture
def anybody(server):
    return DashboardClient(server.port)


def is_let_in(client, path="/"):
    status, _, text = client.get(path)
    return status == 200 and 'aria-label="Pages"' in text


def new_key(root, **more):
    return root.post("/v1/keys", {"name": fresh("key"), "scopes": ["read"], **more}).json


# -- in a browser ------------------------------------------------------------------------------------------------


def test_a_key_signs_in_and_scripts_cannot_read_the_cookie(stranger):
    page = stranger()
    sign_in(page, agents.ROOT_KEY)
    expect(page).to_have_title("Now · Holdfast")
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    assert agents.ROOT_KEY not in cookie["value"]
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Key")).to_be_visible()
    page.context.add_cookies([cookie])  # a thief kept it: it opens nothing any more
    page.goto("/")
    expect(page.get_by_label("Key")).to_be_visible()


def test_the_requested_page_is_shown_after_signing_in(stranger):
    page = stranger()
    sign_in(page, agents.ROOT_KEY, "/ui/jobs?q=deploy")
    expect(page).to_have_url(re.compile(r"/ui/jobs\?q=deploy$"))


def test_a_server_prints_a_sign_in_link_only_on_a_terminal(server, tmp_path):
    """Other outputs may be shared logs, and the link has the administrator's rights."""
    assert "/ui/enter/" not in server.log()
    assert f"`holdfast dashboard --url http://127.0.0.1:{server.port}` prints a link" in server.log()
    shown, its_end = pty.openpty()
    words = ["serve", "--port", "0", "--store", f"sqlite:///{tmp_path}/x.db"]
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    process = subprocess.Popen([sys.executable, "-m", "holdfast", *words], stderr=its_end, env=ours)
    os.close(its_end)
    try:
        with os.fdopen(shown, encoding="utf-8", errors="replace") as terminal:
            link = next(found for line in terminal if (found := re.search(r":(\d+)/ui/enter/(\S+)", line)))
            wait_until(lambda: can_connect(int(link[1])))
            status, headers, _ = DashboardClient(int(link[1])).post("/ui/enter", secret=link[2])
            assert (status, headers["Location"]) == (303, "/")
    finally:
        process.terminate()
        process.wait(30)


def can_connect(port):
    try:
        return DashboardClient(port).get("/healthz")[0] == 200
    except OSError:
        return False


def test_a_link_opens_the_dashboard_once(stranger, link):
    page = stranger()
    page.goto(link)
    page.wait_for_selector("nav[aria-label=Pages]")
    expect(page.get_by_text("administrator")).to_be_visible()
    again = stranger()
    again.goto(link)
    expect(again.get_by_role("alert")).to_contain_text("has been used")
    expect(again.get_by_label("Key")).to_be_visible()


# -- what does not get in ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["", "wrong", "hf_live_" + "0" * 32 + "_000000", "né", "a" * 5000])
def test_a_wrong_key_is_refused_in_one_sentence(anybody, key):
    status, headers, text = anybody.post("/ui/sign-in", key=key)
    assert status == 401
    assert "Set-Cookie" not in headers
    assert text.count('role="alert"') == 1
    assert not key or key not in text


def test_opening_a_link_without_submitting_does_not_use_it_up(anybody, root):
    url = root.post("/v1/account/dashboard-link", {}).json["url"]
    secret = url.rpartition("/")[2]
    for _ in range(2):
        assert anybody.get(f"/ui/enter/{secret}")[0] == 200
    status, headers, _ = anybody.post("/ui/enter", secret=secret)
    assert (status, headers["Location"]) == (303, "/")
    assert anybody.post("/ui/enter", secret=secret)[0] == 401


def test_a_link_is_no_session_cookie_and_a_cookie_no_link(client, root):
    secret = root.post("/v1/account/dashboard-link", {}).json["url"].rpartition("/")[2]
    name = client.cookie.partition("=")[0]
    assert not is_let_in(DashboardClient(client.port, f"{name}={secret}"))
    assert client.post("/ui/enter", secret=client.cookie.partition("=")[2])[0] == 401


def test_a_link_signs_in_as_its_creator_and_ends_with_the_key(anybody, root, server):
    key = new_key(root)
    reader = agents.Agent(server.port, {"Authorization": f"Bearer {key['apiKey']}"})
    links = [reader.post("/v1/account/dashboard-link", {}).json["url"].rpartition("/")[2] for _ in range(2)]
    _, headers, _ = anybody.post("/ui/enter", secret=links[0])
    anybody.cookie = headers["Set-Cookie"].split(";")[0]
    assert key["name"] in anybody.get("/")[2]
    root.delete(f"/v1/keys/{key['keyId']}")
    assert not is_let_in(anybody)
    guest = DashboardClient(server.port)
    _, headers, _ = guest.post("/ui/enter", secret=links[1])
    guest.cookie = headers["Set-Cookie"].split(";")[0]
    assert not is_let_in(guest)


def test_a_browser_session_ends_with_its_key(anybody, root):
    key = new_key(root)
    anybody.sign_in(key["apiKey"])
    assert is_let_in(anybody)
    root.delete(f"/v1/keys/{key['keyId']}")
    assert not is_let_in(anybody)


def test_a_browser_session_survives_a_restart_of_the_server(client, server):
    assert is_let_in(client)
    server.stop()
    server.start()
    assert is_let_in(client)


def test_the_admin_key_signs_in(anybody):
    assert is_let_in(anybody.sign_in(ADMIN_KEY), "/ui/elections")


def test_the_api_ignores_cookies_and_the_dashboard_ignores_keys(client, anybody):
    assert client.get("/v1/jobs")[0] == 401
    assert client.get("/locks")[0] == 401
    assert not is_let_in(DashboardClient(client.port), "/ui/jobs")
    assert anybody.get("/ui/jobs", Authorization=f"Bearer {agents.ROOT_KEY}")[0] == 401


def test_programs_get_json_at_the_root(anybody, client):
    for accept in ("*/*", "application/json"):
        status, headers, text = client.get("/", Accept=accept)
        assert (status, headers["Content-Type"]) == (200, "application/json")
        assert '"operations"' in text
    assert anybody.get("/")[1]["Content-Type"] == "text/html; charset=utf-8"


# -- forms -------------------------------------------------------------------------------------------------------


def test_a_form_without_the_sessions_token_is_refused(client, root, server):
    job = fresh()
    root.claim(job, "somebody")
    fields = {"act": "force-release", "reason": "stuck", "sure": "yes"}
    other = DashboardClient(server.port).sign_in().token()
    for token in ({}, {"token": ""}, {"token": "0" * 64}, {"token": other}):
        assert client.post(f"/ui/jobs/{job}", **fields, **token)[0] == 403
    assert root.owner_of(job)["owner"] == "somebody"
    assert client.post(f"/ui/jobs/{job}", **fields, token=client.token())[0] == 303
    assert root.owner_of(job)["status"] == "free"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
        {"Origin": "null", "Sec_Fetch_Site": "cross-site"},
        {"Origin": "https://evil.example", "Sec_Fetch_Site": "same-origin"},
    ],
)
def test_a_form_that_another_page_sent_is_refused(client, headers):
    body = f"token={client.token()}"
    assert client.send("POST", "/ui/sign-out", body, Content_Type=FORM, **headers)[0] == 403
    assert is_let_in(client)
    sign_in = f"key={agents.ROOT_KEY}"
    assert client.send("POST", "/ui/sign-in", sign_in, Content_Type=FORM, **headers)[0] == 403


def test_forms_of_our_own_pages_are_accepted_from_every_browser(client):
    own = f"http://127.0.0.1:{client.port}"
    for headers in ({"Origin": own}, {"Origin": "null", "Sec_Fetch_Site": "same-origin"}):
        status, _, _ = client.send("POST", "/ui/theme", "theme=dark&next=/ui/jobs", Content_Type=FORM, **headers)
        assert status == 303


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7700", "localhost.evil.example", ""])
def test_a_foreign_host_name_is_refused(client, host):
    status, headers, _ = client.get("/", Host=host)
    assert status == 421
    assert "Set-Cookie" not in headers


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "/ui/..\r\nx: y", "javascript:1"]
)
def test_redirects_stay_on_this_server(anybody, target):
    status, headers, _ = anybody.post("/ui/sign-in", key=agents.ROOT_KEY, next=target)
    assert (status, headers["Location"]) == (303, "/")


def test_every_answer_carries_the_content_security_policy(client):
    for path in ("/", "/ui/jobs", "/ui/nothing", "/ui/enter/x", "/ui/agents/x"):
        _, headers, _ = client.get(path)
        policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";"))
        assert policy == {
            "default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self'",
            "connect-src": "'self'", "base-uri": "'none'", "form-action": "'self'", "frame-ancestors": "'none'",
        }  # fmt: skip
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"


def test_static_files_are_cached_under_addresses_with_their_hash(client, anybody):
    found = re.findall(r"/ui/static/[0-9a-f]{16}/[a-z]+\.[a-z]+", client.get("/")[2])
    assert {path.rpartition("/")[2] for path in found} == {
        "icon.svg",
        "style.css",
        "detail.css",
        "charts.css",
        "main.js",
    }
    for path in found:
        status, headers, _ = anybody.get(path)
        assert (status, headers["Cache-Control"]) == (200, "public, max-age=31536000, immutable")
    assert anybody.get("/ui/static/0000000000000000/main.js")[1]["Cache-Control"] == "no-store"
    for path in ("/ui/static/x/../frame.py", "/ui/static/x/none.js", "/ui/static/"):
        assert anybody.get(path)[0] == 404
