"""Webhooks page without a receiver: failing webhooks, and creating, pausing and removing them."""

import re

import pytest
from msgspec.structs import replace

from holdfast.core.row import SECOND
from holdfast.core.webhooks.delivery import AttemptResult, Delivery, FinishedAttempt
from holdfast.core.webhooks.webhook import Webhook
from holdfast.store.contract.deliveries import Capacity, CursorMove
from tests.dashboard.in_process import Visitor, words_of
from tests.support import ACCOUNT, START, put

HOOK = (ACCOUNT, "whk_1")
CAPACITY = Capacity({}, per_hook=3, per_account=100, in_all=100, claim_ttl=20 * SECOND)


@pytest.fixture
def visitor(dashboard):
    return Visitor(dashboard)


@pytest.fixture
def failing(dashboard):
    """A webhook with many deliveries, of which the oldest were tried twenty minutes ago and did not arrive."""
    store = dashboard.engine.store
    put(store, Webhook(*HOOK, url="https://gone.example/", secret="whsec_x", created_at=START), kind="created")
    waiting = tuple(Delivery(*HOOK, seq, f"task:{seq}", "task.created", "{}", START) for seq in range(1, 1002))
    store.deliveries.advance_cursors([CursorMove(HOOK, None, 1001, waiting)])
    claimed = store.deliveries.save_outcomes_and_claim([], CAPACITY)
    lost = AttemptResult(arrived=False, error="no such host")
    store.deliveries.save_outcomes_and_claim(
        [FinishedAttempt(each, lost, 3600 * SECOND) for each in claimed], replace(CAPACITY, in_all=0)
    )
    dashboard.later(20 * 60)
    return Visitor(dashboard)


def test_a_failing_webhook_says_since_when_and_why(failing):
    listed = failing.words("/ui/webhooks")
    assert "1 of 1 webhooks fails" in listed
    assert "for 20 min: no such host" in listed
    assert "1,001" in listed
    page = failing.words("/ui/webhooks/whk_1")
    assert "No delivery has arrived for 20 min. Last error: no such host (1 attempt for event 3" in page
    assert page.index("Last error") < page.index("Events")


def test_a_paused_webhook_does_not_fail(failing):
    assert failing.post("/ui/webhooks/whk_1", act="pause") == "/ui/webhooks/whk_1?done=paused"
    assert "failing" not in failing.words("/ui/webhooks")
    assert "paused" in failing.words("/ui/webhooks")


def test_a_webhook_is_created_on_the_page_and_its_secret_is_shown_once(visitor, dashboard):
    fields = {"url": "https://hooks.example/x", "events": "task.completed, lease.*", "subject": "lease:deploy/*"}
    page = visitor.post("/ui/webhooks", status=200, act="create", **fields)
    secret = re.search(r"whsec_[A-Za-z0-9+/=]+", page)[0]
    with dashboard.engine.store.read() as reader:
        (hook,) = [row for row in reader.rows_after(Webhook, ACCOUNT, "", 10) if row.account == ACCOUNT]
    assert (hook.url, hook.events, hook.subject) == (
        "https://hooks.example/x", '["task.completed","lease.*"]', "lease:deploy/*",
    )  # fmt: skip
    assert hook.secret == secret
    assert secret not in visitor.get(f"/ui/webhooks/{hook.id}")
    assert "https://hooks.example/x" in visitor.words("/ui/webhooks")


def test_a_refused_webhook_leaves_the_form_as_it_was_filled_in(visitor):
    page = visitor.post("/ui/webhooks", status=400, act="create", url="ftp://x.example", events="Nonsense")
    assert "No webhooks yet" in words_of(page), "it is the same page"
    assert "`url`" in words_of(page)
    assert "`events` must contain kinds like" in words_of(page)
    assert 'value="ftp://x.example"' in page
    assert 'value="Nonsense"' in page


def test_a_webhook_is_removed_after_a_confirmation(failing):
    page = failing.post("/ui/webhooks/whk_1", status=400, act="remove")
    assert "check the box to confirm" in words_of(page)
    assert "https://gone.example/" in words_of(page)
    assert failing.post("/ui/webhooks/whk_1", act="remove", sure="yes") == "/ui/webhooks/?done=removed"
    assert "Removed" in failing.words("/ui/webhooks/?done=removed")
    failing.get("/ui/webhooks/whk_1", status=404)


def test_errors_keep_the_navigation(visitor, dashboard):
    for path in ("/ui/nothing", "/ui/tasks/tsk_none", "/ui/jobs/none", "/ui/webhooks/none", "/ui/bulk"):
        answer = dashboard.send("GET", path, cookie=visitor.cookie)
        page = answer.raw.decode()
        assert answer.status in {400, 404}, path
        assert 'aria-label="Pages"' in page, path
        assert 'role="alert"' in page, path
        assert 'aria-current="page"' not in page, path
    assert b'aria-label="Pages"' not in dashboard.send("GET", "/ui/nothing").raw, "not for strangers"
