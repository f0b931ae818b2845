"""`scripts/screenshots`: every page, light, dark and on a phone, into docs/screenshots."""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.dashboard import demo_data
from tests.dashboard.conftest import launch_browser, sign_in
from tests.dashboard.demo_server import DemoServer, play
from tests.http.job_client import ROOT_KEY

FOLDER = Path(__file__).parents[2] / "docs" / "screenshots"
PAGES = {
    "now": "/",
    "charts": "/ui/charts",
    "held": "/ui/held",
    "jobs": "/ui/jobs?state=all",
    "job": "/ui/jobs/deploy/staging",
    "files": "/ui/files",
    "reservation": "/ui/files",
    "agents": "/ui/agents",
    "agent": "/ui/agents",
    "timeline": "/ui/timeline?hours=1",
    "elections": "/ui/elections",
    "tasks": "/ui/tasks",
    "task": "/ui/tasks?key=acme/shop/1842",
    "dead-letters": "/ui/dead-letters",
    "bulk": "/ui/bulk?verb=requeue&state=dead_letter&type=translate_page",
    "events": "/ui/events?subject=lease:deploy/",
    "webhooks": "/ui/webhooks",
    "webhook": "/ui/webhooks",
    "keys": "/ui/keys",
}
HIGHEST = 10_000
HEIGHTS = {"held": 600, "task": 760, "webhook": 560}
"""Where a whole page would be too large a picture."""
VARIANTS = {
    "light": {"viewport": {"width": 1280, "height": 780}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 780}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"},
}


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    stage = DemoServer()
    try:
        task = demo_data.before(stage)
        play(stage)
        demo_data.now(stage, task)
        demo_data.tell(stage)
        with sync_playwright() as playwright:
            browser = launch_browser(playwright)
            for variant, options in VARIANTS.items():
                shoot(browser.new_context(base_url=f"http://127.0.0.1:{stage.port}", **options), variant, folder)
            browser.close()
    finally:
        stage.close()


def shoot(context, variant, folder):
    page = context.new_page()
    page.goto("/")
    page.screenshot(path=folder / f"sign-in-{variant}.png")
    sign_in(page, ROOT_KEY)
    for name, address in PAGES.items():
        page.goto(address)
        if name in {"agent", "reservation", "task", "webhook"}:
            page.locator("tbody th a").first.click()
        page.wait_for_selector("#live-state[data-state=live]")
        page.wait_for_timeout(600)
        size = page.viewport_size
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], HEIGHTS.get(name, HIGHEST))}
        page.screenshot(path=folder / f"{name}-{variant}.png", clip=clip)
    context.close()


if __name__ == "__main__":
    main()
