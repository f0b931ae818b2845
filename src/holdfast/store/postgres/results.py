"""Converts results of statements, which arrive as text, into Python values."""

from __future__ import annotations

from holdfast.store.postgres.pipeline import ResultRows


def document_of(result: ResultRows) -> bytes:
    return result[0][0] or b"[]"


def take(results: list[ResultRows], count: int) -> list[ResultRows]:
    """Remove and return the first results."""
    first, results[:count] = results[:count], []
    return first


def text(value: bytes | None) -> str:
    return (value or b"").decode()


def number(result: ResultRows) -> int:
    return int(result[0][0] or b"0")
