"""`doctor --set-clock`: sets the clock of a store back to the wall clock."""

from __future__ import annotations

from holdfast.app import make_store
from holdfast.core.errors import HoldfastError
from holdfast.core.row import SECOND
from holdfast.engine.clock_repair import set_clock_right
from holdfast.settings import BadSettings, load, sqlite_path
from holdfast.store.contract import UnusableStore
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.output import print_message


def set_store_clock(store_url: str | None) -> int:
    """Set the clock right and print what changed."""
    try:
        settings, _ = load({"store": store_url})
    except BadSettings as error:
        for problem in error.problems:
            print_message(f"holdfast: {problem}")
        return exit_status.USAGE
    if settings.store.startswith("sqlite:///") and not sqlite_path(settings.store).exists():
        print_message(f"holdfast: there is no file {sqlite_path(settings.store)}")
        return exit_status.UNREACHABLE
    store = make_store(settings)
    try:
        store.open()
        ahead, moved = set_clock_right(store)
    except (HoldfastError, UnusableStore) as error:
        print_message(f"holdfast: {error}")
        return exit_status.UNREACHABLE
    finally:
        store.close()
    if ahead:
        print(f"the store's clock was {ahead // SECOND} s ahead and is right now; {moved} rows moved with it")
    else:
        print("the store's clock is right; nothing was changed")
    return exit_status.OK
