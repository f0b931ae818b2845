"""Events page: live updates, pause, filters, paging, and links to subjects."""

import re

import pytest
from playwright.sync_api import expect

from tests.dashboard import task_batches
from tests.dashboard.client import DashboardClient, text_of
from tests.http.job_client import fresh


@pytest.fixture
def client(server):
    return DashboardClient(server.port).sign_in()


def seqs(page):
    return [int(seq) for seq in re.findall(r'href="/ui/events/(\d+)"', page)]


def test_new_events_appear_until_the_page_is_paused(browse, root):
    job = fresh()
    page = browse(path=f"/ui/events?subject=lease:{job}")
    page.wait_for_selector("#live-state[data-state=live]")
    expect(page.get_by_text("No event matches this filter.")).to_be_visible()
    lease = root.claim(job, "first").json["lease_id"]
    expect(page.locator("#log li")).to_have_count(1)  # by itself
    page.get_by_role("link", name="Pause").click()
    page.wait_for_selector("#live-state[data-state=live]")
    other = page.context.new_page()
    other.goto(f"/ui/events?subject=lease:{job}")
    root.release_job(job, lease)
    expect(other.locator("#log li")).to_have_count(2)
    expect(page.locator("#log li")).to_have_count(1)
    page.get_by_role("link", name="Resume").click()
    expect(page.locator("#log li")).to_have_count(2)
    page.locator("#log li a").first.click()
    expect(page).to_have_url(re.compile(f"/ui/jobs/{job}$"))


def test_paging_to_older_events_shows_each_once(client, root):
    task_batches.make(root, fresh("k"), 250)
    last = root.get("/v1/events?limit=1000&after=0").json["nextCursor"]
    first = client.get(f"/ui/events?until={last}")[2]
    seen = seqs(first)
    assert seen == list(range(last, last - 100, -1))
    older = re.search(r'href="(\?[^"]*before=[^"]*)"', first)[1].replace("&amp;", "&")
    assert seqs(client.get("/ui/events" + older)[2]) == list(range(last - 100, last - 200, -1))


def test_events_are_filtered_by_kind_subject_and_request(client, root):
    job = fresh()
    answer = root.claim(job, "somebody")
    root.release_job(job, answer.json["lease_id"])
    released = client.get(f"/ui/events?subject=lease:{job}&kind=lease.released")[2]
    assert len(seqs(released)) == 1
    of_request = client.get(f"/ui/events?request={answer.header('X-Request-Id')}")[2]
    assert len(seqs(of_request)) == 1
    assert job in text_of(of_request)


def test_an_event_is_shown_in_full_without_secrets(client, root):
    job = fresh()
    lease = root.claim(job, "somebody").json["lease_id"]
    (seq,) = seqs(client.get(f"/ui/events?subject=lease:{job}")[2])
    page = text_of(client.get(f"/ui/events/{seq}")[2])
    assert "lease.claimed" in page
    assert '"owner": "somebody"' in page
    assert "root" in page
    assert lease not in page
    assert '"proof"' not in page
    for wrong in ("0", "x", str(2**53), "1e3"):
        assert client.get(f"/ui/events/{wrong}")[0] == 404


def test_events_of_other_names_and_accounts_are_hidden(server, root):
    mine, other = fresh("mine/a"), fresh("other/b")
    lease = [root.claim(job, "somebody").status for job in (mine, other)]
    assert lease == [200, 200]
    key = root.post("/v1/keys", {"name": "bound", "scopes": ["read"], "prefix": "mine/"}).json["apiKey"]
    bound = DashboardClient(server.port).sign_in(key)
    page = text_of(bound.get("/ui/events?subject=lease:")[2])
    assert (mine in page, other in page) == (True, False)
    whole = DashboardClient(server.port).sign_in()
    (seq,) = seqs(whole.get(f"/ui/events?subject=lease:{other}")[2])
    assert bound.get(f"/ui/events/{seq}")[0] == 404
    foreign = DashboardClient(server.port).sign_in(root.post("/v1/keys/register", {}).json["apiKey"])
    assert mine not in foreign.get("/ui/events")[2]
