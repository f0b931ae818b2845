"""Parser for server-sent events: turns the chunks of a stream into frames."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from holdfast.client.errors import HoldfastError

MAX_FRAME_BYTES = 16 * 2**20


class Frame(msgspec.Struct):
    """One block of lines. A comment alone makes an empty frame: it shows that the server is still connected."""

    data: str | None = None
    event: str = "message"
    id: str | None = None
    retry: int | None = None
    """Milliseconds to wait before reconnecting."""


class FrameParser:
    """Incremental parser. Lines end in LF, CRLF or CR."""

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_bytes = max_bytes
        self._rest = b""

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that this chunk completes."""
        text = self._rest + chunk
        # A CR at the very end may be the first half of CRLF: keep it for the next chunk.
        trailing = b"\r" if text.endswith(b"\r") else b""
        text = text[: len(text) - len(trailing)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *complete, rest = text.split(b"\n\n")
        self._rest = rest + trailing
        if any(len(block) > self._max_bytes for block in (*complete, rest)):
            raise HoldfastError(
                f"SSE frame exceeded {self._max_bytes} bytes", code="frame_too_large", status=HTTPStatus.OK
            )
        return [_parse(block) for block in complete if block]


def _parse(block: bytes) -> Frame:
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
