"""Budgets of requests: so many in a window, shared by all servers.

A server borrows a slice at a time and spends it by itself, so that counting costs nothing on the way of a request.
What it borrowed and did not spend is lost to the others until the window ends: slices are small.
"""

from __future__ import annotations

import msgspec

from holdfast.core.row import Instant

SLICES = 20
"""A budget is lent in so many slices: two servers can keep a tenth of it from each other at most."""


class Terms(msgspec.Struct, frozen=True):
    """So many in so long."""

    limit: int
    window: Instant


class Budget(msgspec.Struct, frozen=True):
    """What the store says of a budget after lending from it."""

    granted: int
    used: int
    """How much has been lent in this window."""
    started_at: Instant
    ends_in: Instant
    """How long until the window is over."""


def lend(started_at: Instant, used: int, terms: Terms, now: Instant) -> Budget:
    """Lend a slice, or what is left; a new window begins with whoever asks first after the old one."""
    if now >= started_at + terms.window:
        started_at, used = now, 0
    granted = max(min(terms.limit // SLICES or 1, terms.limit - used), 0)
    return Budget(granted, used + granted, started_at, max(started_at + terms.window - now, 0))
