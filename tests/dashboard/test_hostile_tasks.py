"""Text by agents in tasks and keys is never markup: on every page that shows it, in a real browser.

The fixture of the pages fails a test for any dialog, any request that leaves the server, any error and any violation of
the policy.
"""

import pytest

from tests.dashboard.payloads import HIDDEN, PAYLOADS
from tests.dashboard.task_batches import post
from tests.dashboard.test_hostile import BAITS
from tests.http.job_client import root as root_of
from tests.proof_size import sized

LONG = "x" * 250
AT_ONCE = sized(16, 1)
"""How many of them share one task: a page for each of them only at full size."""
PHONE = 390


def groups():
    return [PAYLOADS[start : start + AT_ONCE] for start in range(0, len(PAYLOADS), AT_ONCE)]


def written(text):
    """Every task field that accepts text."""
    short = text[:200]
    return {
        "payload": {text: [text]}, "tag": short, "uniqueKey": short, "createdBy": short, "reviewedBy": short,
        "source": short,
    }  # fmt: skip


def hostile_task(root, number, text, outcome):
    """A task whose creator and holder wrote the text into every field; its id."""
    fields = written(f"{outcome}{number} {text}") | {"type": "hostile", "maxAttempts": 1}
    made = root.post("/v1/tasks", fields)
    assert made.status == 201, made
    path = f"/v1/tasks/{made.json['id']}"
    lease = post(root, f"{path}/claim", {"worker_id": text[:250]})["leaseId"]
    left = {"lease_id": lease, "note": text, "checkpoint": {text: text}, "progress": {"at": text[:300]}}
    post(root, f"{path}/heartbeat", left)
    fields_of = {
        "fail": {"reason": text[:500], "error_code": text[:100]},
        "complete": {"result": {text: text}, "output_id": text[:200]},
    }
    if outcome == "cancel":
        post(root, f"{path}/cancel", {"mode": "force", "reason": text[:500]})
    elif outcome != "hold":
        post(root, f"{path}/{outcome}", {"lease_id": lease} | fields_of[outcome])
    return made.json["id"]


@pytest.fixture(scope="module")
def addresses(server):
    """A server with hostile data; the addresses of the pages that show it."""
    root = root_of(server)
    found = [
        "/ui/tasks", "/ui/tasks?state=dead_letter", "/ui/tasks?state=claimed", "/ui/dead-letters", "/ui/events",
        "/ui/keys", "/ui/bulk?verb=requeue&state=dead_letter",
    ]  # fmt: skip
    for number, payloads in enumerate(groups()):
        text = f"p{number} " + " ".join(payloads)
        outcomes = ("hold", "cancel") if number % 2 else ("fail", "complete")
        found += [f"/ui/tasks/{hostile_task(root, number, text, outcome)}" for outcome in outcomes]
        made = root.post("/v1/keys", {"name": text[:128], "scopes": ["read"], "prefix": text[:200]})
        if made.status == 201:
            found.append(f"/ui/keys/{made.json['keyId']}")
    last = root.get("/v1/events?limit=1&kind=task.dead_lettered").json["events"][0]["seq"]
    hostile_task(root, 99, LONG, "fail")
    return [*found, f"/ui/events/{last}", f"/ui/events/{last - 1}", "/ui/tasks?" + "type=%3Cscript%3E&tag=%22%3E%3Cimg"]


@pytest.fixture
def page(browse):
    return browse(width=PHONE, height=844)


def look(page):
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
    page.wait_for_selector("#live-state[data-state=live]")
    return page.evaluate(
        """(bait) => ({
            ran: window.pwned !== undefined,
            rooted: [...document.querySelectorAll(bait)].map((each) => each.outerHTML.slice(0, 200)),
            text: document.querySelector('main').textContent,
            wide: document.documentElement.scrollWidth,
            bait: document.getElementById('bait') !== null,
        })""",
        ", ".join(BAITS),
    )


def test_task_fields_by_agents_are_never_markup_or_script(page, addresses):
    for address in addresses[:: sized(4, 1)]:
        assert page.goto(address).status == 200, address
        seen = look(page)
        assert not seen["ran"], address
        assert not seen["rooted"], (address, seen["rooted"])
        assert not seen["bait"], address
        assert not HIDDEN & set(seen["text"]), (address, HIDDEN & set(seen["text"]))
        assert seen["wide"] <= PHONE, (address, seen["wide"])


def test_a_group_with_a_hostile_reason_can_be_opened_and_requeued(page, addresses, server):
    """The reason of a group passes through an address, a form and a filter unchanged."""
    page.goto("/ui/dead-letters")
    row = page.locator("tbody tr", has_text="p0 ").first
    row.get_by_role("link", name="Requeue…").click()
    assert not look(page)["rooted"]
    page.get_by_label("Type 1 to confirm").fill("1")
    page.get_by_role("button", name="Requeue 1 task").click()
    page.wait_for_selector("text=1 requeued")
    assert not look(page)["rooted"]
    page.goto("/ui/tasks")
    assert not look(page)["rooted"]
