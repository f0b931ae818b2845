"""Requests per minute of each client, counted in this process in fixed windows and bounded memory."""

from __future__ import annotations

import time

from holdfast.core.errors import RateLimited

WINDOW_SECONDS = 60.0
TRACKED_CLIENTS = 10_000
OVERFLOW = "overflow"


class FixedWindowLimit:
    """Counts by client. Beyond `TRACKED_CLIENTS`, new clients share one count."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._windows: dict[str, tuple[float, int]] = {}

    def give_back(self, client: str) -> None:
        """Stop counting one request of the client."""
        if client in self._windows:
            started, count = self._windows[client]
            self._windows[client] = (started, max(count - 1, 0))

    def count(self, client: str) -> None:
        """Count one request, or refuse it until the window is over."""
        moment = time.monotonic()
        if client not in self._windows and len(self._windows) >= TRACKED_CLIENTS:
            live = {name: window for name, window in self._windows.items() if moment - window[0] < WINDOW_SECONDS}
            self._windows = live
            client = client if len(live) < TRACKED_CLIENTS else OVERFLOW
        started, count = self._windows.get(client, (moment, 0))
        if moment - started >= WINDOW_SECONDS:
            started, count = moment, 0
        if count >= self._limit:
            wait = max(int(started + WINDOW_SECONDS - moment), 1)
            raise RateLimited(f"too many requests; try again in {wait} seconds", retry_after=wait)
        self._windows[client] = (started, count + 1)
