"""Request budgets: a number of requests per window, shared by all servers.

A server borrows a slice at a time and spends it locally, so that counting a request needs no access to the store.
Requests that it borrowed and did not spend are not available to other servers until the window ends, so slices are
small.
"""

from __future__ import annotations

import msgspec

from holdfast.core.row import Instant

SLICES = 20
"""A budget is lent in this many slices: a server can hold back at most a twentieth of it from the others."""


class Terms(msgspec.Struct, frozen=True):
    """The size of a budget: how many requests per window."""

    limit: int
    window: Instant


class Budget(msgspec.Struct, frozen=True):
    """The state of a budget after a slice was lent."""

    granted: int
    used: int
    """How much has been lent in this window."""
    started_at: Instant
    ends_in: Instant
    """How long until the window ends."""


def lend(started_at: Instant, used: int, terms: Terms, now: Instant) -> Budget:
    """Lend a slice, or the rest of the budget. The first request after the end of a window starts a new window."""
    # A clock that was set back by more than a window must not leave a budget used up until it has caught up.
    if not started_at - terms.window <= now < started_at + terms.window:
        started_at, used = now, 0
    granted = max(min(terms.limit // SLICES or 1, terms.limit - used), 0)
    return Budget(granted, used + granted, started_at, max(started_at + terms.window - now, 0))
