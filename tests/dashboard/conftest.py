"""One browser for all files, one server per file, and pages that fail their test on any console error."""

import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.compat.octostore.server import Server
from tests.dashboard.in_process import InProcessDashboard
from tests.dashboard.watched_page import WatchedPage
from tests.http import job_client as agents

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 15_000
"""Milliseconds: a machine that others keep busy is slow, not wrong."""
expect.set_options(timeout=PATIENCE)


def launch_browser(playwright):
    """Start Chromium without its windows: it needs a third of the processor time of the whole Chromium."""
    found = shutil.which("chromium-headless-shell")
    assert found, "the dashboard's tests need chromium-headless-shell"
    return playwright.chromium.launch(executable_path=found, args=FLAGS)


@pytest.fixture(scope="package")
def browser():
    """A browser keeps an event loop on this thread: it must end before tests of another folder run their own."""
    with sync_playwright() as playwright:
        browser = launch_browser(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(f"sqlite:///{tmp_path_factory.mktemp('dashboard')}/x.db", ROOT_KEY=agents.ROOT_KEY)
    yield running.start()
    running.close()


@pytest.fixture
def root(server):
    return agents.root(server)


@pytest.fixture
def stranger(browser, server):
    """Opens pages without signing in; `stranger(width=390)` as on a phone."""
    opened = []

    def open_page(width=1280, height=900, **more):
        context = browser.new_context(
            base_url=f"http://127.0.0.1:{server.port}", viewport={"width": width, "height": height}, **more
        )
        context.set_default_timeout(PATIENCE)
        watched = WatchedPage(context.new_page(), server.port)
        opened.append((context, watched))
        return watched.page

    yield open_page
    for context, watched in opened:
        context.close()
        watched.check()


@pytest.fixture
def browse(stranger):
    """Opens pages that are signed in."""

    def open_page(key=agents.ROOT_KEY, path="/", **more):
        page = stranger(**more)
        page.context.request.post("/ui/sign-in", form={"key": key})
        page.goto(path)
        page.wait_for_selector("nav[aria-label=Pages]")
        return page

    return open_page


def sign_in(page, key, path="/"):
    page.goto(path)
    page.get_by_label("Key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("nav[aria-label=Pages]")


@pytest.fixture
def link(root):
    """A sign-in link for a key."""
    return root.post("/v1/account/dashboard-link", {}).json["url"]


@pytest.fixture
def dashboard():
    dashboard = InProcessDashboard()
    yield dashboard
    dashboard.close()
