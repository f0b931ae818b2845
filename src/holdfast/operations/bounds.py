"""Bounds and defaults of all request fields: the one table that handlers, schemas, documents and CLI help read.

Each bound is a constant; `FIELDS` maps the fields of each operation to their bounds. A limit that core enforces is
defined in `core/limits.py` and used here. This module imports next to nothing because the CLI reads it at start-up.
"""

from __future__ import annotations

from holdfast.core.limits import (
    MAX_ACL_ENTRIES,
    MAX_CLAIMED_LEASE,
    MAX_DELAY,
    MAX_PATH_LENGTH,
    MAX_RESERVED_PATHS,
    MAX_WEBHOOK_URL,
    NAME_LIMIT,
)
from holdfast.operations.bound_kinds import KB, Bound, Count, JsonSize, Length, Range, Rate

HOUR, DAY = 3600, 24 * 3600
MAX_SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON parser reads exactly."""

# -- requests ----------------------------------------------------------------------------------------------------

BODY_BYTES = 1024 * KB
BATCH_BODY_BYTES = 8 * 1024 * KB
OCTOSTORE_BODY_BYTES = 2 * 1024 * KB
PUBLIC_BODY_BYTES = 64 * KB
"""The limit of requests that need no key, and of OctoStore's requests whose key is missing or wrong."""
IDEMPOTENCY_KEY = Length(255, least=1)
QUERY_TEXT = Length(1024)
WAIT = Range(0, 60, if_omitted=0)
"""Seconds that a request may wait on the server."""
TOOL_WAIT = Range(0, 50, if_omitted=0)
"""Seconds that an MCP tool may wait: many clients give up on a call after 60."""
TOOL_LIST_BYTES = 32_000
"""Size of a page of a list that an MCP tool shows, about 8,000 tokens of a model."""
REGISTRATIONS_PER_ADDRESS = Rate(10, HOUR)
DOCUMENTS_PER_ADDRESS = Rate(60, 60)
"""Rates of requests without a key, if the plan of new accounts has limits."""

# -- jobs and tasks ----------------------------------------------------------------------------------------------

JOB_ID = Length(NAME_LIMIT, least=1)
JOB_TTL = Range(1, HOUR, if_omitted=120)
JOB_OWNER = Length(256, least=1)
JOB_METADATA = JsonSize(4 * KB)
ANY_OF = Count(100, least=1)
JOB_RESULT = JsonSize(64 * KB)
DONE_FOR = Range(1, 3650 * DAY, if_omitted=7 * DAY)
JOB_PAGE = Range(1, 1000, if_omitted=100)
SESSION_LEASE_ID = Length(256)
WAITING_ID = Length(64)
OFFER_CODE = Length(64)
OFFER_LIFETIME = Range(1, DAY, if_omitted=HOUR)
NOTE = Length(4096)
CHECKPOINT = JsonSize(64 * KB)
PROGRESS = JsonSize(1 * KB)
REASON = Length(500)
FORCE_REASON = Length(REASON.most, least=1)

TASK_TYPE = Length(100, least=1)
TASK_PAYLOAD = JsonSize(64 * KB, depth=5)
TASK_PRIORITY = Range(0, 100, if_omitted=0)
TASK_MAX_ATTEMPTS = Range(1, 10, if_omitted=3)
TASK_LEASE = Range(30, HOUR, if_omitted=300)
CLAIMED_TASK_LEASE = Range(TASK_LEASE.least, MAX_CLAIMED_LEASE)
"""Seconds to which a claim may lengthen the lease of a task."""
TASK_DELAY = Range(0, MAX_DELAY)
TASK_MAX_RUN = Range(1, 30 * DAY)
TASK_UNIQUE_KEY = TASK_CONCURRENCY_KEY = Length(255, least=1)
TASK_LABEL = Length(255)
TASK_DEPENDENCIES = Count(100)
TASK_REF = Length(255, least=1)
TASK_REQUIRES, QUEUE_LIMIT = Count(10), Range(0, 1_000_000)
CAPABILITIES = Count(100)
TASK_ERROR_CODE = Length(100)
TASK_CLAIM_LIMIT = Range(1, 100)
TASK_CLAIM_TYPES = Count(100)
TASK_PAGE = Range(1, 100, if_omitted=50)
BATCH_ITEMS = Count(1000, least=1)
QUESTION, ANSWER = Length(4096, least=1), Length(4096, least=1)
CHOICES, CHOICE = Count(20), Length(255, least=1)
QUESTION_PAGE = Range(1, 100, if_omitted=50)
HEARTBEAT_LEASES = Count(500, least=1)
"""So many usual names fit into a body that is small enough to be read without waiting for other large ones."""

# -- reservations ------------------------------------------------------------------------------------------------

SPACE = Length(256, least=1)
SPACE_FILTER, PATH_FILTER = Length(SPACE.most), Length(MAX_PATH_LENGTH)
RESERVED_PATHS = Count(MAX_RESERVED_PATHS, least=1)
RESERVATION_TTL = Range(1, DAY, if_omitted=900)
RESERVATION_PAGE = Range(1, 1000, if_omitted=100)
CHECKED_PATHS = Count(1000, least=1)
CHECKED_LEASES = Count(100)

# -- sessions, events, accounts, keys, webhooks ------------------------------------------------------------------

SESSION_NAME = Length(256, least=1)
SESSION_SECRET = Length(256)
SESSION_TTL = Range(10, HOUR, if_omitted=120)
SESSION_TEXT = Length(4096)
SESSION_CONTEXT = JsonSize(64 * KB)
SESSION_TURN = Range(0, MAX_SAFE_INTEGER)
SESSION_PAGE = Range(1, 1000, if_omitted=100)

EVENT_CURSOR = Range(0, 2**53, if_omitted=0)
EVENT_PAGE = Range(1, 1000, if_omitted=100)
TASK_EVENT_PAGE = Range(1, 1000, if_omitted=1000)

EXPORT_PAGE = Range(1, 1000, if_omitted=500)

KEY_NAME = Length(128, least=1)
KEY_PREFIX = Length(256, least=1)
KEY_LIFETIME = Range(1, 10 * 365 * DAY)
KEY_GRACE = Range(0, DAY, if_omitted=HOUR)

WEBHOOK_URL = Length(MAX_WEBHOOK_URL)
WEBHOOK_EVENTS = Count(20)
WEBHOOK_GRACE = Range(0, 7 * DAY, if_omitted=DAY)
WEBHOOKS_PER_ACCOUNT = 50
DELIVERY_NUMBER = Range(-(2**53), 2**53)
DELIVERY_PAGE = Range(1, 1000, if_omitted=100)
REPLAYED_DELIVERIES = 1000
"""Deliveries that one replay request sends again."""

# -- OctoStore ---------------------------------------------------------------------------------------------------

LOCK_TTL = Range(1, HOUR, if_omitted=60)
LOCK_DELAY = Range(0, 30, if_omitted=0)
LOCK_METADATA = Length(1024)
LOCK_ACL = Count(MAX_ACL_ENTRIES, least=1)
LOCK_USERNAME = Length(64, least=1)
LOCK_WEBHOOK_SECRET = Length(1024)
LOCK_WEBHOOK_PATTERN = Length(256)
LOCK_WEBHOOKS_PER_USER = 10
ELECTION_TTL = Range(5, 300, if_omitted=30)

# -- which field has which bound ---------------------------------------------------------------------------------

MORE_TYPES = Count(TASK_CLAIM_TYPES.most - 1)
"""One less than the limit, because `type` counts as well."""
_CLAIMER: dict[str, Bound] = {
    "worker_id": TASK_LABEL,
    "session_lease_id": TASK_LABEL,
    "lease_duration_seconds": CLAIMED_TASK_LEASE,
    "capabilities": CAPABILITIES,
}
_SESSION: dict[str, Bound] = {"session_lease_id": SESSION_LEASE_ID}
_HANDOVER: dict[str, Bound] = {"note": NOTE, "checkpoint": CHECKPOINT}
_PROOF: dict[str, Bound] = {
    "lease_id": TASK_LABEL,
    "worker_id": TASK_LABEL,
    **_HANDOVER,
    "progress": PROGRESS,
    **_SESSION,
}
_CLAIM_JOB: dict[str, Bound] = {
    "owner": JOB_OWNER,
    "ttl_seconds": JOB_TTL,
    "metadata": JOB_METADATA,
    "session_lease_id": SESSION_LEASE_ID,
    "wait_seconds": WAIT,
    "waiting_id": WAITING_ID,
}
_OFFER: dict[str, Bound] = {**_HANDOVER, "expires_in_seconds": OFFER_LIFETIME, "to": SESSION_NAME}
_CONTEXT: dict[str, Bound] = {
    "turn": SESSION_TURN,
    "last_action": SESSION_TEXT,
    "next_action": SESSION_TEXT,
    "context_hash": SESSION_TEXT,
    "memory_ref": SESSION_TEXT,
    "context": SESSION_CONTEXT,
}
_BEGIN: dict[str, Bound] = {"capabilities": CAPABILITIES, **_CONTEXT}
_WEBHOOK: dict[str, Bound] = {"url": WEBHOOK_URL, "events": WEBHOOK_EVENTS, "subject": QUERY_TEXT}
_TASK_TEXTS = ("cursor", "type", "tag", "key", "uniqueKey", "worker", "sessionId")

FIELDS: dict[str, dict[str, Bound]] = {
    "claim_job": {**_CLAIM_JOB, "offer": OFFER_CODE},
    "claim_any_job": {"any_of": ANY_OF, **_CLAIM_JOB},
    "heartbeat_job": {
        "ttl_seconds": Range(JOB_TTL.least, JOB_TTL.most),
        **_HANDOVER,
        "progress": PROGRESS,
        **_SESSION,
    },
    "release_job": {**_HANDOVER, "result": JOB_RESULT, "done_for_seconds": DONE_FOR, **_SESSION},
    "offer_job": _OFFER,
    "heartbeat_leases": {"leases": HEARTBEAT_LEASES},
    "force_release_job": {"reason": FORCE_REASON},
    "list_claimed_jobs": {"limit": JOB_PAGE},
    "reserve_files": {
        "space": SPACE,
        "owner": JOB_OWNER,
        "paths": RESERVED_PATHS,
        "ttl_seconds": RESERVATION_TTL,
        "reason": REASON,
        "metadata": JOB_METADATA,
        "session_lease_id": SESSION_LEASE_ID,
        "wait_seconds": WAIT,
        "waiting_id": WAITING_ID,
    },
    "heartbeat_reservation": {"ttl_seconds": Range(RESERVATION_TTL.least, RESERVATION_TTL.most), **_SESSION},
    "release_files": {"paths": Count(RESERVED_PATHS.most), **_SESSION},
    "extend_reservation": {"paths": RESERVED_PATHS, **_SESSION},
    "offer_reservation": _OFFER,
    "claim_reservation": {
        "owner": JOB_OWNER,
        "offer": OFFER_CODE,
        "ttl_seconds": RESERVATION_TTL,
        "session_lease_id": SESSION_LEASE_ID,
    },
    "force_release_reservation": {"reason": FORCE_REASON},
    "list_reservations": {
        "limit": RESERVATION_PAGE,
        "space": SPACE_FILTER,
        "path": PATH_FILTER,
        "owner": QUERY_TEXT,
        "cursor": QUERY_TEXT,
    },
    "check_files": {"space": SPACE, "paths": CHECKED_PATHS, "lease_ids": CHECKED_LEASES},
    "list_mine": {"limit": JOB_PAGE, "owner": QUERY_TEXT, "cursor": QUERY_TEXT},
    "create_task": {
        "payload": TASK_PAYLOAD,
        "priority": TASK_PRIORITY,
        "maxAttempts": TASK_MAX_ATTEMPTS,
        "leaseDurationSeconds": TASK_LEASE,
        "maxRunSeconds": TASK_MAX_RUN,
        "idempotencyKey": IDEMPOTENCY_KEY,
        "uniqueKey": TASK_UNIQUE_KEY,
        "dependsOn": TASK_DEPENDENCIES,
        "tag": TASK_LABEL,
        "createdBy": TASK_LABEL,
        **dict.fromkeys(("reviewedBy", "source"), TASK_LABEL),
        "requires": TASK_REQUIRES,
        "concurrencyKey": TASK_CONCURRENCY_KEY,
    },
    "claim_task": {"types": MORE_TYPES, "limit": TASK_CLAIM_LIMIT, "wait_seconds": WAIT, **_CLAIMER},
    "claim_task_by_id": {**_CLAIMER, "offer": OFFER_CODE},
    "heartbeat": _PROOF,
    "complete_task": {**_PROOF, "result": TASK_PAYLOAD, "output_id": TASK_LABEL},
    "fail_task": {
        **_PROOF,
        "reason": REASON,
        "error_code": TASK_ERROR_CODE,
        "retry_after_seconds": TASK_DELAY,
    },
    "release_task": {**_PROOF, "delay_seconds": TASK_DELAY},
    "snooze_task": {**_PROOF, "seconds": TASK_DELAY},
    "ask_task": {**_PROOF, "question": QUESTION, "choices": CHOICES, "onTimeout": ANSWER},
    "list_questions": {"limit": QUESTION_PAGE, "cursor": QUERY_TEXT},
    "answer_question": {"answer": ANSWER, "reason": REASON},
    "offer_task": {"lease_id": TASK_LABEL, **_OFFER},
    "withdraw_task_offer": {"lease_id": TASK_LABEL},
    "cancel_task": {"reason": REASON},
    "batch_tasks": {"items": BATCH_ITEMS},
    "check_task_status": {"wait_seconds": WAIT},
    "list_tasks": {"limit": TASK_PAGE, **dict.fromkeys(_TASK_TEXTS, QUERY_TEXT)},
    "task_dependencies": {"limit": TASK_PAGE, "cursor": QUERY_TEXT},
    "list_queues": {"limit": SESSION_PAGE, "cursor": QUERY_TEXT},
    "set_queue": {"max_running": QUEUE_LIMIT, "max_running_per_key": QUEUE_LIMIT},
    "task_events": {"after": EVENT_CURSOR, "limit": TASK_EVENT_PAGE},
    "begin_session": {"name": SESSION_NAME, "secret": SESSION_SECRET, "ttl_seconds": SESSION_TTL, **_BEGIN},
    "list_sessions": {"limit": SESSION_PAGE, "cursor": QUERY_TEXT},
    "read_session": {"cursor": QUERY_TEXT},
    **dict.fromkeys(("heartbeat_session", "write_context"), _CONTEXT),
    "list_events": {
        "after": Range(EVENT_CURSOR.least, EVENT_CURSOR.most),
        "limit": EVENT_PAGE,
        "wait_seconds": WAIT,
        "subject": QUERY_TEXT,
        "kind": QUERY_TEXT,
        "request_id": QUERY_TEXT,
    },
    "export_account": {"limit": EXPORT_PAGE},
    "create_key": {"name": KEY_NAME, "prefix": KEY_PREFIX, "expiresInSeconds": KEY_LIFETIME},
    "rotate_key": {"graceSeconds": KEY_GRACE},
    "rotate_own_key": {"graceSeconds": KEY_GRACE},
    "create_webhook": _WEBHOOK,
    "update_webhook": _WEBHOOK,
    "rotate_webhook_secret": {"grace_seconds": WEBHOOK_GRACE},
    "list_deliveries": {"limit": DELIVERY_PAGE},
    "replay_deliveries": {"seq": DELIVERY_NUMBER, "after": DELIVERY_NUMBER},
    "acquire_lock": {"ttl_seconds": LOCK_TTL, "metadata": LOCK_METADATA, "lock_delay_seconds": LOCK_DELAY},
    "renew_lock": {"ttl_seconds": LOCK_TTL},
    "campaign": {"ttl_seconds": ELECTION_TTL, "metadata": LOCK_METADATA},
    "renew_leadership": {"ttl_seconds": ELECTION_TTL},
    "create_lock_webhook": {"url": WEBHOOK_URL, "secret": LOCK_WEBHOOK_SECRET, "lock_pattern": LOCK_WEBHOOK_PATTERN},
}
"""Bounds by operation and by the field's name in the request."""
