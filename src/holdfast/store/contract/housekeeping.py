"""Housekeeping of a store, outside of batches: heartbeat, retention, budgets, key uses, browser sessions, notices."""

from __future__ import annotations

from typing import Protocol

from holdfast.core.browser_session import BrowserSession
from holdfast.core.budget import Budget, Terms
from holdfast.core.row import Instant

ERASED_AT_ONCE = 1_000
"""Records of an account that are deleted in one transaction: others wait for it."""


class Housekeeping(Protocol):
    """Small writes that are not in the log, and the removal of old data."""

    def beat(self) -> tuple[Instant | None, Instant]:
        """Record that a server uses the store now.

        Returns (when a server last did before, or None as in `last_beat`, the time that is recorded now).
        """

    def last_beat(self) -> tuple[Instant, Instant] | None:
        """(when a server last used the store, now), or None if none did or it stopped on purpose."""

    def close_outage(self, last_beat: Instant) -> None:
        """Record that no outage began with `last_beat`, or that grace was given; nothing if a server has run since."""

    def forget_answers(self, before: Instant, limit: int = 1_000) -> int:
        """Delete at most `limit` remembered answers older than `before`; returns how many were deleted."""

    def forget_events(self, account: str, floor: int) -> None:
        """Delete an account's events up to `floor`. Rows that still exist must have a later snapshot event."""

    def erase(self, account: str, limit: int = ERASED_AT_ONCE) -> bool:
        """Delete up to `limit` records of an account, in one transaction; returns whether there may be more.

        The account must be closed, so that nothing writes to it. Its log counter is deleted last: an account that was
        not erased completely is still one of `log_accounts`.
        """

    def borrow(self, subject: str, limit_class: str, terms: Terms) -> Budget:
        """Borrow a slice of a rate budget that all servers share, by the rule of `core.budget.lend`."""

    def save_key_uses(self, uses: dict[tuple[str, str], Instant]) -> None:
        """Save when keys were last used, by (account, id). An older time never replaces a newer one."""

    def save_browser_session(self, browser_session: BrowserSession) -> None:
        """Insert a browser session or sign-in link.

        A key has a limited number of them: the oldest are deleted (`core.browser_session.excess_sessions`).
        """

    def update_browser_session(self, session_id: str, seen_at: Instant) -> None:
        """Save when a browser session was last seen; nothing if it has ended meanwhile."""

    def take_browser_session(self, session_id: str) -> BrowserSession | None:
        """Delete a browser session and return it; of several callers at once, exactly one gets it."""

    def forget_browser_sessions(self) -> int:
        """Delete expired sessions and links, by the rule of `core.browser_session.is_expired`; returns how many."""

    def await_open_batches(self) -> None:
        """Wait, for a bounded time, until every batch that other processes have begun has ended.

        Afterwards all deadlines that were set by an earlier time of the store's clock can be read.
        """

    def check_minimum_schema(self) -> None:
        """Raise ServerOutdated if the store now needs a newer Holdfast than this one."""

    def check_other_records(self) -> None:
        """Read every record beside the rows and the log, so that damaged ones are known."""

    def check_durable(self) -> None:
        """Raise NotDurable if the database is configured so that a crash can lose what was committed."""

    def size(self) -> int:
        """Bytes on disk; 0 if the store has none."""


class Watcher(Protocol):
    """Reports commits of other processes, and reports ours to them. Notices carry no data and may be lost."""

    def notify(self) -> None:
        """Report to other processes that a name or a task was freed here."""

    def set_waiting(self, *, waiting: bool) -> None:
        """Set whether a caller waits here; a watcher that polls does so only then."""

    def close(self) -> None:
        """Stop watching."""
