"""Every page with every scope: it opens if the API's operation would answer the key, and shows nothing else."""

import re
from urllib.parse import urlencode

import pytest

from holdfast.core import task as tasks
from holdfast.core.acl import hash_token
from holdfast.core.names import ELECTION_PREFIX
from holdfast.core.principal import SCOPES, Principal, grants
from holdfast.core.task import Task
from holdfast.core.webhooks.webhook import Webhook
from holdfast.operations.table import OPERATIONS
from holdfast.store.memory.store import MemoryStore
from holdfast.transport.dashboard.pages import PAGES
from tests.dashboard.in_process import InProcessDashboard
from tests.support import ACCOUNT, START, DrivenClock, a_lease, a_session, put

OPERATION = {
    "jobs": "list_claimed_jobs",
    "tasks": "list_tasks",
    "dead-letters": "list_tasks",
    "bulk": "requeue_task",
    "agents": "list_sessions",
    "elections": "admin_status",
    "events": "list_events",
    "webhooks": "list_webhooks",
}
"""Which operation a page stands for; the others are for every key."""
WORDS = {
    "canary-job": "list_claimed_jobs",
    "canary-owner": "list_claimed_jobs",
    "canary-worker": "list_tasks",
    "canary-waiting": "list_tasks",
    "canary-dead": "list_tasks",
    "canary-agent": "list_sessions",
    "canary-hook": "list_webhooks",
    "canary-key": "list_keys",
    "canary-room": "admin_status",
    "throughput-chart": "list_events",
}
"""Which operation would tell of it."""
SEEN = {
    "/": ("canary-job", "canary-worker", "canary-waiting", "canary-agent", "throughput-chart"),
    "/ui/jobs": ("canary-job", "canary-owner"),
    "/ui/jobs/canary-job": ("canary-job", "canary-owner"),
    "/ui/tasks": ("canary-waiting", "canary-dead"),
    "/ui/tasks/tsk_held": ("canary-worker",),
    "/ui/dead-letters": ("canary-dead",),
    "/ui/bulk?verb=requeue&state=dead_letter": ("dead letter",),
    "/ui/agents": ("canary-agent", "canary-job", "canary-held"),
    "/ui/agents/s1": ("canary-agent", "canary-job", "canary-held"),
    "/ui/elections": ("canary-room",),
    "/ui/events": ("canary-job", "tsk_held"),
    "/ui/events/1": ("canary-job",),
    "/ui/webhooks": ("canary-hook",),
    "/ui/webhooks/whk_1": ("canary-hook",),
    "/ui/keys": ("canary-key",),
    "/ui/keys/k-read": ("canary-key",),
}
"""What each page shows to whoever may see it."""
PART_OF = {"canary-held": "list_tasks", "dead letter": "requeue_task", "tsk_held": "list_events"} | WORDS
SCOPE = {operation.name: operation.scope for operation in OPERATIONS}


@pytest.fixture(scope="module")
def dashboard():
    store = MemoryStore(clock := DrivenClock())
    held = Task(ACCOUNT, "tsk_held", type="canary-held", state=tasks.CLAIMED, worker="canary-worker", session="s1",
                claimed_at=START, expires_at=START + 10**9, lease_duration=10**9)  # fmt: skip
    put(
        store,
        a_lease("canary-job", owner="canary-owner", session="s1", ephemeral=True),
        a_lease(f"{ELECTION_PREFIX}canary-room", kind="election", owner="candidate"),
        a_session("s1", name="canary-agent"),
        held,
        Task(ACCOUNT, "tsk_waiting", type="canary-waiting", created_at=START, ready=True),
        Task(ACCOUNT, "tsk_dead", type="canary-dead", state=tasks.DEAD, dead_cause=tasks.EXHAUSTED),
        Webhook(ACCOUNT, "whk_1", url="https://canary-hook.example/", secret="whsec_x", created_at=START),
        *(Principal(ACCOUNT, f"k-{scope}", name=f"canary-key-{scope}", key_hash=hash_token(key_of(scope)),
                    scopes=scope, created_at=START) for scope in SCOPES),
        kind="created",
    )  # fmt: skip
    dashboard = InProcessDashboard(store, clock)
    yield dashboard
    dashboard.close()


def key_of(scope):
    return f"a key for nothing but {scope}"


def may(scope, operation):
    return grants(scope, SCOPE[operation])


def page_of(path):
    name = path.partition("?")[0].removeprefix("/ui").strip("/").partition("/")[0]
    return name or "now"


@pytest.mark.parametrize("scope", SCOPES)
def test_a_page_opens_exactly_for_keys_that_the_api_would_answer_and_shows_no_more(dashboard, scope):
    cookie = dashboard.send_key(key_of(scope)).headers["set-cookie"].split(";")[0]
    for path, words in SEEN.items():
        page = page_of(path)
        opens = may(scope, OPERATION[page]) if page in OPERATION else True
        if path == "/ui/keys/k-read" and not may(scope, "read_key"):
            assert dashboard.send("GET", path, cookie=cookie).status == 404
            continue
        answer = dashboard.send("GET", path, cookie=cookie)
        assert answer.status == (200 if opens else 403), path
        text = answer.raw.decode().replace(f"canary-key-{scope}", "myself")
        for word in words if opens else ():
            assert (word in text) == (may(scope, PART_OF[word]) or page == "events"), (path, word)
        for word, operation in WORDS.items():
            if word in text:
                assert may(scope, operation) or (may(scope, "list_events") and page == "events"), (path, word)


@pytest.mark.parametrize("scope", SCOPES)
def test_forms_refuse_what_the_key_may_not_do(dashboard, scope):
    cookie = dashboard.send_key(key_of(scope)).headers["set-cookie"].split(";")[0]
    token = re.search(rb'name="token" value="([0-9a-f]+)"', dashboard.send("GET", "/", cookie=cookie).raw)[1].decode()
    refused = []
    for page in PAGES:
        for act, (needed, _) in page.actions.items():
            if not grants(scope, needed):
                body = urlencode({"token": token, "act": act, "sure": "yes", "reason": "x"}).encode()
                kind = "application/x-www-form-urlencoded"
                answer = dashboard.send("POST", f"/ui/{page.name}/x", body, content_type=kind, cookie=cookie)
                refused.append(answer.status)
    assert set(refused) == (set() if scope == "admin" else {403})
    rights = {needed for page in PAGES for needed, _ in page.actions.values()}
    assert rights == {SCOPE["force_release_job"], SCOPE["requeue_task"]}, (
        "what pages do, the API does for the same keys"
    )
