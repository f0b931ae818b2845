"""State of a stream across reconnects. Only decides: nothing here waits or sends."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import datetime
from http import HTTPStatus
from typing import Any

import msgspec

from holdfast.client import errors
from holdfast.client import request as wire
from holdfast.client.errors import CursorTooOld, Document, HoldfastError, Limited, ServerError, Unreachable
from holdfast.client.request import Answer, Request
from holdfast.client.retry import AnswerLost, NotSent, doubled
from holdfast.client.sse import MAX_FRAME_BYTES, Frame, FrameParser

SILENCE_SECONDS = 45.0
"""The server sends something every 15 seconds; after three missed times the connection counts as lost."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 20.0
_RESET = "reset"

RECONNECT_ERRORS = (NotSent, AnswerLost, Unreachable, Limited, ServerError)
"""Errors that end a connection but not the stream."""


class Event(msgspec.Struct, frozen=True):
    """One event of the log, as `follow` yields it."""

    seq: int
    kind: str
    subject: str
    version: int
    at: datetime
    actor: str
    request_id: str
    data: Document


class StreamState:
    """One stream over any number of connections.

    The first connection must succeed within the deadline; later ones are retried for as long as the caller reads.
    """

    def __init__(
        self, name: str, arguments: dict[str, Any], *, deadline: float, max_frame_bytes: int = MAX_FRAME_BYTES
    ) -> None:
        self._request = wire.build_request(wire.find_operation(name), arguments)
        self._first_deadline: float | None = time.monotonic() + deadline
        self._max_frame_bytes = max_frame_bytes
        self._parser = FrameParser(max_frame_bytes)
        self._cursor: str | None = None
        self._retry = FIRST_PAUSE
        self._failures = 0

    def request(self) -> Request:
        """The request for the next connection, which continues after the last frame."""
        headers = self._request.headers | {"accept": "text/event-stream"}
        if self._cursor is not None:
            headers["last-event-id"] = self._cursor
        self._parser = FrameParser(self._max_frame_bytes)
        return msgspec.structs.replace(self._request, headers=headers)

    def check_answer(self, answer: Answer) -> None:
        """Raise the refusal if the answer is not a stream."""
        if answer.status != HTTPStatus.OK:
            raise errors.error_of(answer.status, answer.document(), answer.headers)
        if "text/event-stream" not in answer.headers.get("content-type", ""):
            raise Unreachable("the answer is not an event stream", code="invalid_response")

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """The frames with data that this chunk completes. Frames without data only advance the cursor."""
        for frame in self._parser.feed(chunk):
            self._first_deadline, self._failures = None, 0
            self._cursor = frame.id if frame.id is not None else self._cursor
            self._retry = self._retry if frame.retry is None else frame.retry / 1000
            if frame.event == _RESET and frame.data is not None:
                document = msgspec.json.decode(frame.data)
                raise CursorTooOld(str(document.get("message")), document=document)
            if frame.data is not None:
                yield frame

    def reconnect_pause(self, problem: Exception) -> float:
        """Seconds until the next connection, after one of RECONNECT_ERRORS; raises it if the first never succeeded."""
        if isinstance(problem, NotSent | AnswerLost):
            problem = Unreachable(f"the stream was lost: {problem}")
        assert isinstance(problem, HoldfastError)
        longest = doubled(self._retry, self._failures, LONGEST_PAUSE)
        pause = max(problem.retry_after or 0.0, longest) * random.uniform(1.0, 1.25)
        self._failures += 1
        if self._first_deadline is not None and time.monotonic() + pause >= self._first_deadline:
            raise problem
        return pause


def parse_event(frame: Frame) -> Event:
    """The event in a frame of the log."""
    try:
        fields = msgspec.json.decode(frame.data or "")
        return Event(
            seq=int(fields["sequence"]),
            kind=fields["type"],
            subject=fields["subject"],
            version=fields["version"],
            at=datetime.fromisoformat(fields["time"]),
            actor=fields["actor"],
            request_id=fields["requestid"],
            data=fields["data"],
        )
    except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
        raise Unreachable(f"the frame is not an event: {error}", code="invalid_response") from error


def parse_document(frame: Frame) -> Document:
    """The document in a frame of a watch."""
    document: Document = msgspec.json.decode(frame.data or "{}")
    return document
