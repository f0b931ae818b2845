"""Rows that the sweep could not end: they are left alone for a while, and reported once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from holdfast.core.errors import DamagedRow, HoldfastError, ValueRefused
from holdfast.core.row import Key
from holdfast.engine.ticket import Ticket

SET_ASIDE_SECONDS = 60.0
"""How long a damaged row is left alone: it is not tried all the time, and ended soon after it was corrected."""

log = logging.getLogger("holdfast.sweep")


class FailedRows:
    """The sink of the sweep. It logs failures, and sets aside rows that failed by themselves, not with the store."""

    def __init__(self, on_failure: Callable[[], None]) -> None:
        self._on_failure = on_failure
        self._new: list[Key] = []
        self.set_aside: dict[Key, float] = {}
        """Rows, and until when they are left alone."""

    def update(self) -> None:
        """Set aside the rows that failed since the last call, and forget those whose time is over."""
        now = time.monotonic()
        failed, self._new = self._new, []
        self.set_aside = {key: until for key, until in self.set_aside.items() if until > now}
        self.set_aside |= dict.fromkeys(failed, now + SET_ASIDE_SECONDS)

    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        """Set the result of each command: what it returned, or None if it failed."""
        for ticket, outcome in replies:
            failed = isinstance(outcome, BaseException)
            if failed:
                self._report(ticket, outcome)
            ticket.slot.set_result(None if failed else outcome)

    def _report(self, ticket: Ticket, error: BaseException) -> None:
        if not isinstance(error, DamagedRow):  # the store has logged it
            log.warning("%s failed: %s", type(ticket.command).__name__, error)
        self._on_failure()
        if isinstance(error, DamagedRow | ValueRefused) or not isinstance(error, HoldfastError):
            self._new.append(ticket.command.needs().rows[0])
