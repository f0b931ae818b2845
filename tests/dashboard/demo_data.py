"""Sample data for screenshots: groups of failed tasks, one task with many attempts, webhooks and keys."""

from holdfast.core.webhooks.delivery import AttemptResult, Delivery, FinishedAttempt
from holdfast.store.contract.deliveries import Capacity, CursorMove
from tests.dashboard.task_batches import post

TROUBLES = (
    ("translate_page", 38, {"reason": "upstream timed out after {} s"}),
    ("fetch_source", 21, {"reason": "GET https://mirror.example/{} answered 503", "error_code": "http_503"}),
    ("index_repository", 9, {"reason": "no space left on /var/cache/{}"}),
    ("translate_page", 4, {"reason": "glossary 'legal-{}' is not there", "permanent": True}),
)
KEYS = (
    {"name": "nightly worker", "scopes": ["tasks:work"], "expiresInSeconds": 7 * 86_400},
    {"name": "deploy pipeline", "scopes": ["jobs"], "prefix": "deploy/"},
    {"name": "wall display", "scopes": ["read"]},
)
HOOKS = (
    {"url": "https://pager.example/dead-letters", "events": ["task.dead_lettered"]},
    {"url": "https://chat.example/hooks/deployments", "events": ["lease.*"], "subject": "lease:deploy/*"},
)
LEASE = 120
STORY = {
    "type": "review_migration", "priority": 60, "maxAttempts": 4, "tag": "acme/shop", "uniqueKey": "acme/shop/1842",
    "createdBy": "claude-backend", "source": "github", "leaseDurationSeconds": 600,
    "payload": {"repository": "acme/shop", "pull_request": 1842, "focus": ["rounding", "refunds"], "depth": "thorough"},
}  # fmt: skip


def before(stage):
    """Create the past; the id of the task that is still held."""
    root = stage.root
    for hook in HOOKS:
        assert root.post("/v1/webhooks", hook).status == 201
    for key in KEYS:
        assert root.post("/v1/keys", key).status == 201
    task = root.post("/v1/tasks", STORY | {"leaseDurationSeconds": LEASE}).json["id"]
    for number, (kind, many, failure) in enumerate(TROUBLES):
        for index in range(many):
            path, lease = _claim(root, _new(root, kind), "cursor-ui")
            post(root, f"{path}/fail", failure | {"reason": failure["reason"].format(20 + index), "lease_id": lease})
        stage.pass_time(70)
        if number == 0:
            path, lease = _claim(root, task, "codex-api")
            stage.pass_time(12)
            wrong = {"reason": "the diff is larger than my context", "error_code": "too_large", "lease_id": lease}
            post(root, f"{path}/fail", wrong | {"note": "split it by directory", "checkpoint": {"files_read": 14}})
        if number == 1:
            _claim(root, task, "gemini-review")
            stage.pass_time(LEASE + 1)  # and was not heard of again
    return task


def now(stage, task):
    """Let the task be held with progress."""
    path, lease = _claim(stage.root, task, "claude-docs")
    left = {
        "note": "refunds done; two comments drafted, rounding is next", "progress": {"done": 9, "of": 14},
        "checkpoint": {"reviewed": ["src/refund.py", "src/tax.py"], "comments": 2, "next": "src/rounding.py"},
    }  # fmt: skip
    post(stage.root, f"{path}/heartbeat", {"lease_id": lease, **left})


def tell(stage):
    """Create webhooks with deliveries; one receiver was unreachable, and its webhook is paused."""
    store, found = stage.engine.store, {}
    for hook in stage.root.get("/v1/webhooks").json["webhooks"]:
        name = ("default", hook["webhook_id"])
        kind, subject = hook["events"][0].rstrip("*"), (hook["subject"] or "").rstrip("*")
        log = stage.root.get(f"/v1/events?limit=1000&kind={kind}*&subject={subject}*").json["events"]
        with store.read() as reader:
            moments = {event.seq: event.at for event in reader.events("default", 0, 10_000)}
        kept = [Delivery(*name, each["seq"], each["subject"], each["kind"], "{}", moments[each["seq"]]) for each in log]
        store.deliveries.advance_cursors([CursorMove(name, None, log[-1]["seq"], tuple(kept))])
        found[name] = kept[-1].seq
    room = Capacity(busy={}, per_hook=1_000, per_account=1_000, in_all=1_000, claim_ttl=60_000_000)
    while taken := store.deliveries.save_outcomes_and_claim([], room):
        store.deliveries.save_outcomes_and_claim([_verdict(each, found) for each in taken], Capacity({}, 0, 0, 0, 1))


def _verdict(delivery, newest):
    if delivery.kind == "task.dead_lettered" and delivery.seq % 3 == 0 and delivery.seq < newest[delivery.webhook_key]:
        return FinishedAttempt(delivery, AttemptResult(arrived=False, status=503, error="answered 503"))
    return FinishedAttempt(delivery, AttemptResult(arrived=True, status=204))


def _new(root, kind):
    return root.post("/v1/tasks", {"type": kind, "payload": {"page": 7}, "maxAttempts": 1}).json["id"]


def _claim(root, task, worker):
    path = f"/v1/tasks/{task}"
    return path, post(root, f"{path}/claim", {"worker_id": worker})["leaseId"]
