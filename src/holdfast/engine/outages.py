"""Record of the store's outages and of pauses of this process, shared by the lanes and the sweep."""

from __future__ import annotations

import time

OUTAGE_SECONDS = 5.0
"""A store that no server has served for longer than this had an outage: holders could not renew."""


class Outages:
    """How often the store failed a lane, and when the sweep last ran."""

    def __init__(self) -> None:
        self.count = 0
        self.last_sweep = time.monotonic()
        """When the sweep, which runs at least once a second, last ran."""
        self.writable = True
        """Whether the last batch that tried to write succeeded."""

    def is_paused(self) -> bool:
        """Whether this process was stopped or suspended, so that it served no renewals meanwhile."""
        return time.monotonic() - self.last_sweep > OUTAGE_SECONDS
