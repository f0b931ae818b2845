"""Numbered SQL files, applied in order, each in the transaction that also saves its number.

A migration adds, so that servers that do not know it can go on: they open a store with a newer schema as long as its
minimum schema is one that they know. A migration after which an older server would do harm begins with the line
RAISES_MINIMUM. It then sets the minimum schema to its own number and makes every write of an older server fail, also
of one that is running (`raise_minimum.sql` of each database).
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from holdfast.core.errors import ServerOutdated
from holdfast.store.contract import NewerSchema, NotAStore

BACKUP, COPY = "backup", "unfinished_copy"
"""Tables that a store never has: the header of a backup, and the progress of an unfinished copy."""
RAISES_MINIMUM = "-- Raises the minimum schema.\n"


def pending(package: str, applied: int, minimum: int | None = None) -> list[tuple[int, str]]:
    """(number, SQL) of every migration after `applied`.

    Refuses a schema newer than the newest file, unless `minimum`, the store's minimum schema, allows it.
    """
    newest = newest_schema(package)
    if applied > newest and (minimum is None or minimum > newest):
        needed = "" if minimum is None else f" and needs at least {minimum}"
        raise NewerSchema(
            f"the database has schema {applied}{needed}, this Holdfast knows {newest}: use a newer Holdfast"
        )
    return [(number, _script(package, number, file)) for number, file in _files(package) if number > applied]


@cache
def newest_schema(package: str) -> int:
    """The number of the newest migration."""
    return _files(package)[-1][0]


def check_minimum(package: str, minimum: int) -> None:
    """Raise ServerOutdated if a store with this minimum schema must not be used by this Holdfast."""
    newest = newest_schema(package)
    if minimum > newest:
        raise ServerOutdated(
            f"the store needs a Holdfast that knows schema {minimum}, and this server knows {newest}: upgrade it"
        )


def check_is_store(tables: set[str]) -> None:
    """Refuse a backup or an unfinished copy."""
    if BACKUP in tables:
        raise NotAStore("this is a backup, not a store: restore it with `holdfast restore`")
    if COPY in tables:
        raise NotAStore("a copy into this store is not complete: run `holdfast migrate` again to continue it")


def _files(package: str) -> list[tuple[int, Traversable]]:
    """(number, file) of every migration, in order."""
    folder = resources.files(package) / "migrations"
    return sorted(
        ((int(entry.name.split("_", 1)[0]), entry) for entry in folder.iterdir() if entry.name.endswith(".sql")),
        key=lambda numbered: numbered[0],
    )


def _script(package: str, number: int, file: Traversable) -> str:
    script = file.read_text()
    if not script.startswith(RAISES_MINIMUM):
        return script
    return script + (resources.files(package) / "raise_minimum.sql").read_text().replace("{number}", str(number))
