"""Random ids, drawn from the system in large gulps.

Asking the system releases Python's lock, and with the engine's threads busy it takes a while to get it
back: 50 µs a call, three calls a request, were measured. One gulp serves 256 ids.
"""

from __future__ import annotations

import os

ID_BYTES = 16
GULP = 256 * ID_BYTES

_VARIANTS = "89ab"


class Chance:
    """Sixteen random bytes at a time, none of them ever given twice."""

    def __init__(self) -> None:
        self._pool = b""
        self._place = GULP

    def draw(self) -> bytes:
        """The next sixteen bytes."""
        if self._place >= GULP:
            self._pool, self._place = os.urandom(GULP), 0
        self._place += ID_BYTES
        return self._pool[self._place - ID_BYTES : self._place]

    def request_id(self) -> str:
        """req_ and 32 hexadecimal digits."""
        return "req_" + self.draw().hex()

    def uuid(self) -> str:
        """A random UUID in its usual spelling."""
        digits = self.draw().hex()
        variant = _VARIANTS[int(digits[16], 16) & 3]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


chance = Chance()
"""For the event loop's thread only."""
