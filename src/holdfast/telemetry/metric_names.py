"""Every number that Holdfast tells of itself. A new one is a line here and a line in docs/guides/operations.md.

Units are seconds and bytes; nothing that a caller chose is ever a label.
"""

from __future__ import annotations

from holdfast.telemetry.kinds import LEAST, MOST, Catalogue

FAMILIES = ("job", "lock", "election", "task", "session")
CLAIMED = FAMILIES[:4]
"""What can be claimed; a session is opened."""

TIMES = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 1.0, 10.0)
"""Upper ends of the buckets of requests, in seconds: those that OctoStore's percentiles are told by."""
SHORT_TIMES = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1.0)
"""For what happens inside a batch."""
DELAYS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)

KINDS = ("acquire", "auth", "election", "list", "release", "renew", "status",
         "job", "task", "session", "event", "account", "webhook", "mcp", "other")  # fmt: skip
STATUSES = tuple(f"{digit}xx" for digit in range(10))
PHASES = ("load", "decide", "save", "commit")
WAITS = ("name", "work", "change")
LOOPS = ("sweep", "retention", "beat", "uses", "webhooks")
REASONS = (
    "rate_limited", "lock_limit_exceeded", "capacity_exceeded", "too_many_waiters", "max_workers_reached",
    "store_unavailable", "overloaded", "draining", "idempotency_in_flight", "storage_full", "value_refused",
    "payment_unavailable", "outcome_unknown", "other",
)  # fmt: skip
RARE = ("conflicts", "lapses", "dead_letters", "recovery_failures")

HOLDFAST_API = Catalogue()
_counter, _gauge, _histogram = HOLDFAST_API.counter, HOLDFAST_API.gauge, HOLDFAST_API.histogram

# -- requests ----------------------------------------------------------------------------------------------------

REQUESTS = _counter("holdfast_requests", "Requests answered.", class_=KINDS, status=STATUSES)
REQUEST_SECONDS = _histogram(
    "holdfast_request_duration_seconds", "From a request's head to its answer's.", TIMES, class_=KINDS
)
SHORTEST = _counter("shortest", "The quickest answer.", merge=LEAST, shown=False, class_=KINDS)
LONGEST = _counter("longest", "The slowest answer.", merge=MOST, shown=False, class_=KINDS)
REFUSED = _counter(
    "holdfast_refused", "Requests turned away with 429, 503 or 507, by the code of the refusal.", reason=REASONS
)
STREAMS = _gauge("holdfast_streams", "Readers of event streams that are connected now.")
DELIVERIES = _counter(
    "holdfast_webhook_deliveries", "Attempts to deliver an event to a webhook.", outcome=("delivered", "failed", "dead")
)

# -- ownership ---------------------------------------------------------------------------------------------------

CLAIMS = _counter(
    "holdfast_claims",
    "Claims answered: granted, held by another, nothing there, or refused.",
    family=CLAIMED,
    outcome=("granted", "held", "empty", "refused"),
)
CONTENDED = _counter("holdfast_contended_claims", "Claims that met another holder, whether they waited or not.",
                     family=CLAIMED)  # fmt: skip
RENEWALS = _counter("holdfast_renewals", "Holders that said they are still there.", family=FAMILIES)
RELEASES = _counter(
    "holdfast_releases",
    "Leases given back by their holder or with its session, taken away by an administrator, or never delivered.",
    family=CLAIMED,
    how=("released", "forced", "undelivered"),
)
EXPIRIES = _counter("holdfast_expiries", "Holders whose time ran out.", family=FAMILIES)
TAKEOVERS = _counter("holdfast_takeovers", "Claims of something whose last holder's time had run out.", family=CLAIMED)
LATENESS = _histogram(
    "holdfast_expiry_lateness_seconds", "How long after its deadline something was ended.", DELAYS, family=FAMILIES
)
LOCK_ACQUIRES = _counter("holdfast_lock_acquires", "Locks and leaderships granted or kept.")
LOCK_RELEASES = _counter("holdfast_lock_releases", "Locks released and leaderships resigned.")

# -- tasks -------------------------------------------------------------------------------------------------------

CREATED = _counter("holdfast_tasks_created", "Tasks put into their queues.")
COMPLETED = _counter("holdfast_tasks_completed", "Tasks done.")
FAILED = _counter("holdfast_tasks_failed", "Attempts that their workers said went wrong.")
CANCELLED = _counter("holdfast_tasks_cancelled", "Tasks cancelled.")
REQUEUED = _counter("holdfast_tasks_requeued", "Dead letters put back into their queues.")
DEAD_LETTERS = _counter("holdfast_dead_letters", "Tasks given up, by cause.",
                        cause=("attempts_exhausted", "permanent", "lease_expired"))  # fmt: skip

# -- the engine --------------------------------------------------------------------------------------------------

BATCHES = _counter("holdfast_batches", "Transactions that carried commands.")
COMMANDS = _counter("holdfast_commands", "Commands in those transactions.")
BATCH_SIZE = _histogram("holdfast_batch_commands", "Commands in one transaction.", SIZES)
PHASE_SECONDS = _histogram(
    "holdfast_batch_phase_seconds", "Time a transaction spent loading, deciding, saving, committing.", SHORT_TIMES,
    phase=PHASES,
)  # fmt: skip
LANE_BUSY = _counter(
    "holdfast_lane_busy_seconds", "Time that lanes spent on batches: its rate over the lanes is their use."
)
LANES = _gauge("holdfast_lanes", "Lanes that take batches.")
BACKLOG = _gauge("holdfast_backlog_commands", "Commands that wait for a lane.")
WAITERS = _gauge("holdfast_waiters", "Callers that wait here for a name, for work or for a change.", for_=WAITS)
LOOP_SUCCESS = _gauge(
    "holdfast_loop_last_success_timestamp_seconds",
    "When each loop in the background last did its work; of several processes the one that is longest behind.",
    merge=LEAST,
    loop=LOOPS,
)
RARE_TOTAL = _counter("rare", "What should be rare.", shown=False, kind=RARE)
RARE_RECENT = _gauge("rare_recent", "The same in the last hour.", shown=False, kind=RARE)

# -- the process -------------------------------------------------------------------------------------------------

WORKERS = _gauge("holdfast_workers", "Processes that answer on this socket.")
MEMORY = _gauge("holdfast_memory_bytes", "Memory of these processes that is in RAM.")
