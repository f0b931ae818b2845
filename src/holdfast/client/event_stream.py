"""Where a stream stands, and when to come back to it. Decides; never waits, and sends nothing."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from holdfast.client import errors
from holdfast.client import request as wire
from holdfast.client.errors import CursorTooOld, Document, HoldfastError, Limited, ServerError, Unreachable
from holdfast.client.request import Answer, Request
from holdfast.client.retry import Broken, Unsent
from holdfast.client.sse import LARGEST, Frame, Frames

SILENCE_SECONDS = 45.0
"""A server says something every 15 seconds; one that was not heard three times is not there."""
FIRST_RETRY, LONGEST_PAUSE = 1.0, 20.0
_RESET = "reset"
_GOOD = 200

TROUBLE = (Unsent, Broken, Unreachable, Limited, ServerError)
"""What may end a connection without ending the stream."""


class Event(msgspec.Struct, frozen=True):
    """One change of one row, as a follower gets it."""

    seq: int
    kind: str
    subject: str
    version: int
    at: datetime
    actor: str
    request_id: str
    data: Document


class Following:
    """One stream over any number of connections.

    The first connection must come about within the deadline; later ones are tried for as long as somebody listens.
    """

    def __init__(self, name: str, arguments: dict[str, Any], *, deadline: float, largest: int = LARGEST) -> None:
        self._request = wire.request(wire.find(name), arguments)
        self._until: float | None = time.monotonic() + deadline
        self._largest = largest
        self._frames = Frames(largest)
        self._cursor: str | None = None
        self._retry = FIRST_RETRY
        self._failures = 0

    def request(self) -> Request:
        """What to send now: the same as the first time, from where we are."""
        headers = self._request.headers | {"accept": "text/event-stream"}
        if self._cursor is not None:
            headers["last-event-id"] = self._cursor
        self._frames = Frames(self._largest)
        return msgspec.structs.replace(self._request, headers=headers)

    def opened(self, answer: Answer) -> None:
        """See whether the answer is a stream; a refusal is raised."""
        if answer.status != _GOOD:
            raise errors.of_answer(answer.status, answer.document(), answer.headers)
        if "text/event-stream" not in answer.headers.get("content-type", ""):
            raise Unreachable("the answer is no stream", code="invalid_response")

    def take(self, piece: bytes) -> Iterator[Frame]:
        """The frames with something in them; the others only move the cursor on. What came before an end is given."""
        for frame in self._frames.feed(piece):
            self._until, self._failures = None, 0
            self._cursor = frame.id if frame.id is not None else self._cursor
            self._retry = self._retry if frame.retry is None else frame.retry / 1000
            if frame.event == _RESET and frame.data is not None:
                document = msgspec.json.decode(frame.data)
                raise CursorTooOld(str(document.get("message")), document=document)
            if frame.data is not None:
                yield frame

    def lost(self, trouble: Exception) -> float:
        """Seconds until the next try, after something in TROUBLE."""
        if isinstance(trouble, Unsent | Broken):
            trouble = Unreachable(f"the stream was lost: {trouble}")
        assert isinstance(trouble, HoldfastError)
        longest: float = min(self._retry * 2**self._failures, LONGEST_PAUSE)
        pause = max(trouble.retry_after or 0.0, longest) * random.uniform(1.0, 1.25)  # noqa: S311 - spreads load
        self._failures += 1
        if self._until is not None and time.monotonic() + pause >= self._until:
            raise trouble
        return pause


def event_of(frame: Frame) -> Event:
    """The event that a frame of the log tells."""
    try:
        told = msgspec.json.decode(frame.data or "")
        return Event(
            seq=int(told["sequence"]),
            kind=told["type"],
            subject=told["subject"],
            version=told["version"],
            at=datetime.fromisoformat(told["time"]),
            actor=told["actor"],
            request_id=told["requestid"],
            data=told["data"],
        )
    except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
        raise Unreachable(f"this is no event: {error}", code="invalid_response") from error


def document_of(frame: Frame) -> Document:
    """The document that a frame of a watch carries."""
    found: Document = msgspec.json.decode(frame.data or "{}")
    return found
