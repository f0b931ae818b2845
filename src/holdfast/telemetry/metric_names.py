"""Every metric of Holdfast. A new one needs a line here and a line in docs/guides/operations.md.

Units are seconds and bytes; no value chosen by a caller is ever a label.
"""

from __future__ import annotations

from holdfast.telemetry.kinds import LEAST, MOST, MetricSet

FAMILIES = ("job", "lock", "election", "task", "reservation", "session")
CLAIMED = FAMILIES[:5]
"""Families with claims; a session is opened, not claimed."""

TIMES = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 1.0, 10.0)
"""Bucket bounds of request durations, in seconds; OctoStore's percentiles are computed from them."""
SHORT_TIMES = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1.0)
"""Bucket bounds of the phases of a batch, in seconds."""
DELAYS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)

KINDS = ("acquire", "auth", "election", "list", "release", "renew", "status",
         "job", "task", "reservation", "session", "event", "account", "webhook", "mcp", "other")  # fmt: skip
STATUSES = tuple(f"{digit}xx" for digit in range(10))
PHASES = ("load", "decide", "save", "commit")
WAITS = ("name", "work", "reservation", "change")
LOOPS = ("sweep", "retention", "beat", "uses", "webhooks")
REASONS = (
    "rate_limited", "lock_limit_exceeded", "capacity_exceeded", "too_many_waiters", "space_full", "max_workers_reached",
    "store_unavailable", "overloaded", "draining", "idempotency_in_flight", "storage_full", "value_refused",
    "damaged_row", "payment_unavailable", "outcome_unknown", "server_outdated", "other",
)  # fmt: skip
ALERT_KINDS = ("conflicts", "lapses", "dead_letters", "recovery_failures")

METRICS = MetricSet()
_counter, _gauge, _histogram = METRICS.counter, METRICS.gauge, METRICS.histogram

# -- requests ----------------------------------------------------------------------------------------------------

REQUESTS = _counter("holdfast_requests", "Requests answered.", class_=KINDS, status=STATUSES)
REQUEST_SECONDS = _histogram(
    "holdfast_request_duration_seconds",
    "Time from the head of a request to the head of its response.",
    TIMES,
    class_=KINDS,
)
SHORTEST = _counter("shortest", "The fastest answer.", merge=LEAST, exported=False, class_=KINDS)
LONGEST = _counter("longest", "The slowest answer.", merge=MOST, exported=False, class_=KINDS)
REFUSED = _counter(
    "holdfast_refused", "Requests refused with 429, 503 or 507, by the code of the refusal.", reason=REASONS
)
KEY_CHANGES = _counter(
    "key_changes",
    "Changes of keys and accounts: if it grows, every worker looks up again what it has cached.",
    exported=False,
)
CONNECTIONS = _gauge("holdfast_connections", "Open connections.")
CLOSED_CONNECTIONS = _counter(
    "holdfast_closed_connections",
    "Connections closed because of the limit of open files: the longest idle, or the new one if none was idle.",
    which=("idle", "new"),
)
STREAMS = _gauge("holdfast_streams", "Connected readers of event streams.")
DELIVERIES = _counter(
    "holdfast_webhook_deliveries", "Attempts to deliver an event to a webhook.", outcome=("delivered", "failed", "dead")
)

# -- ownership ---------------------------------------------------------------------------------------------------

CLAIMS = _counter(
    "holdfast_claims",
    "Claims answered: granted, held by another holder, nothing to claim, refused, or done already.",
    family=CLAIMED,
    outcome=("granted", "held", "empty", "refused", "done"),
)
CONTENDED = _counter("holdfast_contended_claims", "Claims that found another holder, whether they waited or not.",
                     family=CLAIMED)  # fmt: skip
RENEWALS = _counter("holdfast_renewals", "Renewals by holders.", family=FAMILIES)
RELEASES = _counter(
    "holdfast_releases",
    "Leases released by their holder (also with the outcome done or failed) or with its session, forced by an"
    " administrator, handed over, or never delivered.",
    family=CLAIMED,
    how=("released", "forced", "undelivered", "done", "failed", "handed_over"),
)
EXPIRIES = _counter("holdfast_expiries", "Leases and sessions that expired.", family=FAMILIES)
TAKEOVERS = _counter("holdfast_takeovers", "Claims of something whose last lease had expired.", family=CLAIMED)
LATENESS = _histogram(
    "holdfast_expiry_lateness_seconds",
    "Time between the deadline and the end of an expired lease or session.",
    DELAYS,
    family=FAMILIES,
)
LOCK_ACQUIRES = _counter("holdfast_lock_acquires", "Locks and leaderships granted or kept.")
LOCK_RELEASES = _counter("holdfast_lock_releases", "Locks released and leaderships resigned.")

# -- tasks -------------------------------------------------------------------------------------------------------

CREATED = _counter("holdfast_tasks_created", "Tasks created.")
COMPLETED = _counter("holdfast_tasks_completed", "Tasks completed.")
FAILED = _counter("holdfast_tasks_failed", "Attempts that their workers reported as failed.")
CANCELLED = _counter("holdfast_tasks_cancelled", "Tasks cancelled.")
REQUEUED = _counter("holdfast_tasks_requeued", "Dead letters put back into their queues.")
DEAD_LETTERS = _counter(
    "holdfast_dead_letters",
    "Tasks that became dead letters, by cause.",
    cause=("attempts_exhausted", "permanent", "lease_expired", "deadline", "unanswered"),
)

# -- the engine --------------------------------------------------------------------------------------------------

BATCHES = _counter("holdfast_batches", "Transactions that carried commands.")
COMMANDS = _counter("holdfast_commands", "Commands in those transactions.")
BATCH_SIZE = _histogram("holdfast_batch_commands", "Commands in one transaction.", SIZES)
PHASE_SECONDS = _histogram(
    "holdfast_batch_phase_seconds", "Time a transaction spent loading, deciding, saving, committing.", SHORT_TIMES,
    phase=PHASES,
)  # fmt: skip
LANE_BUSY = _counter(
    "holdfast_lane_busy_seconds",
    "Time that lanes spent on batches; its rate divided by the number of lanes is their utilisation.",
)
LANES = _gauge("holdfast_lanes", "Lanes that run batches.")
BACKLOG = _gauge("holdfast_backlog_commands", "Commands that wait for a lane.")
WAITERS = _gauge(
    "holdfast_waiters", "Calls that wait on this server for a name, a task, a reservation or a change.", for_=WAITS
)
LOOP_SUCCESS = _gauge(
    "holdfast_loop_last_success_timestamp_seconds",
    "When each background loop last finished a pass; of several processes, the oldest.",
    merge=LEAST,
    loop=LOOPS,
)
DAMAGED_ROWS = _counter(
    "holdfast_damaged_rows", "Stored rows that cannot be used, each counted once by each process that met it."
)
ALERTS_TOTAL = _counter("rare", "Events that should be rare.", exported=False, kind=ALERT_KINDS)
ALERTS_RECENT = _gauge("rare_recent", "The same in the last hour.", exported=False, kind=ALERT_KINDS)

# -- the process -------------------------------------------------------------------------------------------------

WORKERS = _gauge("holdfast_workers", "Processes that answer on this socket.")
MEMORY = _gauge("holdfast_memory_bytes", "Memory of these processes that is in RAM.")
