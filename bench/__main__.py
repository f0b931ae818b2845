"""`make bench`: one page with the speed of this tree, beside a bare echo server and, if asked, beside an older commit.

Every counted answer was durable: flushed to disk before it was sent. The machine's speed changes by a factor of two
within minutes, so whatever is compared is measured in turn, in several rounds, and ratios are formed within a round.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path

from bench import document, raw, streams
from bench.accounts import measure_limits
from bench.figures import Figures
from bench.idle import measure_idle
from bench.in_process import measure_embedded, measure_engine
from bench.page import page
from bench.requests import measure_one_process, measure_requests
from bench.reservations import measure_reservations, worst_seconds
from bench.statements import measure_statements
from bench.stores import NewStore, new_files, new_folder, private_postgres
from bench.streams import Size
from bench.tasks import measure_tasks
from bench.tree import PRESENT, Tree, older_tree

SECONDS = float(os.environ.get("HOLDFAST_BENCH_SECONDS", "2"))
ROUNDS = int(os.environ.get("HOLDFAST_BENCH_ROUNDS", "3"))


def main(arguments: list[str] | None = None) -> None:
    """Measure everything and print the page."""
    parser = argparse.ArgumentParser(prog="make bench", description="ARGS='--against COMMIT' compares with a commit.")
    parser.add_argument("--against", metavar="COMMIT", default="", help="measure this commit in the same rounds")
    parser.add_argument("--document", action="store_true", help="write the page and the picture into docs/explanation")
    parser.add_argument("--only", metavar="STORE", choices=["sqlite", "postgres"], help="leave the other store out")
    options = parser.parse_args(arguments)
    figures = Figures()
    with ExitStack() as stack:
        trees = [PRESENT]
        if options.against:
            trees.append(stack.enter_context(older_tree(options.against)))
        folder = stack.enter_context(new_folder())
        if options.only != "sqlite":
            database = stack.enter_context(private_postgres())
        for turn in range(ROUNDS):
            print(f"round {turn + 1} of {ROUNDS} ...", file=sys.stderr)
            figures.add("flush", raw.flush_seconds(folder))
            in_turn = trees[:: -1 if turn % 2 else 1]
            if options.only != "postgres":
                measure_sqlite(figures, folder, in_turn)
            if options.only != "sqlite":
                measure_postgres(figures, folder, in_turn, database.new_database)
    shown = page(figures, options.against, ROUNDS, SECONDS)
    print(shown)
    if options.document:
        document.write_speed(shown, figures, options.against)


def measure_sqlite(figures: Figures, folder: Path, trees: list[Tree]) -> None:
    """One round on SQLite files: every measurement."""
    new_store = new_files(folder)
    measure_requests(figures, "sqlite", new_store, trees, SECONDS)
    measure_one_process(figures, "sqlite", new_store, trees, SECONDS)
    measure_limits(figures, "sqlite", new_store, trees, SECONDS, folder)
    measure_tasks(figures, "sqlite", new_store, trees, SECONDS)
    measure_engine(figures, "sqlite", new_store, trees, SECONDS, folder)
    measure_statements(figures, folder, SECONDS)
    measure_embedded(figures, "sqlite", new_store, trees, SECONDS)
    measure_idle(figures, "sqlite", new_store, trees, SECONDS, folder)
    measure_reservations(figures, "sqlite", new_store, SECONDS)
    figures.add("reserve.worst", worst_seconds())
    measure_requests(figures, "memory", lambda: "memory:", trees, SECONDS, [128])
    size = Size(seconds=2 * SECONDS)
    for tree in trees:
        for name, readers in (("alone", 0), ("readers", size.readers)):
            outcome = streams.measure(new_store(), size, readers, tree=tree)
            figures.add(f"{tree.prefix}streams.{name}.p99", outcome.p99)


def measure_postgres(figures: Figures, folder: Path, trees: list[Tree], new_store: NewStore) -> None:
    """One round on PostgreSQL: requests, tasks and reservations."""
    measure_requests(figures, "postgres", new_store, trees, SECONDS)
    measure_tasks(figures, "postgres", new_store, trees, SECONDS)
    measure_engine(figures, "postgres", new_store, trees, SECONDS, folder)
    measure_reservations(figures, "postgres", new_store, SECONDS)


if __name__ == "__main__":
    main()
