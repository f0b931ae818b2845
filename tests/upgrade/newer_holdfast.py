"""A newer Holdfast: today's with further migrations.

    python -m tests.upgrade.newer_holdfast adding,raising serve …

runs its command line. The first word names its further migrations: one that only adds, one that raises the minimum
schema.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.app import make_store
from holdfast.settings import Settings
from holdfast.store.sql import migrations

NEWER_SCHEMA = migrations.newest_schema("holdfast.store.sqlite") + 1
ADDING = "ALTER TABLE sessions ADD COLUMN added TEXT;\n"
RAISING = f"{migrations.RAISES_MINIMUM}ALTER TABLE sessions ADD COLUMN required TEXT;\n"
SCRIPTS = {"adding": ADDING, "raising": RAISING}


@contextmanager
def newer_holdfast(*scripts: str) -> Iterator[None]:
    """This process has these further migrations; its PostgreSQL stores must not write meanwhile."""
    files_of_today = migrations._files
    with tempfile.TemporaryDirectory() as folder:
        added = [
            (number, Path(folder, f"{number:04}_newer.sql"))
            for number in range(NEWER_SCHEMA, NEWER_SCHEMA + len(scripts))
        ]
        for (_, path), script in zip(added, scripts, strict=True):
            path.write_text(script)
        migrations._files = lambda package: [*files_of_today(package), *added]
        migrations.newest_schema.cache_clear()
        try:
            yield
        finally:
            migrations._files = files_of_today
            migrations.newest_schema.cache_clear()


def upgrade(address: str, *scripts: str) -> None:
    """Let a newer Holdfast open the store once."""
    with newer_holdfast(*scripts):
        store = make_store(Settings(store=address))
        store.open()
        store.close()


if __name__ == "__main__":
    with newer_holdfast(*(SCRIPTS[name] for name in sys.argv.pop(1).split(","))):
        from holdfast.__main__ import main  # now: the PostgreSQL store notes the newest schema when it is imported

        main()
