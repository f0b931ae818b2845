"""Typed payloads: the payload of a task as a dataclass, a msgspec Struct or a pydantic model.

pydantic is not a dependency: it is imported only for types that it made.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

import msgspec

from holdfast.client.errors import Document
from holdfast.client.worker.errors import PayloadMismatch
from holdfast.decoding import decoder

PayloadReader = Callable[[Document], Any]
"""Makes an object of the handler's type of a payload; raises PayloadMismatch."""


def payload_reader(of: Any) -> PayloadReader:
    """The reader for a type; without one the payload stays a dict. TypeError for a type that cannot be read from JSON.

    The type is checked here, when the handler is defined: a mistake in it is not the fault of any task.
    """
    if of is None:
        return lambda payload: payload
    if hasattr(of, "__pydantic_validator__"):
        return _pydantic_reader(of)
    if isinstance(of, type) and (is_dataclass(of) or issubclass(of, msgspec.Struct)):
        return _msgspec_reader(of)
    raise TypeError(f"payload must be a dataclass, a msgspec Struct or a model of pydantic 2, not {of!r}")


def _msgspec_reader(of: type[Any]) -> PayloadReader:
    msgspec.json.schema(of)  # raises TypeError for a field that has no form in JSON
    decode = decoder(of)

    def read(payload: Document) -> Any:
        try:
            return decode(json.dumps(payload))
        except msgspec.ValidationError as error:
            raise PayloadMismatch(f"the payload does not match {of.__name__}: {error}") from None

    return read


def _pydantic_reader(of: type[Any]) -> PayloadReader:
    from pydantic import TypeAdapter, ValidationError

    adapter = TypeAdapter(of)

    def read(payload: Document) -> Any:
        try:
            # From JSON text: in a strict model a string may then be a date, as JSON has no other form for one.
            return adapter.validate_json(json.dumps(payload))
        except ValidationError as error:
            found = (f"{each['msg']} - at `{'.'.join(('$', *map(str, each['loc'])))}`" for each in error.errors())
            raise PayloadMismatch(f"the payload does not match {of.__name__}: {'; '.join(found)}") from None

    return read
