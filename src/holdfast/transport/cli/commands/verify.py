"""Verb `verify`: folds the event log and compares the result with the rows."""

from __future__ import annotations

import sys

from msgspec.structs import asdict

from holdfast.app import make_store
from holdfast.core.errors import HoldfastError
from holdfast.engine.verify import verify
from holdfast.settings import BadSettings, load, sqlite_path
from holdfast.store.contract import UnusableStore
from holdfast.transport.cli.output import escape, is_document, print_document, print_message
from holdfast.transport.cli.verbs.verb import Invocation

OK, DIFFERENT, UNAVAILABLE, CONFIGURATION = 0, 3, 1, 2
REPORT_EVERY = 10_000


def run(invocation: Invocation) -> int:
    """Compare and print the differences; the exit status is 3 if there are any."""
    try:
        settings, _ = load({"store": invocation.arguments["store"]})
    except BadSettings as error:
        for problem in error.problems:
            print_message(f"holdfast: {problem}")
        return CONFIGURATION
    if settings.store.startswith("sqlite:///") and not sqlite_path(settings.store).exists():
        print_message(f"holdfast: there is no file {sqlite_path(settings.store)}")
        return UNAVAILABLE
    store = make_store(settings)
    try:
        store.open()
        report = verify(store, _print_progress if sys.stderr.isatty() else lambda *_: None)
    except (HoldfastError, UnusableStore) as error:
        print_message(f"holdfast: {error}")
        return UNAVAILABLE
    finally:
        store.close()
    if is_document(invocation.output):
        print_document(asdict(report), invocation.output)
    else:
        for difference in report.differences:
            print(difference)
        for row in report.damaged:
            print(f"damaged: {escape(row)}")
        if report.damaged:
            print_message("Damaged rows are set aside. Correct each in the database, or restore a backup.")
        summary = _count(len(report.differences), "difference") if report.differences else "no difference"
        damaged = f", {_count(len(report.damaged), 'damaged row')}" if report.damaged else ""
        checked = (_count(report.rows, "row"), _count(report.events, "event"), _count(report.accounts, "account"))
        print("{} and {} of {}: ".format(*checked) + summary + damaged)
    return DIFFERENT if report.differences or report.damaged else OK


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _print_progress(what: str, count: int) -> None:
    if count % REPORT_EVERY == 0:
        print(f"\r{count} {what}", end="", file=sys.stderr, flush=True)
