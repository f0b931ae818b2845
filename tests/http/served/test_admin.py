"""Admin pages: who may read them, and that their numbers are correct."""

import re

import pytest

from holdfast.settings import Settings
from tests.compat.octostore.expect import acquired, exact, leads, refused, released, success
from tests.compat.octostore.server import ADMIN_KEY, Server, bearer
from tests.compat.orchestrion.account import register
from tests.faults.program import Program
from tests.http import job_client as agents
from tests.http.in_process_app import InProcessApp
from tests.http.job_client import ROOT_KEY, Agent, Callers, agent, claimed, fresh
from tests.http.metrics_parser import scrape
from tests.support import acquire, wait_until

PAGES = ("/admin/status", "/metrics", "/metrics/prometheus", "/admin/metrics/timeseries")
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.(\d{3}|\d{6}))?\+00:00")


@pytest.fixture(scope="module")
def unshared_server():
    """A server that only the tests of this file use, so that its counts are predictable."""
    server = Server("memory:", ROOT_KEY=ROOT_KEY).start()
    yield server
    server.close()


# -- access ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_the_operator_of_the_server_may_read_the_admin_pages(server, root, page):
    anyone = server.anyone
    for caller in (
        anyone.with_headers(X_Admin_Key=ADMIN_KEY),
        anyone.with_headers(X_OctoStore_Admin_Key=ADMIN_KEY),
        bearer(server.port, f"admin:{ADMIN_KEY}"),
        root,
    ):
        assert caller.get(page).status == 200, caller.headers


@pytest.mark.parametrize("page", PAGES)
def test_other_callers_are_refused_on_the_admin_pages(server, alice, page):
    refused(alice.get(page), 403, "forbidden")
    owner = register(server.anyone)
    refused(bearer(server.port, owner.token).get(page), 403, "forbidden")
    refused(server.anyone.get(page), 401, "authentication_required")
    for token in (ADMIN_KEY, "admin:", f"admin:{ADMIN_KEY}x", f"admin:{ROOT_KEY}", "nobody-knows-this-token"):
        refused(bearer(server.port, token).get(page), 401, "authentication_failed")


def test_a_wrong_admin_header_is_refused_even_with_the_admin_key_as_bearer(server):
    asking = bearer(server.port, f"admin:{ADMIN_KEY}")
    for header in ("X_Admin_Key", "X_OctoStore_Admin_Key"):
        refused(asking.with_headers(**{header: "wrong"}).get("/metrics"), 401, "authentication_failed")


def test_a_wrong_admin_key_beside_a_good_key_is_passed_over(root, alice):
    exact(root.with_headers(X_Admin_Key="wrong").get("/metrics"))
    refused(alice.with_headers(X_Admin_Key="wrong").get("/metrics"), 403, "forbidden")


def test_without_an_admin_key_the_pages_still_answer_to_an_administrator():
    server = Program("memory:", ROOT_KEY=ROOT_KEY).start()
    try:
        for page in PAGES:
            assert agents.root(server).get(page).status == 200
            for token in ("admin:", "admin:None"):
                refused(bearer(server.port, token).get(page), 401, "authentication_failed")
            refused(server.anyone.with_headers(X_Admin_Key="").get(page), 401, "authentication_required")
    finally:
        server.close()


def test_the_admin_pages_must_not_be_cached(server, root):
    for page in PAGES:
        assert root.get(page).header("Cache-Control") == "no-store"


# -- status ------------------------------------------------------------------------------------------------------


def test_everything_that_is_held_is_listed_with_whose_key_took_it(server, root, alice, job):
    lock, room, kept, mine = fresh("lock"), fresh("room"), fresh("lock"), fresh("lock")
    lease = acquired(alice.acquire(lock, metadata="deploying"))
    leads(server.anyone.campaign(room, "me", metadata="hello"))
    claimed(alice.claim(job, metadata={"branch": "main"}))
    session = success(alice.open_session(), 201)["session_id"]
    acquired(alice.acquire(kept, session_id=session, ephemeral=True))
    acquired(server.admin.acquire(mine))
    page = exact(root.get("/admin/status"))
    assert page["healthy"] is True
    assert page["active_locks"] == len(page["locks"])
    locks = {held["name"]: held for held in page["locks"]}
    assert locks[lock] == {
        "expires_at": lease["expires_at"].replace("Z", "+00:00"),
        "fencing_token": lease["fencing_token"],
        "holder_username": alice.name,
        "metadata": "deploying",
        "name": lock,
        "ttl_remaining_seconds": 59,
    }
    elected = locks[f"__election/{room}"]
    assert (elected["holder_username"], elected["metadata"]) == ("unknown", '{"candidate_id":"me","metadata":"hello"}')
    assert (locks[job]["holder_username"], locks[job]["metadata"]) == (alice.name, '{"branch":"main"}')
    assert locks[kept]["holder_username"] == "unknown"
    assert locks[mine]["holder_username"] == "admin"
    assert all(STAMP.fullmatch(held["expires_at"]) for held in page["locks"])
    released(alice.release(lock, lease["lease_id"]))
    assert lock not in {held["name"] for held in exact(root.get("/admin/status"))["locks"]}


def test_every_user_is_listed_and_no_secret_is(server, root, alice):
    answer = root.get("/admin/status")
    users = {user["github_username"]: user for user in answer.json["users"]}
    assert alice.name in users
    assert "root" not in users
    assert answer.json["total_users"] == len(answer.json["users"])
    assert users[alice.name].keys() == {"created_at", "github_username", "id"}
    assert STAMP.fullmatch(users[alice.name]["created_at"])
    for secret in (alice.token, ROOT_KEY, ADMIN_KEY):
        assert secret.encode() not in answer.raw


def test_what_other_accounts_hold_is_not_listed(server, root, job):
    owner = register(server.anyone)
    claimed(Agent(server.port, owner.headers).claim(job))
    assert job not in {held["name"] for held in exact(root.get("/admin/status"))["locks"]}


# -- metrics -----------------------------------------------------------------------------------------------------

ENDPOINT = {"avg_ms", "count", "errors", "max_ms", "min_ms", "p50_ms", "p95_ms", "p99_ms"}


def test_metrics_count_requests_by_kind(unshared_server):
    alice, name = agent(unshared_server), fresh("lock")
    before = exact(unshared_server.admin.get("/metrics"))
    lease = acquired(alice.acquire(name))
    refused(alice.acquire("no good"), 400, "invalid_lock_name")
    success(alice.renew(name, lease["lease_id"]))
    success(alice.get("/locks"))
    success(alice.read_lock(name))
    released(alice.release(name, lease["lease_id"]))
    success(unshared_server.anyone.post("/elections"), 201)
    success(unshared_server.anyone.get("/status"))
    after = exact(unshared_server.admin.get("/metrics"))
    assert after["endpoints"].keys() == {"acquire", "auth", "election", "list", "release", "renew", "status"}

    def more(kind, field="count"):
        return after["endpoints"][kind][field] - before["endpoints"][kind][field]

    assert [more(kind) for kind in ("acquire", "renew", "list", "status", "release", "election")] == [2, 1, 1, 1, 1, 1]
    assert (more("acquire", "errors"), more("renew", "errors")) == (1, 0)
    assert after["total_requests"] - before["total_requests"] == 7, "probes are not counted"
    assert after["lock_store"]["total_acquires"] - before["lock_store"]["total_acquires"] == 1
    assert after["lock_store"]["total_releases"] - before["lock_store"]["total_releases"] == 1


def test_the_numbers_of_metrics_have_the_form_that_clients_check(unshared_server):
    success(agent(unshared_server).get("/locks"))
    page = exact(unshared_server.admin.get("/metrics"))
    for numbers in page["endpoints"].values():
        assert numbers.keys() == ENDPOINT
        for name, value in numbers.items():
            if name[0] in "ap":
                assert re.fullmatch(r"\d+\.\d", value), (name, value)
            else:
                assert type(value) is int
    assert page["lock_store"].keys() == {
        "cache_hits", "cache_misses", "total_acquires", "total_expirations", "total_releases",
    }  # fmt: skip
    assert 10_000_000 < page["memory_bytes"] < 1_000_000_000
    assert isinstance(page["requests_per_second"], float)
    for name in ("active_locks", "total_requests", "total_users", "uptime_seconds"):
        assert type(page[name]) is int


JSON, PLAIN = "application/json", "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
ACCEPTED = {
    "": JSON,
    "application/json": JSON,
    "*/*": JSON,
    "text/html,application/xml;q=0.9,*/*;q=0.8": JSON,
    "text/plain;q=0.5,application/json": JSON,
    "application/json,text/plain": JSON,
    "image/png": JSON,
    "text/plain;q=nan": JSON,
    "text/plain": PLAIN,
    "TEXT/Plain": PLAIN,
    "text/*": PLAIN,
    "application/json;q=0.2, text/plain;q=0.3": PLAIN,
    "application/openmetrics-text;version=1.0.0": OPENMETRICS,
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1": OPENMETRICS,
}


@pytest.mark.parametrize("accept", ACCEPTED)
def test_the_accept_header_selects_json_or_text(unshared_server, accept):
    asking = unshared_server.admin.with_headers(Accept=accept) if accept else unshared_server.admin
    answer = asking.get("/metrics")
    assert answer.header("Content-Type") == ACCEPTED[accept]
    assert "accept" in answer.words("Vary")


@pytest.mark.parametrize("accept", ["application/json", "*/*", "application/openmetrics-text"])
def test_the_page_for_scrapers_is_always_text(unshared_server, accept):
    answer = unshared_server.admin.with_headers(Accept=accept).get("/metrics/prometheus")
    openmetrics = accept == "application/openmetrics-text"
    assert answer.header("Content-Type") == (OPENMETRICS if openmetrics else PLAIN)
    scrape(answer.raw, openmetrics=openmetrics)


def scraped(server):
    return scrape(server.admin.get("/metrics/prometheus").raw, openmetrics=False)


def test_requests_leases_and_tasks_are_counted_on_the_prometheus_page(unshared_server):
    alice, account = agent(unshared_server), register(unshared_server.anyone)
    before = scraped(unshared_server)
    claimed(alice.claim(fresh()))
    success(alice.get("/locks"))
    refused(unshared_server.anyone.get("/locks"), 401, "authentication_required")
    for _ in range(2):
        assert account.create(type="x", payload={}).status == 201
    assert account.claim(type="x").json["task"]
    page = scraped(unshared_server)

    def more(name, **labels):
        earlier = [value for seen, value in before.samples(name) if seen == labels]
        return page.value(name, **labels) - (earlier[0] if earlier else 0)

    assert more("holdfast_requests_total", **{"class": "job", "status": "2xx"}) == 1
    assert more("holdfast_requests_total", **{"class": "list", "status": "2xx"}) == 1
    assert more("holdfast_requests_total", **{"class": "list", "status": "4xx"}) == 1
    assert more("holdfast_request_duration_seconds_count", **{"class": "task"}) == 3
    assert more("holdfast_request_duration_seconds_bucket", **{"class": "task", "le": "+Inf"}) == 3
    assert 0 < more("holdfast_request_duration_seconds_sum", **{"class": "task"}) < 10
    assert more("holdfast_live_leases") == 1
    assert (more("holdfast_tasks", state="pending"), more("holdfast_tasks", state="claimed")) == (1, 1)
    assert 1 <= more("holdfast_batches_total") <= more("holdfast_commands_total")
    assert more("holdfast_commands_total") >= 4
    assert page.value("holdfast_memory_bytes") > 10_000_000
    assert page.value("holdfast_uptime_seconds") >= 0
    ((build, one),) = page.samples("holdfast_build_info")
    assert (one, build["store"]) == (1, "memory")
    assert all(name.startswith("holdfast_") for name in page.kinds)


def test_waiters_are_counted_while_they_wait(unshared_server):
    alice, job = agent(unshared_server), fresh()
    lease = claimed(alice.claim(job))
    with Callers() as callers:
        waiting = callers.send(alice.claim, job, "next", wait_seconds=20)
        wait_until(lambda: scraped(unshared_server).value("holdfast_waiters", **{"for": "name"}) == 1)
        alice.release_job(job, lease["lease_id"])
        claimed(waiting.result(10)[0])
    assert scraped(unshared_server).value("holdfast_waiters", **{"for": "name"}) == 0


def test_no_name_or_id_is_ever_a_label(unshared_server):
    canary = "canary-of-the-labels"
    alice = agent(unshared_server)
    claimed(alice.claim(canary, canary))
    unshared_server.anyone.get(f"/{canary}/x")
    unshared_server.anyone.send(canary.upper(), f"/v1/{canary}")
    account = register(unshared_server.anyone)
    assert account.create(type=canary, payload={}).status == 201
    assert canary not in unshared_server.admin.get("/metrics/prometheus").raw.decode().lower()


# -- history -----------------------------------------------------------------------------------------------------

SERIES = ("acquire_rates", "active_locks", "release_rates", "request_volume", "timestamps")


@pytest.mark.parametrize("window", ["", "1h", "12h", "24h", "7d"])
def test_the_history_has_five_series_of_one_length(unshared_server, window):
    page = exact(unshared_server.admin.get("/admin/metrics/timeseries" + (f"?window={window}" if window else "")))
    assert page["window"] == (window or "1h")
    assert len({len(page[name]) for name in SERIES}) == 1
    assert page["timestamps"] == sorted(page["timestamps"])


@pytest.mark.parametrize("window", ["2h", "", "1H", "%FF"])
def test_another_window_is_refused_after_the_key_was_looked_at(unshared_server, window):
    path = f"/admin/metrics/timeseries?window={window}"
    body = refused(unshared_server.admin.get(path), 400, "invalid_input")
    assert "1h, 12h, 24h, 7d" in body["details"]
    refused(unshared_server.anyone.get(path), 401, "authentication_required")


def test_the_newest_minute_has_the_leases_that_are_live_now():
    app = InProcessApp(Settings(root_key=ROOT_KEY, allow_insecure_http=True))
    try:
        key = {"Authorization": f"Bearer {ROOT_KEY}"}
        app.engine.call(acquire("some-lock"))
        for _ in range(2):
            app.ask("/locks", key)
            app.ctx.stats._minute_ends = 0  # as if the minute were over
            page = app.ask("/admin/metrics/timeseries", key).json
        assert page["request_volume"] == [1, 1]
        assert page["active_locks"] == [1, 1]
        app.ask("/locks", key)
        app.ctx.stats._minute_ends = 0
        app.ask("/locks", key)
        app.ctx.stats._minute_ends = 0
        assert app.ask("/admin/metrics/timeseries", key).json["active_locks"] == [1, 1, 0, 1]
    finally:
        app.close()


# -- documentation page ------------------------------------------------------------------------------------------


def test_the_documentation_page_is_static_html_without_scripts(server):
    answer = server.anyone.get("/docs")
    assert answer.status == 200
    assert answer.header("Content-Type").startswith("text/html")
    page = answer.raw.decode()
    assert "OctoStore API Documentation" in page
    assert "intentionally read-only" in page
    assert 'href="/openapi.yaml"' in page
    assert "<script" not in page
    assert "/locks/{name}/acquire" in page
    policy = answer.header("Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    for part in ("object-src", "base-uri", "form-action", "frame-ancestors"):
        assert f"{part} 'none'" in policy
    assert answer.header("X-Content-Type-Options") == "nosniff"
