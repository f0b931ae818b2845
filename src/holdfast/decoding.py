"""Decodes JSON into msgspec types, safely for threads.

msgspec (0.22) describes a struct type when it is used for the first time. A thread that uses the type before the
description is complete reads a null pointer, which ends the process. So types are described here, one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_lock = threading.Lock()
_decoders: dict[Any, Callable[[bytes | str], Any]] = {}


def decoder(of: type[T]) -> Callable[[bytes | str], T]:
    """The function that decodes JSON into this type."""
    try:
        return _decoders[of]
    except KeyError:
        with _lock:
            return _decoders.setdefault(of, msgspec.json.Decoder(of).decode)


def decode(text: bytes | str, of: type[T]) -> T:
    """Decode JSON into this type; raises msgspec.DecodeError or ValidationError."""
    return decoder(of)(text)


def convert(value: Any, of: type[T]) -> T:
    """Convert JSON values into this type; raises msgspec.ValidationError."""
    decoder(of)
    return msgspec.convert(value, of)
