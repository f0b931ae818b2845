"""How far a long verb has come: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
import time

WIDTH = 30
EVERY_SECONDS = 0.1


class Progress:
    """Hears how far it has come, and shows it now and then."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._next = 0.0
        self._drawn = False

    def __call__(self, what: str, done: int, total: int) -> None:
        """`total` is 0 where nobody knows it."""
        now = time.monotonic()
        if not self._shown or (now < self._next and done != total):
            return
        self._next, self._drawn = now + EVERY_SECONDS, True
        filled = WIDTH * done // total if total else 0
        bar = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {100 * done // total:3} %" if total else f"{done:,}"
        print(f"\r\x1b[K{what} {bar}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the bar away."""
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
