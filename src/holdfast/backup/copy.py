"""Copies all tables from one endpoint to another, and compares them."""

from __future__ import annotations

import hashlib

import msgspec

from holdfast.backup.endpoint import CopyRefused, Endpoint, OnProgress, Table, pages

_encode = msgspec.msgpack.Encoder().encode


def shared_tables(file: Endpoint, database: Endpoint) -> list[Table]:
    """The tables of a file. Each must have the same columns and key in the database, so that nothing is left out."""
    different = sorted(
        name for name, table in file.tables.items() if database.tables.get(name) != table or not table.key
    )
    if different:
        raise CopyRefused(f"these tables differ between the two stores: {', '.join(different)}")
    return sorted(file.tables.values(), key=lambda table: table.name)


def copy(source: Endpoint, target: Endpoint, tables: list[Table], report: OnProgress) -> None:
    """Copy everything from one endpoint to another endpoint, which must be empty."""
    total, done = sum(source.count(table) for table in tables), 0
    for table in tables:
        for page in pages(source, table):
            target.put(table, page)
            done += len(page)
            report("copied", done, total)
    target.put_state(source.state())


def compare(source: Endpoint, target: Endpoint, tables: list[Table], report: OnProgress) -> dict[str, int]:
    """Compare all tables; returns how many records each has. CopyRefused names the tables that differ."""
    counts, differing = {}, []
    for position, table in enumerate(tables, 1):
        here, there = digest(source, table), digest(target, table)
        counts[table.name] = here[0]
        if here != there:
            differing.append(f"{table.name} ({here[0]} records in the source, {there[0]} in the copy)")
        report("compared", position, len(tables))
    if differing:
        raise CopyRefused(f"the copy differs from its source: {', '.join(differing)}")
    return counts


def digest(endpoint: Endpoint, table: Table) -> tuple[int, str]:
    """(number of records, their hash in the order of their keys)."""
    count, hashed = 0, hashlib.sha256()
    for page in pages(endpoint, table):
        count += len(page)
        for record in page:
            hashed.update(_encode(record))
    return count, hashed.hexdigest()
