"""Text by agents is never markup: on every page, in every field, in a real browser.

The fixture of the pages fails a test for any dialog, any request that leaves the server, any error and any violation of
the policy. What is left to ask here is that nothing ran, nothing took root in the document, and everything can be read.
"""

from urllib.parse import quote

import pytest

from tests.compat.octostore.wire import lock_path
from tests.dashboard.client import DashboardClient
from tests.dashboard.payloads import HIDDEN, MARKUP, PAYLOADS
from tests.http.job_client import ROOT_KEY, root
from tests.proof_size import sized

BAITS = [
    "script:not([src^='/ui/static/'])", "link:not([href^='/ui/static/'])", "img:not([src^='/ui/static/'])", "iframe",
    "object", "embed", "base", "style", "video", "audio", "meta[http-equiv]", "[style]", "[onerror]", "[onload]",
    "[onfocus]", "[onmouseover]", "a[href^='javascript' i]", "a[href^='data' i]", "a[href^='//']",
    "form:not([action^='/ui/']):not([method=dialog])",
]  # fmt: skip
"""What none of our templates has, and a payload would."""
LONG = "x" * 250
AT_ONCE = sized(16, 1)
"""How many of them share one job: a page for each of them only at full size."""


def groups():
    return [PAYLOADS[start : start + AT_ONCE] for start in range(0, len(PAYLOADS), AT_ONCE)]


@pytest.fixture(scope="module")
def addresses(server):
    """A server whose data is all hostile; the addresses of the pages that show it."""
    agent, found = root(server), ["/", "/ui/jobs", "/ui/jobs?state=all", "/ui/files", "/ui/agents", "/ui/elections"]
    for number, payloads in enumerate(groups()):
        text = f"p{number} " + " ".join(payloads)
        job = f"hostile/{number}"
        for reason in (text[:500], None):  # one owner who was thrown out, and one who has it now
            fields = {"ttl_seconds": 3600, "metadata": {"link": payloads[0], text: [text]}}
            lease = agent.claim(job, (text + payloads[0])[:256], **fields).json["lease_id"]
            checks = {"checkpoint": {text: text}, "progress": {"at": text[:300]}}
            assert agent.heartbeat(job, lease, note=text, **checks).status == 200
            if reason:
                assert agent.force_release(job, reason).status == 200
        session = agent.post("/v1/sessions", {"name": f"agent-{number}", "ttl_seconds": 3600}).json
        assert "lease_id" in session, session
        context = {"last_action": text, "next_action": text, "memory_ref": payloads[-1], "context": {text: text}}
        written = agent.post(
            f"/v1/sessions/{session['session_id']}/context", {"lease_id": session["lease_id"], **context}
        )
        assert written.status == 200, written
        room = {"candidate_id": f"candidate-{number}", "metadata": text[:1000], "ttl_seconds": 300}
        agent.post(f"/elections/hostile-room-{number}/campaign", room)
        printable = "".join(each for each in text if each.isprintable() and each not in "*?/").replace("..", "")[:400]
        wish = {"owner": text[:256], "paths": [f"{number}/{printable}"], "reason": text[:500], "metadata": {text: text}}
        files = agent.post("/v1/reservations", {"space": f"hostile/{number}{printable[:50]}".strip(), **wish}).json
        assert "reservation_id" in files, files
        agent.post("/v1/tasks", {"type": "hostile", "payload": {"text": text}, "tag": text[:60]})
        found += [f"/ui/jobs/{job}", f"/ui/agents/{session['session_id']}", f"/ui/files/{files['reservation_id']}"]
    # A link that a user was tricked into opening also comes back in the page.
    for text in MARKUP[:: len(MARKUP) // 4]:
        found += [f"/ui/jobs?q={quote(text)}&after={quote(text)}", f"/ui/files?q={quote(text)}&path={quote(text)}"]
    agent.claim(f"{LONG}/job", LONG, metadata=LONG, ttl_seconds=3600)
    agent.post(lock_path("\u05d0\u05d1\u05d2\u0627\u0628", "/acquire"), {"ttl_seconds": 3600})
    return [*found, f"/ui/jobs/{LONG}/job"]


@pytest.fixture
def page(browse, server):
    """A page on a phone, for a key with a hostile name."""
    made = root(server).post("/v1/keys", {"name": "<img src=x onerror=window.pwned=1>\u202e"[:60], "scopes": ["admin"]})
    return browse(made.json["apiKey"] if made.status == 201 else ROOT_KEY, width=390, height=844)


def test_text_by_agents_is_never_markup_or_script(page, addresses):
    page.evaluate("window.pwned = undefined")
    for address in addresses[:: sized(4, 1)]:
        page.goto(address)
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
        page.wait_for_selector("#live-state[data-state=live]")
        seen = page.evaluate(
            """(bait) => ({
                ran: window.pwned !== undefined,
                rooted: [...document.querySelectorAll(bait)].map((each) => each.outerHTML.slice(0, 200)),
                text: document.querySelector('main').textContent,
                wide: document.documentElement.scrollWidth,
                bait: document.getElementById('bait') !== null,
            })""",
            ", ".join(BAITS),
        )
        assert not seen["ran"], address
        assert not seen["rooted"], (address, seen["rooted"])
        assert not seen["bait"], address
        assert not HIDDEN & set(seen["text"]), (address, HIDDEN & set(seen["text"]))
        assert seen["wide"] <= 390, (address, seen["wide"])


def test_the_address_is_never_shown_as_markup(server):
    """Opened by a signed-in browser, and by one that must sign in first."""
    client, anybody = DashboardClient(server.port).sign_in(), DashboardClient(server.port)
    for text in (each for each in MARKUP if set(each) & set("<>\"'")):
        lure = quote(text)
        for who, path in ((client, f"/ui/jobs?q={lure}&after={lure}"), (client, f"/ui/{lure}"),
                          (anybody, f"/ui/jobs?q={lure}"), (anybody, f"/ui/enter/{lure}")):  # fmt: skip
            page = who.get(path)[2]
            assert "<!doctype html>" in page
            assert text not in page, path


def test_everything_that_agents_write_can_be_read(page, addresses):
    """Detail pages show the whole text, with hidden characters as code points."""
    for number, payloads in enumerate(groups()):
        page.goto(f"/ui/jobs/hostile/{number}")
        text = page.locator("main").text_content()
        assert f"p{number} " in text
        for payload in payloads:
            shown = "".join(f"\\u{{{ord(each):x}}}" if each in HIDDEN else each for each in payload)
            if payload.isascii() and payload.isprintable():
                assert payload in text, payload
            elif set(payload) & HIDDEN and "\n" not in payload:
                assert shown.split()[0] in text, payload


def test_only_plain_web_addresses_become_links(page, addresses, server):
    agent = root(server)
    for reference, followed in (
        ("https://notes.example/a", True),
        ("javascript:1", False),
        ("https://a@b.example", False),
    ):
        session = agent.post(
            "/v1/sessions", {"name": f"linked-{followed}-{len(reference)}", "memory_ref": reference}
        ).json
        page.goto(f"/ui/agents/{session['session_id']}")
        assert page.locator(f"main a[href='{reference}']").count() == followed
        assert reference in page.locator("main").text_content()
