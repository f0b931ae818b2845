"""Numbered SQL files, applied in order, each in the transaction that also saves its number."""

from __future__ import annotations

from importlib import resources

from holdfast.store.contract import NewerSchema, NotAStore

BACKUP, COPY = "backup", "unfinished_copy"
"""Tables that a store never has: the header of a backup, and the progress of an unfinished copy."""


def pending(package: str, applied: int) -> list[tuple[int, str]]:
    """(number, SQL) of every migration after `applied`; refuses a schema newer than the newest file."""
    folder = resources.files(package) / "migrations"
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    numbered = [(int(name.split("_", 1)[0]), name) for name in files]
    newest = numbered[-1][0]
    if applied > newest:
        raise NewerSchema(f"the database has schema {applied}, this Holdfast knows {newest}: use a newer Holdfast")
    return [(number, (folder / name).read_text()) for number, name in numbered if number > applied]


def check_is_store(tables: set[str]) -> None:
    """Refuse a backup or an unfinished copy."""
    if BACKUP in tables:
        raise NotAStore("this is a backup, not a store: restore it with `holdfast restore`")
    if COPY in tables:
        raise NotAStore("a copy into this store is not complete: run `holdfast migrate` again to continue it")
