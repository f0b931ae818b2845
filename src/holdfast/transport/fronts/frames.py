"""Frames: commands, outcomes and errors as bytes, between a front and the engine.

A frame is a length and a MessagePack list of messages. All messages that an event loop gathered in one turn share a
frame. Both ends run the same version, which the first frame of a front shows.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

import holdfast.engine.verbs.batch
import holdfast.engine.verbs.elections
import holdfast.engine.verbs.job_claims
import holdfast.engine.verbs.job_offers
import holdfast.engine.verbs.locks
import holdfast.engine.verbs.octostore_sessions
import holdfast.engine.verbs.sessions
import holdfast.engine.verbs.tasks.claiming
import holdfast.engine.verbs.tasks.creating
import holdfast.engine.verbs.tasks.offers
import holdfast.engine.verbs.tasks.plans  # noqa: F401 - every command and outcome must exist
from holdfast.core import errors
from holdfast.core.errors import HoldfastError
from holdfast.engine.command import Command, Outcome, Replayed
from holdfast.engine.verbs.batch import Batch, Outcomes

MAX_FRAME = 256 * 1024 * 1024
_LENGTH = struct.Struct("<I")
_ERROR = -1
Message = tuple[int, int, Any]
"""(number of the request, number of the type, content)."""

_encode = msgspec.msgpack.Encoder(enc_hook=str).encode
_decode_list = msgspec.msgpack.Decoder(list[tuple[int, int, msgspec.Raw]]).decode
_decode_items = msgspec.msgpack.Decoder(tuple[msgspec.Raw, list[tuple[int, msgspec.Raw]]]).decode
_decode_error = msgspec.msgpack.Decoder(tuple[str, str, dict[str, Any]]).decode


class BadFrame(Exception):
    """The other end sent something that is not a frame of this version."""


@cache
def _types() -> list[type[msgspec.Struct]]:
    """Every type of a message; its position is its number."""

    def below(kind: type[msgspec.Struct]) -> set[type[msgspec.Struct]]:
        return {kind}.union(*map(below, kind.__subclasses__()))

    found = below(Command) | below(Outcome) | {Replayed}
    return sorted(found, key=lambda kind: (kind.__module__, kind.__qualname__))


@cache
def _numbers() -> dict[type, int]:
    return {kind: number for number, kind in enumerate(_types())}


@cache
def _decoder(number: int) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(_types()[number])


@cache
def version() -> str:
    """A hash of all types and their fields: two ends with the same one understand each other."""
    described = [f"{kind.__module__}.{kind.__qualname__}{kind.__struct_fields__}" for kind in _types()]
    return hashlib.sha256("\n".join(described).encode()).hexdigest()


def message(number: int, value: Any) -> Message:
    """A command, an outcome or an error as a message."""
    if isinstance(value, BaseException) and not isinstance(value, HoldfastError):
        return number, _ERROR, ("", repr(value), {})
    if isinstance(value, HoldfastError):
        facts = {name: fact for name, fact in vars(value).items() if name != "message"}
        return number, _ERROR, (type(value).__name__, value.message, facts)
    kind = _numbers()[type(value)]
    if isinstance(value, Batch):
        return number, kind, (msgspec.structs.replace(value, items=()), [message(0, item)[1:] for item in value.items])
    if isinstance(value, Outcomes):
        return number, kind, (msgspec.structs.replace(value, each=()), [message(0, each)[1:] for each in value.each])
    return number, kind, value


def frame(messages: list[Message]) -> bytes:
    """Messages as bytes."""
    content = _encode(messages)
    return _LENGTH.pack(len(content)) + content


def read(kind: int, content: msgspec.Raw) -> Any:
    """A command, an outcome or an error from its bytes."""
    if kind == _ERROR:
        name, text, facts = _decode_error(content)
        if not name:
            return RuntimeError(text)
        error: HoldfastError = getattr(errors, name).__new__(getattr(errors, name))
        Exception.__init__(error, text)
        vars(error).update(facts, message=text)
        return error
    if issubclass(_types()[kind], Batch | Outcomes):
        head, items = _decode_items(content)
        values = tuple(read(*item) for item in items)
        field = "items" if issubclass(_types()[kind], Batch) else "each"
        return msgspec.structs.replace(_decoder(kind).decode(head), **{field: values})
    return _decoder(kind).decode(content)


class Frames:
    """Cuts a stream of bytes into the messages of complete frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, int, msgspec.Raw]]:
        """The messages that are complete now."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > MAX_FRAME:
                raise BadFrame(f"a frame of {length} bytes")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            content = bytes(memoryview(self._buffer)[_LENGTH.size : end])
            del self._buffer[:end]
            try:
                yield from _decode_list(content)
            except msgspec.DecodeError as error:
                raise BadFrame(str(error)) from error
