"""Live updates: pages change without a reload, and keep focus, selection and open details."""

import re
from concurrent.futures import as_completed

import pytest
from playwright.sync_api import expect

from tests.http import job_client as agents
from tests.http.job_client import Callers, agent, fresh
from tests.support import wait_until

FIVE = [f"agent-{number}" for number in range(1, 6)]


@pytest.fixture
def job():
    return fresh("issue")


def mark(page):
    """Set a variable that a reload would remove."""
    page.evaluate("window.sameOldPage = true")


def is_same(page):
    return page.evaluate("window.sameOldPage === true")


def row_of(page, job):
    return page.locator("#held tr", has=page.get_by_role("link", name=job, exact=True))


def test_five_agents_race_and_another_takes_over_when_the_winner_stops(browse, server, job):
    page = browse()
    mark(page)
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")
    with Callers() as callers:
        five = [agent(server, f"alice-{number}") for number in range(1, 6)]
        first = five[0].claim(job, FIVE[0], ttl_seconds=6).json
        waiting = {
            callers.send(each.claim, job, name, ttl_seconds=60, wait_seconds=45): each
            for each, name in zip(five[1:], FIVE[1:], strict=True)
        }
        row = row_of(page, job)
        expect(row.get_by_role("cell").nth(0)).to_have_text(FIVE[0])
        renew = five[0].heartbeat
        wait_until(lambda: renew(job, first["lease_id"]) and row.get_by_role("cell").nth(4).text_content() == "4", 30)
        renew(job, first["lease_id"], note="reading the issue")
        expect(row).to_contain_text("reading the issue")
        # The holder stops renewing here, as if it had been killed; the page must update without a reload.
        expect(row.get_by_role("cell").nth(0)).to_contain_text(re.compile("agent-[2-5]"), timeout=30_000)
        expect(page.locator("#recent-events")).to_contain_text("expired")
        winner = row.get_by_role("cell").nth(0).text_content()
        assert five[0].owner_of(job)["owner"] == winner
        assert is_same(page)
        for future in as_completed(waiting):  # in the order in which they came into line
            waiting[future].release_job(job, future.result()[0].json["lease_id"])
    expect(row).to_have_count(0)
    assert is_same(page)


def test_countdowns_run_in_the_browser_between_changes(browse, root, job):
    root.claim(job, "steady", ttl_seconds=60)
    page = browse(path=f"/ui/jobs/{job}")
    bar = page.locator("#owner progress")
    before = float(bar.evaluate("(bar) => bar.value"))
    page.wait_for_function("(before) => document.querySelector('#owner progress').value < before - 900", arg=before)
    assert page.locator("#owner .left").text_content().endswith(" s")


def test_a_holder_that_stops_renewing_becomes_late_and_expiring_in_the_browser(browse, root, job):
    """The server sends nothing meanwhile: the browser computes it from its clock."""
    page = browse()
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")
    root.claim(job, "silent", ttl_seconds=9)
    for word in ("healthy", "late", "expiring"):
        expect(row_of(page, job).locator("[data-health]")).to_have_text(word)


def test_an_update_keeps_focus_open_details_and_selections(browse, root, job):
    lease = root.claim(job, "busy", metadata={"branch": "main"}, ttl_seconds=300).json["lease_id"]
    page = browse(path=f"/ui/jobs/{job}")
    page.wait_for_selector("#live-state[data-state=live]")
    mark(page)
    page.locator("#document-1 summary").click()  # closes it
    page.locator("#force-release summary").click()
    page.get_by_label("Reason").fill("because")
    root.heartbeat(job, lease, note="first change")
    expect(page.locator("#owner")).to_contain_text("first change")
    assert page.locator("#document-1").get_attribute("open") is None
    assert page.evaluate("document.activeElement.id") == "reason"
    expect(page.get_by_label("Reason")).to_have_value("because")
    # An element with a selection is not replaced.
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#owner strong'))")
    root.heartbeat(job, lease, note="second change")
    expect(page.locator("#events")).to_be_visible()
    page.wait_for_timeout(700)
    assert page.evaluate("getSelection().toString()") == "busy"
    assert "second change" not in page.locator("#owner").text_content()
    page.evaluate("getSelection().removeAllRanges()")
    expect(page.locator("#owner")).to_contain_text("second change")
    assert is_same(page)


def test_a_page_reconnects_after_the_server_restarted(browse, server, root, job):
    page = browse(path="/ui/jobs")
    mark(page)
    state = page.locator("#live-state")
    expect(state).to_have_attribute("data-state", "live")
    server.stop()
    expect(state).to_have_attribute("data-state", "reconnecting")
    server.start()
    agents.root(server).claim(job, "back again")
    expect(state).to_have_attribute("data-state", "live", timeout=30_000)
    expect(page.locator("#jobs")).to_contain_text("back again")
    assert is_same(page)


def test_an_open_page_of_a_signed_out_browser_asks_for_a_key(browse, root, job):
    key = root.post("/v1/keys", {"name": fresh("key"), "scopes": ["read"]}).json
    page = browse(key["apiKey"], "/ui/jobs")
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")
    root.delete(f"/v1/keys/{key['keyId']}")
    root.claim(job, "somebody")
    expect(page.get_by_label("Key")).to_be_visible()
