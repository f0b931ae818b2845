"""`holdfast verify`: fold the log and compare it with the rows."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from msgspec.structs import asdict

from holdfast.app import make_store
from holdfast.core.errors import HoldfastError
from holdfast.engine.verify import verify
from holdfast.settings import BadSettings, load, sqlite_path
from holdfast.store.contract import UnusableStore
from holdfast.transport.cli.output import document, is_document
from holdfast.transport.cli.verbs.verb import Verb

FINE, DIFFERENT, UNAVAILABLE, CONFIGURATION = 0, 3, 1, 2
EVERY = 10_000


def run(verb: Verb, flags: Mapping[str, str | None]) -> int:  # noqa: ARG001 - every room has this shape
    """The exit status: 0 if everything fits, 3 if something differs."""
    output = flags.get("output") or "text"
    try:
        settings, _ = load({"store": flags.get("store")})
    except BadSettings as error:
        for problem in error.problems:
            print(f"holdfast: {problem}", file=sys.stderr)
        return CONFIGURATION
    if settings.store.startswith("sqlite:///") and not sqlite_path(settings.store).exists():
        print(f"holdfast: there is no file {sqlite_path(settings.store)}", file=sys.stderr)
        return UNAVAILABLE
    store = make_store(settings)
    try:
        store.open()
        report = verify(store, _tell if sys.stderr.isatty() else lambda *_: None)
    except (HoldfastError, UnusableStore) as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return UNAVAILABLE
    finally:
        store.close()
    if is_document(output):
        document(asdict(report), output)
    else:
        for difference in report.differences:
            print(difference)
        found = f"{len(report.differences)} differences" if report.differences else "no difference"
        print(f"{report.rows} rows and {report.events} events of {report.accounts} accounts: {found}")
    return DIFFERENT if report.differences else FINE


def _tell(what: str, how_many: int) -> None:
    if how_many % EVERY == 0:
        print(f"\r{how_many} {what}", end="", file=sys.stderr, flush=True)
