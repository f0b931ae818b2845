"""A screen that is drawn again and again until a key ends it."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
"""Switch to the terminal's second screen without a cursor, and back: what was shown before is not lost."""
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
_QUIT = (b"q", b"Q", b"\x1b")
"""Keys that end it: q and Esc. An arrow key is a longer sequence that begins with Esc."""
_TERMINATED = 128 + signal.SIGTERM


class Screen:
    """The terminal's second screen, and the keys that are typed there, as a context manager."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._has_keys = sys.stdin.isatty()
        self._modes: list[Any] = []
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if self._has_keys:
            self._modes = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        self._handlers = {
            signal.SIGTERM: signal.signal(signal.SIGTERM, _exit),
            signal.SIGWINCH: signal.signal(signal.SIGWINCH, lambda *_: self.wake()),
        }
        print(_ENTER, end="", flush=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        print(_LEAVE, end="", flush=True)
        if self._has_keys:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._modes)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def draw(self, lines: Sequence[str]) -> None:
        """Replace what is shown. Lines are overwritten, not cleared first, so that nothing flickers."""
        text = "".join(f"{line}{_REST_OF_LINE}\r\n" for line in lines).removesuffix("\r\n")
        print(f"{_HOME}{text}{_REST_OF_SCREEN}", end="", flush=True)

    def wake(self) -> None:
        """End the present wait; also from another thread or a signal handler."""
        with suppress(BlockingIOError):  # then enough of them are there
            os.write(self._write, b"w")

    def wait(self, seconds: float, *, only_keys: bool = False) -> bool:
        """Wait until a key is typed, something else wakes the screen, or the time is over; whether a key ended it."""
        sources = [sys.stdin.fileno()] if self._has_keys else []
        sources += [] if only_keys else [self._read]
        ready, _, _ = select.select(sources, [], [], seconds)
        if self._read in ready:
            os.read(self._read, 4096)
        if not self._has_keys or sys.stdin.fileno() not in ready:
            return False
        typed = os.read(sys.stdin.fileno(), 64)
        return not typed or typed in _QUIT


def _exit(_: int, __: FrameType | None) -> None:
    """End as if by the signal, but leave the screen first."""
    raise SystemExit(_TERMINATED)
