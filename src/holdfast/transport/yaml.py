"""JSON values as YAML that people can read: one line a value, texts quoted as JSON quotes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

_PLAIN_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
"""What YAML would not read as text."""
_PLAIN_TEXT = re.compile(r"\d+\.\d+\.\d+")
"""A version. Whoever looks for it takes the line `version: X.Y.Z` apart without knowing YAML."""


def encode_yaml(document: dict[str, Any]) -> bytes:
    """The document, in block style."""
    return "".join(f"{line}\n" for line in _mapping(document, "")).encode()


def _mapping(values: dict[str, Any], indent: str) -> Iterator[str]:
    for key, value in values.items():
        if _is_scalar(value):
            yield f"{indent}{_key(key)}: {_scalar(value)}"
        else:
            yield f"{indent}{_key(key)}:"
            yield from _block(value, f"{indent}  ")


def _sequence(values: list[Any], indent: str) -> Iterator[str]:
    for value in values:
        first, *rest = [_scalar(value)] if _is_scalar(value) else _block(value, f"{indent}  ")
        yield f"{indent}- {first.lstrip()}"
        yield from rest


def _block(value: Any, indent: str) -> Iterator[str]:
    return _mapping(value, indent) if isinstance(value, dict) else _sequence(value, indent)


def _is_scalar(value: Any) -> bool:
    """What fits on the line of its key: nothing is inside it."""
    return not value or not isinstance(value, dict | list)


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) and key.lower() not in _WORDS else _scalar(key)


def _scalar(value: Any) -> str:
    """A text, a number, a word of JSON, `{}` or `[]`: all of them are YAML as they are."""
    plain = isinstance(value, str) and _PLAIN_TEXT.fullmatch(value)
    return str(value) if plain else msgspec.json.encode(value).decode()
