"""How things stand: who owns what, and how much work waits. What `prime` and `top` show."""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.client.client import Client

MOST = 50


class Standing(NamedTuple):
    """One look at an account."""

    jobs: list[dict[str, Any]]
    """Jobs that somebody owns, the first few."""
    more_jobs: bool
    queues: list[dict[str, Any]]
    """Queues with work that is not finished."""


def look(client: Client) -> Standing:
    """Ask twice."""
    jobs = client.call("list_claimed_jobs", limit=MOST)
    counted = client.call("count_tasks")["types"]
    queues = [
        {"type": name, "pending": states["pending"], "claimed": states["claimed"], "dead": states["dead_letter"]}
        for name, states in sorted(counted.items())
    ]
    open_queues = [queue for queue in queues if queue["pending"] or queue["claimed"] or queue["dead"]]
    return Standing(jobs["jobs"], bool(jobs["hasMore"]), open_queues)
