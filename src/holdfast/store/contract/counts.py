"""Numbers that reads return: of one account, of what it holds, and over all accounts."""

from __future__ import annotations

import msgspec

from holdfast.core.row import Instant


class Counts(msgspec.Struct, frozen=True):
    """Numbers of one account, for `/status`."""

    live_leases: int
    users: int


class HeldCounts(msgspec.Struct, frozen=True):
    """How much an account holds now, by kind."""

    leases: int
    """Jobs and locks, without elections."""
    reservations: int
    tasks: int

    @property
    def total(self) -> int:
        """Everything that is held."""
        return self.leases + self.reservations + self.tasks


class Totals(msgspec.Struct, frozen=True):
    """Numbers over all accounts, for the metrics; none of them names an account."""

    live_leases: int
    tasks: dict[str, int]
    """By state."""
    oldest_ready: Instant = 0
    """How long the task that waits longest has been claimable."""
