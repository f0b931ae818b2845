"""Copies everything from one side to another, and compares them."""

from __future__ import annotations

import hashlib

import msgspec

from holdfast.backup.endpoint import CopyRefused, Endpoint, Table, Tell, pages

_encode = msgspec.msgpack.Encoder().encode


def shared_tables(file: Endpoint, database: Endpoint) -> list[Table]:
    """The tables of a file, which has ours alone. Each must be the same on the other side: nothing is left out."""
    strange = sorted(name for name, table in file.tables.items() if database.tables.get(name) != table or not table.key)
    if strange:
        raise CopyRefused(f"these tables are not the same on both sides: {', '.join(strange)}")
    return sorted(file.tables.values(), key=lambda table: table.name)


def copy(source: Endpoint, target: Endpoint, tables: list[Table], tell: Tell) -> None:
    """Everything that is on one side, to the other, where nothing is yet."""
    total, done = sum(source.count(table) for table in tables), 0
    for table in tables:
        for page in pages(source, table):
            target.put(table, page)
            done += len(page)
            tell("copied", done, total)
    target.put_state(source.state())


def compare(source: Endpoint, target: Endpoint, tables: list[Table], tell: Tell) -> dict[str, int]:
    """How many records each table has; CopyRefused names those that differ."""
    counts, differing = {}, []
    for place, table in enumerate(tables, 1):
        here, there = digest(source, table), digest(target, table)
        counts[table.name] = here[0]
        if here != there:
            differing.append(f"{table.name} ({here[0]} records here, {there[0]} there)")
        tell("compared", place, len(tables))
    if differing:
        raise CopyRefused(f"the copy differs from what it was made of: {', '.join(differing)}")
    return counts


def digest(side: Endpoint, table: Table) -> tuple[int, str]:
    """(how many records, their hash in the order of their keys)."""
    count, hashed = 0, hashlib.sha256()
    for page in pages(side, table):
        count += len(page)
        for record in page:
            hashed.update(_encode(record))
    return count, hashed.hexdigest()
