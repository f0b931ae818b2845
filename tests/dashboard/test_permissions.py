"""Every page with every scope: it opens if the API's operation would answer the key, and shows nothing else."""

import re
from urllib.parse import urlencode

import pytest

from holdfast.core import task as tasks
from holdfast.core.acl import hash_token
from holdfast.core.names import ELECTION_PREFIX
from holdfast.core.prefix_rule import WHOLE
from holdfast.core.principal import SCOPES, Principal, grants
from holdfast.core.reservation.row import Reservation
from holdfast.core.task import Task
from holdfast.core.webhooks.webhook import Webhook
from holdfast.operations.prefix_rules import PREFIX_RULES
from holdfast.operations.table import OPERATIONS
from holdfast.store.memory.store import MemoryStore
from holdfast.transport.dashboard.pages import PAGES
from tests.dashboard.in_process import InProcessDashboard
from tests.support import ACCOUNT, START, DrivenClock, a_lease, a_session, put

OPERATION = {
    "jobs": "list_claimed_jobs",
    "files": "list_reservations",
    "tasks": "list_tasks",
    "queues": "list_queues",
    "dead-letters": "list_tasks",
    "bulk": "requeue_task",
    "agents": "list_sessions",
    "elections": "admin_status",
    "events": "list_events",
    "timeline": "list_events",
    "webhooks": "list_webhooks",
}
"""Which operation a page stands for; the others are for every key."""
WORDS = {
    "canary-job": "list_claimed_jobs",
    "canary-owner": "list_claimed_jobs",
    "canary-file": "list_reservations",
    "canary-editor": "list_reservations",
    "canary-worker": "list_tasks",
    "canary-waiting": "list_tasks",
    "canary-dead": "list_tasks",
    "canary-agent": "list_sessions",
    "canary-hook": "list_webhooks",
    "canary-key": "list_keys",
    "canary-room": "admin_status",
    "throughput-chart": "list_claimed_jobs list_tasks",
}
"""Which operations would tell of it: all of them are needed."""
SEEN = {
    "/": ("canary-job", "canary-file", "canary-worker", "canary-waiting", "canary-agent", "throughput-chart"),
    "/ui/charts": (),
    "/ui/held": ("canary-job", "canary-owner", "canary-file", "canary-worker", "canary-held"),
    "/ui/jobs": ("canary-job", "canary-owner"),
    "/ui/jobs/canary-job": ("canary-job", "canary-owner"),
    "/ui/files": ("canary-file", "canary-editor"),
    "/ui/files/r1": ("canary-file", "canary-editor"),
    "/ui/tasks": ("canary-waiting", "canary-dead"),
    "/ui/tasks/tsk_held": ("canary-worker",),
    "/ui/queues": ("canary-waiting", "canary-held"),
    "/ui/dead-letters": ("canary-dead",),
    "/ui/bulk?verb=requeue&state=dead_letter": ("dead letter",),
    "/ui/agents": ("canary-agent", "canary-job", "canary-file", "canary-held"),
    "/ui/agents/s1": ("canary-agent", "canary-job", "canary-file", "canary-held"),
    "/ui/timeline": ("canary-job", "canary-file", "canary-held"),
    "/ui/elections": ("canary-room",),
    "/ui/events": ("canary-job", "canary-file", "tsk_held"),
    "/ui/events/1": ("canary-job",),
    "/ui/webhooks": ("canary-hook",),
    "/ui/webhooks/whk_1": ("canary-hook",),
    "/ui/keys": ("canary-key",),
    "/ui/keys/k-read": ("canary-key",),
}
"""What each page shows to whoever may see it."""
PART_OF = {"canary-held": "list_tasks", "dead letter": "requeue_task", "tsk_held": "list_tasks"} | WORDS
ONE_OF = {"/ui/keys/k-read": "read_key", "/ui/events/1": "list_claimed_jobs"}
"""Pages of one thing, and the operation that shows it; to other keys it does not exist."""
SCOPE = {operation.name: operation.scope for operation in OPERATIONS}
PREFIX = "team/"


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
        Reservation(ACCOUNT, "r1", space="acme/shop", paths='["canary-file"]', owner="canary-editor", session="s1",
                    ttl=10**9, arrived_at=START, proof="x", token=7, claimed_at=START, expires_at=START + 10**9),
        Task(ACCOUNT, "tsk_waiting", type="canary-waiting", created_at=START, ready=True),
        Task(ACCOUNT, "tsk_dead", type="canary-dead", state=tasks.DEAD, dead_cause=tasks.EXHAUSTED),
        Webhook(ACCOUNT, "whk_1", url="https://canary-hook.example/", secret="whsec_x", created_at=START),
        *(Principal(ACCOUNT, f"k-{scope}", name=f"canary-key-{scope}", key_hash=hash_token(key_of(scope)),
                    scopes=scope, created_at=START) for scope in SCOPES),
        Principal(ACCOUNT, "k-limited", name="myself", key_hash=hash_token(key_of(PREFIX)), scopes="admin jobs tasks",
                  prefix=PREFIX, created_at=START),
        kind="created",
    )  # fmt: skip
    dashboard = InProcessDashboard(store, clock)
    yield dashboard
    dashboard.close()


def key_of(scope):
    return f"a key for nothing but {scope}"


def may(scope, operations):
    return all(grants(scope, SCOPE[operation]) for operation in operations.split())


def page_of(path):
    name = path.partition("?")[0].removeprefix("/ui").strip("/").partition("/")[0]
    return name or "now"


@pytest.mark.parametrize("scope", SCOPES)
def test_a_page_opens_exactly_for_keys_that_the_api_would_answer_and_shows_no_more(dashboard, scope):
    cookie = dashboard.send_key(key_of(scope)).headers["set-cookie"].split(";")[0]
    for path, words in SEEN.items():
        page = page_of(path)
        opens = may(scope, OPERATION[page]) if page in OPERATION else True
        answer = dashboard.send("GET", path, cookie=cookie)
        if path in ONE_OF and opens and not may(scope, ONE_OF[path]):
            assert answer.status == 404
            continue
        assert answer.status == (200 if opens else 403), path
        text = answer.raw.decode().replace(f"canary-key-{scope}", "myself")
        for word in words if opens else ():
            assert (word in text) == may(scope, PART_OF[word]), (path, word)
        for word, operations in WORDS.items():
            if word in text:
                assert may(scope, operations), (path, word)


def test_pages_show_an_administrator_with_a_prefix_nothing_outside_it(dashboard):
    cookie = dashboard.send_key(key_of(PREFIX)).headers["set-cookie"].split(";")[0]
    for path in SEEN:
        page = page_of(path)
        refused = page in OPERATION and PREFIX_RULES[OPERATION[page]] == WHOLE
        answer = dashboard.send("GET", path, cookie=cookie)
        one_outside = path not in {"/", f"/ui/{page}"}
        assert answer.status == (403 if refused else 404 if one_outside else 200), path
        text = answer.raw.decode()
        assert not [word for word in PART_OF if word in text and word != "dead letter"], path
        assert (f"only names that begin with {PREFIX}" in text) == refused


def test_forms_refuse_an_administrator_with_a_prefix_what_has_no_name(dashboard):
    cookie = dashboard.send_key(key_of(PREFIX)).headers["set-cookie"].split(";")[0]
    token = re.search(rb'name="token" value="([0-9a-f]+)"', dashboard.send("GET", "/", cookie=cookie).raw)[1].decode()
    items = {
        "jobs": "canary-job",
        "files": "r1",
        "keys": "k-read",
        "tasks": "tsk_dead",
        "questions": "tsk_dead-1",
        "queues": "work",
        "webhooks": "whk_1",
        "bulk": "x",
    }
    with dashboard.engine.store.read() as reader:
        before = reader.log_bounds(ACCOUNT)
    for page in PAGES:
        for act, (operation, _) in page.actions.items():
            if operation in {"create_key", "revoke_key"}:
                continue  # the engine decides which keys a key may make and revoke
            fields = {"token": token, "act": act, "sure": "yes", "reason": "x"}
            kind = "application/x-www-form-urlencoded"
            path = f"/ui/{page.name}/{items[page.name]}"
            answer = dashboard.send("POST", path, urlencode(fields).encode(), content_type=kind, cookie=cookie)
            assert answer.status == (403 if PREFIX_RULES[operation] == WHOLE else 404), (path, act)
    with dashboard.engine.store.read() as reader:
        assert reader.log_bounds(ACCOUNT) == before


@pytest.mark.parametrize("scope", SCOPES)
def test_forms_refuse_what_the_key_may_not_do(dashboard, scope):
    cookie = dashboard.send_key(key_of(scope)).headers["set-cookie"].split(";")[0]
    token = re.search(rb'name="token" value="([0-9a-f]+)"', dashboard.send("GET", "/", cookie=cookie).raw)[1].decode()
    refused = []
    for page in PAGES:
        for act, (operation, _) in page.actions.items():
            if not may(scope, operation):
                body = urlencode({"token": token, "act": act, "sure": "yes", "reason": "x"}).encode()
                kind = "application/x-www-form-urlencoded"
                answer = dashboard.send("POST", f"/ui/{page.name}/x", body, content_type=kind, cookie=cookie)
                refused.append(answer.status)
    assert set(refused) == (set() if scope == "admin" else {403})
