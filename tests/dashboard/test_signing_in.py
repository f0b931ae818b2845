"""Who gets in, with what, and how they are seen out."""

from playwright.sync_api import expect

from tests.dashboard.conftest import sign_in
from tests.transport import agent as agents


def test_a_key_signs_in_and_the_browser_keeps_no_script_away_from_it(stranger):
    page = stranger()
    sign_in(page, agents.ROOT_KEY)
    expect(page).to_have_title("Now · Holdfast")
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    assert agents.ROOT_KEY not in cookie["value"]
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Key")).to_be_visible()
    page.context.add_cookies([cookie])  # kept by a thief: it opens nothing any more
    page.goto("/")
    expect(page.get_by_label("Key")).to_be_visible()
