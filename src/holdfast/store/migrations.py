"""Numbered SQL files, applied in order, each in the transaction that also moves the schema's number."""

from __future__ import annotations

from importlib import resources

from holdfast.store.contract import NewerSchema, NoStore

BACKUP, COPY = "backup", "unfinished_copy"
"""Tables that no store has: the header of a backup, and how far a copy has come."""


def pending(package: str, applied: int) -> list[tuple[int, str]]:
    """(number, SQL) of every migration after `applied`; refuses a schema newer than the newest file."""
    folder = resources.files(package) / "migrations"
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    numbered = [(int(name.split("_", 1)[0]), name) for name in files]
    newest = numbered[-1][0]
    if applied > newest:
        raise NewerSchema(f"the database has schema {applied}, this Holdfast knows {newest}: use a newer Holdfast")
    return [(number, (folder / name).read_text()) for number, name in numbered if number > applied]


def refuse(found: set[str]) -> None:
    """Refuse what has a table that no store has."""
    if BACKUP in found:
        raise NoStore("this is a backup, not a store: put it back with `holdfast restore`")
    if COPY in found:
        raise NoStore("a copy into this store is not complete: run `holdfast migrate` again, which goes on with it")
