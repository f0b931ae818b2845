"""Random ids from a buffered urandom pool.

`os.urandom` releases the interpreter's lock, and while the engine's threads are busy it takes long to get it back:
50 µs a call, with three calls a request, were measured. One call fills the pool for 256 ids.
"""

from __future__ import annotations

import os
import threading
import time

ID_BYTES = 16
POOL_BYTES = 256 * ID_BYTES

_VARIANTS = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
"""The digit of a UUID that holds its variant, for each random digit."""
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [first + second for first in _CROCKFORD for second in _CROCKFORD]
_LAST_COUNT = 2**30 - 2


class Ids(threading.local):
    """Source of ids; no bytes of the pool are used twice. Each thread has a pool of its own, and so has a child."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start with an empty pool."""
        self._pool = b""
        self._offset = POOL_BYTES
        self._moment = 0
        self._prefix = ""
        self._count = 0

    def draw(self) -> bytes:
        """Sixteen random bytes."""
        offset = self._offset
        if offset >= POOL_BYTES:
            self._pool, offset = os.urandom(POOL_BYTES), 0
        self._offset = offset + ID_BYTES
        return self._pool[offset : offset + ID_BYTES]

    def request_id(self) -> str:
        """req_ and 32 hexadecimal digits."""
        return "req_" + self.draw().hex()

    def uuid(self) -> str:
        """A random UUID in its usual spelling."""
        digits = self.draw().hex()
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANTS[digits[16]]}{digits[17:20]}-{digits[20:]}"

    def ulid(self) -> str:
        """Ten characters of time and sixteen random ones; within one process each id is larger than the one before.

        Within a millisecond only the last six characters count up, which makes most ids cheap.
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
    """A number in ULID's base 32."""
    return "".join(_PAIRS[number >> shift & 1023] for shift in range((width - 2) * 5, -1, -10))


ids = Ids()

if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    # A child would draw the same ids as its parent and its siblings. It has one thread, whose pool is emptied here.
    os.register_at_fork(after_in_child=ids.reset)
