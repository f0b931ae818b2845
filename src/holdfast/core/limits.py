"""Limits that core's rules enforce. Imports nothing, so that the CLI can read them at start-up."""

NAME_LIMIT = 256
"""Characters of a job id or lock name."""
COUNTED_READY = 1_000
"""Up to how many ready tasks of one type and set of required words are counted for display."""
MAX_QUESTIONS = 100
"""Questions that the workers of one task may ask."""
LOCK_PART_LIMIT = 64
"""Characters of a lock name between two slashes."""
MAX_ACL_ENTRIES = 100
MAX_DEADLINE_AHEAD = 365 * 24 * 3600
"""Seconds until the latest deadline that a new task can have."""
ON_DEPENDENCY_FAILURE = ("hold", "cancel", "run")
"""What a task can do when one that it depends on fails (`core/task/dependencies.py`)."""
MAX_DELAY = 30 * 24 * 3600
"""Seconds: nothing is scheduled or delayed for longer than 30 days."""
MAX_CLAIMED_LEASE = 900
"""Seconds to which a claim may lengthen the lease of a task."""
MIN_SESSION_TTL, MAX_SESSION_TTL, DEFAULT_SESSION_TTL = 10, 300, 60
"""Seconds of an OctoStore session; values outside are moved to the nearest bound."""
MAX_WEBHOOK_URL = 2048
MAX_RESERVED_PATHS = 20
"""Patterns of one reservation."""
MAX_PATH_LENGTH = 512
"""Characters of a path, or of a pattern."""
