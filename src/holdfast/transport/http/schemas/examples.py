"""An example request and answer of each operation, recorded from real calls.

`tests/openapi/examples` makes the calls; a test makes them again and compares. CONTRIBUTING.md says how to record them.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any

import msgspec

from holdfast.decoding import decode


class Example(msgspec.Struct, frozen=True):
    """One call that succeeded. Ids and secrets in it are made up."""

    status: int
    answer: Any
    """A JSON value, or text; None for an answer without a body, and for OctoStore's `null`."""
    path: dict[str, str] = {}
    query: dict[str, str | int] = {}
    headers: dict[str, str] = {}
    """Without the caller's key."""
    body: Any = msgspec.UNSET


@functools.cache
def examples() -> dict[str, Example]:
    """The example of every operation, by its name."""
    file = resources.files(__package__) / "examples.json"
    return decode(file.read_bytes(), dict[str, Example])
