"""Verb `import octostore`: takes over the database of an OctoStore server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from holdfast.app import running_engine
from holdfast.core.errors import HoldfastError
from holdfast.core.event import Cause
from holdfast.core.imports.octostore_records import Records
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.engine.verbs.importing import Imported, ImportOctostore
from holdfast.imports.octostore_file import UnreadableFile, read_octostore
from holdfast.settings import BadSettings, Settings, load, sqlite_path
from holdfast.store.contract import UnusableStore
from holdfast.transport.cli.output import escape, is_document, print_document, print_message
from holdfast.transport.cli.verbs.verb import Invocation

OK, FAILED, CONFIGURATION = 0, 1, 2

KINDS = {
    "users": "users",
    "users_known": "users that the store knows already",
    "sessions": "live sessions",
    "locks": "held locks",
    "elections": "led elections",
    "delays": "names whose delay is not over",
    "access_lists": "access lists",
    "webhooks": "webhooks",
    "sessions_expired": "sessions left out, because they have expired",
    "locks_expired": "locks left out, because they have expired",
}


def run(invocation: Invocation) -> int:
    """Import, or say what would be imported. Exit status 1: nothing was changed, because something was refused."""
    arguments = invocation.arguments
    path, dry_run = Path(arguments["file"]), bool(arguments["dry_run"])
    try:
        settings, _ = load({"store": arguments["store"]})
        records = read_octostore(path)
        outcome = _import(settings, records, dry_run=dry_run, skip_refused=bool(arguments["skip_refused"]))
    except BadSettings as error:
        for problem in error.problems:
            print_message(f"holdfast: {problem}")
        return CONFIGURATION
    except (UnreadableFile, HoldfastError, UnusableStore) as error:
        print_message(f"holdfast: {escape(str(error))}")
        return FAILED
    _print_report(invocation.output, path, outcome, dry_run=dry_run)
    sys.stdout.flush()
    is_wanted = outcome.applied or (dry_run and (bool(arguments["skip_refused"]) or not outcome.refused))
    return OK if is_wanted else FAILED


def _import(settings: Settings, records: Records, *, dry_run: bool, skip_refused: bool) -> Imported:
    """Run the import in one transaction of the store."""
    store = settings.store
    if dry_run and store.startswith("sqlite:///") and not sqlite_path(store).exists():
        settings = replace(settings, store="memory:")  # a dry run creates no file
    with running_engine(settings, serving=False) as engine:
        existing = engine.read(lambda reader: reader.principals(DEFAULT_ACCOUNT))
        outcome: Any = engine.call(
            ImportOctostore(
                account=DEFAULT_ACCOUNT,
                cause=Cause("import", ""),
                records=records,
                existing=tuple(principal.id for principal in existing),
                dry_run=dry_run,
                skip_refused=skip_refused,
                private_networks=settings.webhook_allow_private_networks,
            )
        )
    assert isinstance(outcome, Imported)
    return outcome


def _print_report(output: str, path: Path, outcome: Imported, *, dry_run: bool) -> None:
    counts = {kind: outcome.counts.get(kind, 0) for kind in KINDS}
    if is_document(output):
        document: dict[str, Any] = {"file": str(path), "dry_run": dry_run, "imported": outcome.applied, **counts}
        document |= {"tokens_after": outcome.tokens_after, "refused": list(outcome.refused)}
        print_document(document, output)
        return
    for line in outcome.refused:
        print_message(f"holdfast: refused: {escape(line)}")
    for kind, count in counts.items():
        if count:
            print(f"{count:>6}  {KINDS[kind]}")
    print(f"tokens continue after {outcome.tokens_after}")
    if dry_run:
        print("This was a dry run: nothing was changed.")
    elif not outcome.applied:
        print_message("holdfast: nothing was imported: correct what is refused, or leave it out with --skip-refused")
