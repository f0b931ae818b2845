"""The bytes of a stream as frames, whatever pieces the network made of them."""

from __future__ import annotations

import msgspec

from holdfast.client.errors import HoldfastError

LARGEST = 16 * 2**20
_GOOD = 200


class Frame(msgspec.Struct):
    """One block of lines. A comment alone makes a frame with nothing in it: somebody is still there."""

    data: str | None = None
    event: str = "message"
    id: str | None = None
    retry: int | None = None
    """Milliseconds to wait before coming back."""


class Frames:
    """Takes pieces, gives frames. Lines end in LF, CRLF or CR."""

    def __init__(self, largest: int = LARGEST) -> None:
        self._largest = largest
        self._rest = b""

    def feed(self, piece: bytes) -> list[Frame]:
        """The frames that are whole now."""
        text = self._rest + piece
        # A CR at the very end may be the first half of a line's end: it waits for the next piece.
        held = b"\r" if text.endswith(b"\r") else b""
        text = text[: len(text) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *whole, rest = text.split(b"\n\n")
        self._rest = rest + held
        if any(len(block) > self._largest for block in (*whole, rest)):
            raise HoldfastError(f"SSE frame exceeded {self._largest} bytes", code="frame_too_large", status=_GOOD)
        return [_frame(block) for block in whole if block]


def _frame(block: bytes) -> Frame:
    frame = Frame()
    lines: list[str] = []
    for line in block.decode(errors="replace").split("\n"):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            lines.append(value)
        elif name == "event":
            frame.event = value
        elif name == "id" and "\0" not in value:
            frame.id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            frame.retry = int(value)
    if lines:
        frame.data = "\n".join(lines)
    return frame
