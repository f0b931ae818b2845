"""`make bench-peers`: cycles of Holdfast and of other systems, in turn in each round, on one disk, all writes flushed.

A system that is not installed is left out with a line that says so; ARGS=--install installs what Debian and PyPI have.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack

from bench import document, raw
from bench.figures import Figures
from bench.page import machine, number, table
from bench.peers import holdfast, libraries, network, tables
from bench.peers.peer import LOCKS, QUEUES, Peer
from bench.stores import new_folder
from bench.tree import ROOT

SECONDS = float(os.environ.get("HOLDFAST_BENCH_SECONDS", "2"))
ROUNDS = int(os.environ.get("HOLDFAST_BENCH_ROUNDS", "3"))
CONNECTIONS = (1, 32, 128)
PEERS = (*holdfast.PEERS, *network.PEERS, *tables.PEERS, *libraries.PEERS)
ETCD = "etcd, one member, JSON gateway"
REDIS = "Redis, appendfsync always"


def main(arguments: list[str] | None = None) -> None:
    """Measure all systems that are installed and print their table."""
    parser = argparse.ArgumentParser(prog="make bench-peers")
    parser.add_argument("--install", action="store_true", help="install what is missing (Debian's packages as root)")
    parser.add_argument("--document", action="store_true", help="write the page and the picture into docs/explanation")
    parser.add_argument("--connections", type=int, nargs="+", default=CONNECTIONS)
    parser.add_argument("--only", metavar="WORD", default="", help="only systems whose name has this word")
    options = parser.parse_args(arguments)
    if options.install:
        install()
    peers = [peer for peer in PEERS if options.only.lower() in peer.name.lower() and is_usable(peer)]
    figures, flush = Figures(), 0.0
    with ExitStack() as stack:
        folder = stack.enter_context(new_folder())
        measures = {}
        for index, peer in enumerate(peers):
            (folder / str(index)).mkdir()
            measures[peer.name] = stack.enter_context(peer.open(folder / str(index)))
        for _ in range(ROUNDS):
            flush = raw.flush_seconds(folder)
            for connections in options.connections:
                for name, measure in measures.items():
                    outcome = measure(connections, SECONDS)
                    figures.add(f"{name}.{connections}.cycles", outcome.cycles_rate)
                    figures.add(f"{name}.{connections}.cpu", outcome.cpu)
    shown = page(peers, figures, options.connections, flush)
    print(shown)
    if options.document:
        document.write_peers(shown, figures, {kind: names(peers, kind) for kind in (LOCKS, QUEUES)})


def install() -> None:
    """Install Debian's packages, as root, and the virtual environment with those of PyPI."""
    for peer in PEERS:
        if peer.is_missing():
            test = " && ".join(f"command -v {program}" for program in peer.programs)
            subprocess.run([ROOT / "scripts" / "need-apt", test, peer.package], check=True)
    if not libraries.is_installed():
        libraries.install()


def is_usable(peer: Peer) -> bool:
    """Whether it is installed; if not, say what to do."""
    if peer.is_from_pypi and not libraries.is_installed():
        print(f"left out: {peer.name} (make bench-peers ARGS=--install makes its virtual environment)")
        return False
    if peer.is_missing():
        print(f"left out: {peer.name} (apt-get install {peer.package}, or as root make bench-peers ARGS=--install)")
        return False
    return True


def names(peers: Sequence[Peer], kind: str) -> list[str]:
    """Names of the systems of one kind."""
    return [peer.name for peer in peers if peer.kind == kind]


def page(peers: Sequence[Peer], figures: Figures, connections: Sequence[int], flush: float) -> str:
    """A table for the locks, one for the queues, and what was to be shown."""
    run = f"{machine()}. One flush took {flush * 1000:.2f} ms. Medians of {ROUNDS} rounds of {SECONDS:g} s"
    shown_kinds = [kind for kind in (LOCKS, QUEUES) if names(peers, kind)]
    parts = [
        f"{run}, cycles per second; every write was flushed before its answer.",
        *(_table(kind, names(peers, kind), figures, connections) for kind in shown_kinds),
    ]
    ours = "Holdfast on SQLite, locks"
    for other, word in ((ETCD, "target"), (REDIS, "aim")):
        ratios = [figures.ratio(f"{ours}.{count}.cycles", f"{other}.{count}.cycles") for count in connections]
        if f"{other}.{connections[0]}.cycles" in figures and f"{ours}.{connections[0]}.cycles" in figures:
            shown = ", ".join(f"{ratio:.2f} at {count}" for ratio, count in zip(ratios, connections, strict=True))
            verdict = "met" if min(ratios) >= 1 else "MISSED"
            parts.append(f"Locks on SQLite, of {other} ({word}: at least 1): {shown}: {verdict}.")
    return "\n\n".join(parts) + "\n"


def _table(kind: str, rows: Sequence[str], figures: Figures, connections: Sequence[int]) -> str:
    header = [
        kind,
        *(f"{count} callers" if count > 1 else "1 caller" for count in connections),
        f"CPU µs a cycle, {connections[-1]}",
    ]
    cells = []
    for name in rows:
        rates = [number(figures.median(f"{name}.{count}.cycles"), 0) for count in connections]
        cells.append([name, *rates, number(figures.median(f"{name}.{connections[-1]}.cpu") * 1e6, 0)])
    return table(header, cells)


if __name__ == "__main__":
    main()
