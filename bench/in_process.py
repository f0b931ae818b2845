"""Without HTTP: the engine alone, and `holdfast.open`. Each runs as a program of the tree that is measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bench import baseline, raw
from bench.figures import Figures
from bench.stores import NewStore
from bench.tree import Tree

CALLERS = 64
LOOP_CONNECTIONS = 16

ENGINE = """
import json, sys, time
from bench import cycles, engine
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore

callers, seconds = int(sys.argv[1]), float(sys.argv[2])
figures = {}
for what, url in zip(("singly", "claims", "tasks"), sys.argv[3:], strict=True):
    store = PostgresStore(url) if url.startswith("postgresql") else SqliteStore(url.removeprefix("sqlite:///"))
    store.open()
    before = time.process_time()
    if what == "tasks":
        rate = cycles.cycles_per_second(store, callers=callers, seconds=seconds)
    else:
        options = {"max_batch": 1} if what == "singly" else {}
        rate = engine.claims_per_second(store, callers=callers, seconds=seconds, **options)
    figures[what + ".rate"] = rate
    figures[what + ".cpu"] = (time.process_time() - before) / (rate * seconds)
    store.close()
print(json.dumps(figures))
"""
"""Uses the modules `bench.engine` and `bench.cycles` of its own tree, which know that tree's engine."""

EMBEDDED = """
import json, sys, threading, time
import holdfast

path, seconds = sys.argv[1], float(sys.argv[2])
client = holdfast.open(path)
client.claim_job("warm-up", "bench")

def claim(number):
    while not counts[number] or time.perf_counter() - started < seconds:
        assert client.claim_job(f"{callers}/{number}/{counts[number]}", "bench")["status"] == "claimed"
        counts[number] += 1

figures = {}
for callers in map(int, sys.argv[3:]):
    counts = [0] * callers
    threads = [threading.Thread(target=claim, args=(number,)) for number in range(callers)]
    before, started = time.process_time(), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    figures[f"{callers}.rate"] = sum(counts) / (time.perf_counter() - started)
    figures[f"{callers}.cpu"] = (time.process_time() - before) / sum(counts)
print(json.dumps(figures))
client.close()
"""


def measure_engine(
    figures: Figures, name: str, new_store: NewStore, trees: Sequence[Tree], seconds: float, folder: Path
) -> None:
    """One round of claims and task cycles through the engine, with the plain loops they are compared with."""
    url = new_store()
    is_postgres = url.startswith("postgresql")
    commits = raw.postgres_commits(url, seconds) if is_postgres else raw.sqlite_commits(folder, seconds)
    figures.add(f"{name}.raw.rate", commits)
    if is_postgres:
        figures.add(f"{name}.loop.rate", baseline.cycles_per_second(url, LOOP_CONNECTIONS, seconds))
    else:
        figures.add(f"{name}.loop.rate", baseline.sqlite_cycles_per_second(folder, seconds))
    for tree in trees:
        urls = [new_store() for _ in range(3)]
        _record(figures, f"{tree.prefix}{name}.engine", tree, ENGINE, CALLERS, seconds, *urls)


def measure_embedded(figures: Figures, name: str, new_store: NewStore, trees: Sequence[Tree], seconds: float) -> None:
    """One round of claims through `holdfast.open`, by one thread and by 16."""
    for tree in trees:
        _record(figures, f"{tree.prefix}{name}.embedded", tree, EMBEDDED, new_store(), seconds, 1, 16)


def _record(figures: Figures, name: str, tree: Tree, program: str, *arguments: object) -> None:
    for key, value in json.loads(tree.run_program(program, *map(str, arguments))).items():
        figures.add(f"{name}.{key}", value)
