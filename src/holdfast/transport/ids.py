"""Random ids, drawn from the system in large gulps.

Asking the system releases Python's lock, and with the engine's threads busy it takes a while to get it
back: 50 µs a call, three calls a request, were measured. One gulp serves 256 ids.
"""

from __future__ import annotations

import os
import time

ID_BYTES = 16
GULP = 256 * ID_BYTES

_VARIANTS = "89ab"
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [first + second for first in _CROCKFORD for second in _CROCKFORD]
_LAST_COUNT = 2**30 - 2


class Ids:
    """Sixteen random bytes at a time, none of them ever given twice."""

    def __init__(self) -> None:
        self._pool = b""
        self._place = GULP
        self._moment = 0
        self._prefix = ""
        self._count = 0

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

    def ulid(self) -> str:
        """Ten characters of time, sixteen of chance; in one process each is larger than the one before.

        Within a millisecond only the last six characters count up, so that most ids cost next to nothing.
        """
        moment = max(time.time_ns() // 1_000_000, self._moment)
        if moment > self._moment or self._count > _LAST_COUNT:
            self._moment = moment + (self._count > _LAST_COUNT and moment == self._moment)
            drawn = int.from_bytes(self.draw()[:10], "big")
            self._prefix = _crockford(self._moment, 10) + _crockford(drawn >> 30, 10)
            self._count = drawn & (_LAST_COUNT >> 1)
        self._count += 1
        count = self._count
        return f"{self._prefix}{_PAIRS[count >> 20]}{_PAIRS[count >> 10 & 1023]}{_PAIRS[count & 1023]}"


def _crockford(number: int, width: int) -> str:
    """A number in ULID's alphabet."""
    return "".join(_PAIRS[number >> shift & 1023] for shift in range((width - 2) * 5, -1, -10))


ids = Ids()
"""For the event loop's thread only."""
