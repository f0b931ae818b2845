"""A server with little to do: how soon it starts, what it costs, and how soon a waiting worker gets a task."""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from bench import raw
from bench.figures import Figures
from bench.python_load import is_complete
from bench.scripts import request_bytes
from bench.serving import server
from bench.stores import NewStore
from bench.tree import Tree

ALLOWED_SECONDS = 0.0015
"""What a pick-up may take besides its two flushes."""
PAUSE = 0.02
"""Between two pick-ups, so that the server is idle when the next task arrives."""


def measure_idle(
    figures: Figures, name: str, new_store: NewStore, trees: Sequence[Tree], seconds: float, folder: Path
) -> None:
    """One round: start on a new store, pick-ups, start again, then memory and CPU while nobody calls."""
    for tree in trees:
        url, prefix = new_store(), f"{tree.prefix}{name}"
        with server(url, tree=tree) as one:
            figures.add(f"{prefix}.start.new", one.start_seconds)
            flush = raw.flush_seconds(folder)
            figures.add(f"{prefix}.pickup.p50", statistics.median(pickup_seconds(one.port, max(int(50 * seconds), 3))))
            figures.add(f"{prefix}.pickup.allowed", 2 * flush + ALLOWED_SECONDS)
            figures.add(f"{prefix}.pickup.flush", flush)
        with server(url, tree=tree) as one:
            figures.add(f"{prefix}.start.again", one.start_seconds)
            time.sleep(seconds / 4)
            before = one.cpu_seconds()
            time.sleep(5 * seconds)
            figures.add(f"{prefix}.idle.cpu", (one.cpu_seconds() - before) / (5 * seconds))
            figures.add(f"{prefix}.idle.memory", one.memory())


def pickup_seconds(port: int, count: int) -> list[float]:
    """Times from sending a new task to the answer of the worker's claim, which was waiting for it."""
    claim = request_bytes("/v1/tasks/claim", b'{"type":"idle","worker_id":"w","wait_seconds":20}')
    create = request_bytes("/v1/tasks", b'{"type":"idle","payload":{}}')
    times = []
    with (
        socket.create_connection(("127.0.0.1", port)) as worker,
        socket.create_connection(("127.0.0.1", port)) as other,
    ):
        for _ in range(count):
            worker.sendall(claim)
            time.sleep(PAUSE)
            sent = time.perf_counter()
            other.sendall(create)
            read_answer(worker)
            times.append(time.perf_counter() - sent)
            read_answer(other)
    return times


def read_answer(connection: socket.socket) -> None:
    """Read one whole answer, which must be a success."""
    answer = b""
    while not is_complete(answer, 0):
        answer += connection.recv(1 << 16)
    assert answer.startswith(b"HTTP/1.1 2"), answer
