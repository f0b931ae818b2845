"""Reservations of files: cost in an empty space and in a full one, the most expensive request, and hand-offs.

`.venv/bin/python -m bench.reservations` measures these alone.
"""

from __future__ import annotations

import argparse
import gc
import os
import socket
import statistics
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from bench import document
from bench.figures import Figures
from bench.idle import read_answer
from bench.page import machine, other_table, targets_table
from bench.requests import record
from bench.scripts import FIRST, LEASE_ID, NUMBER, SECOND, Load, post, request_bytes
from bench.serving import Server, post_json, server
from bench.stores import NewStore, new_files, new_folder, private_postgres
from holdfast.core.reservation import conflicts, lifecycle
from holdfast.core.reservation.patterns import Pattern, parse
from holdfast.core.reservation.row import (
    EXCLUSIVE,
    MAX_BROAD,
    MAX_HELD,
    MAX_WAITING,
    SHARED,
    Reservation,
    encode_paths,
    patterns_in,
)
from holdfast.operations.bounds import RESERVED_PATHS

SECONDS = float(os.environ.get("HOLDFAST_BENCH_SECONDS", "2"))
PAUSE = 0.02
"""Until a caller waits."""
FOREVER = 10**18
RESERVATION_ID = '"reservation_id":"'


def measure_reservations(
    figures: Figures, name: str, new_store: NewStore, seconds: float, held: int = MAX_HELD - 1
) -> None:
    """One round on one store: a path in an empty space and in a full one, then hand-offs on one and two servers."""
    with ExitStack() as stack:
        url = new_store()
        first, second = (stack.enter_context(server(url)) for _ in range(2))
        fill(first, held)
        for space in ("empty", "full"):
            record(figures, f"{name}.reserve.{space}", first, cycles(space), connections=1, seconds=seconds)
        count = max(int(10 * seconds), 3)
        for servers, of in (("one", first), ("two", second)):
            times = hand_off_seconds(first, of, count)
            figures.add(f"{name}.handoff.{servers}.p50", statistics.median(times))
            figures.add(f"{name}.handoff.{servers}.max", max(times))


def cycles(space: str) -> Load:
    """Reserve a path that nobody has, and release it."""
    reserve = f'{{"space":"{space}","owner":"bench","paths":["src/app/{uuid.uuid4().hex[:8]}/{NUMBER}.py"]}}'
    release = post(f"/v1/reservations/{SECOND}/release", f'{{"lease_id":"{FIRST}"}}')
    return Load([(post("/v1/reservations", reserve), release)], markers=(LEASE_ID, RESERVATION_ID))


def fill(one: Server, count: int) -> None:
    """Reservations of folders, files and patterns, as many as possible of which begin with a wildcard."""
    for number in range(count):
        kinds = (f"src/part{number}/", f"docs/part{number}/page.md", f"tests/part{number}/**/test_*.py")
        path = f"**/*.part{number}" if number < MAX_BROAD else kinds[number % len(kinds)]
        body = {"space": "full", "owner": f"agent-{number}", "paths": [path], "mode": SHARED, "ttl_seconds": 3600}
        assert post_json(one.port, "/v1/reservations", body)["status"] == "reserved"


def hand_off_seconds(holder: Server, waiter: Server, count: int) -> list[float]:
    """Times from sending a release to the answer of a caller that waits for the path, perhaps on another server."""
    times = []
    with (
        socket.create_connection(("127.0.0.1", holder.port)) as one,
        socket.create_connection(("127.0.0.1", waiter.port)) as other,
    ):
        for _ in range(count):
            space = uuid.uuid4().hex
            body = {"space": space, "owner": "holder", "paths": ["src/"]}
            held = post_json(holder.port, "/v1/reservations", body)
            wish = f'{{"space":"{space}","owner":"waiter","paths":["src/app.py"],"wait_seconds":20}}'
            other.sendall(request_bytes("/v1/reservations", wish.encode()))
            while not post_json(waiter.port, "/v1/reservations", body)["waiting"]:
                time.sleep(PAUSE)
            time.sleep(PAUSE)
            release = f'{{"lease_id":"{held["lease_id"]}"}}'
            sent = time.perf_counter()
            one.sendall(request_bytes(f"/v1/reservations/{held['reservation_id']}/release", release.encode()))
            read_answer(other)
            times.append(time.perf_counter() - sent)
            read_answer(one)
    return times


# -- the most expensive request ----------------------------------------------------------------------------------

_DEEP = "/".join(["a"] * 240)
_WORST: dict[str, tuple[Callable[[int], str], Callable[[int], str]]] = {
    "deep folders": (lambda mine: f"{_DEEP}/x{mine}/", lambda other: f"{_DEEP}/y{other}/"),
    "long folders": (lambda mine: f"{'a' * 480}/x{mine}/", lambda other: f"{'a' * 480}/y{other}/"),
    "nested folders": (lambda mine: "a/" * (mine + 1), lambda other: f"{'a/' * 21}{other}/"),
    "one folder of all": (lambda _: "a/", lambda other: f"a/{'b' * 400}/{other}"),
    "question marks": (lambda mine: f"a/?{mine}*", lambda other: f"a/?{other}"),
    "two question marks": (lambda _: "a/??", lambda other: f"a/{''.join(map(chr, range(19968, 20400)))}{other}*"),
    "stars": (lambda mine: f"a/*x{mine}", lambda other: f"a/y*{other}"),
    "stars that overlap": (lambda mine: f"a/*{mine}", lambda other: f"a/y{other}*"),
    "pieces": (lambda mine: f"a/**/{'a*/' * 5}**/x{mine}", lambda other: f"{_DEEP}/{other}"),
    "question marks in long names": (
        lambda mine: f"a/*{'a' * 40}?*{'a' * 40}?*{'b' * 50}{mine}",
        lambda other: f"a/{'a' * 400}{other}",
    ),
}
"""Patterns of a request, and those of the reservations that it is compared with, each by number."""


def worst_seconds(reservations: int = MAX_HELD + MAX_WAITING) -> float:
    """CPU of the most expensive request that is not refused: comparing its patterns and describing the conflicts."""
    worst = 0.0
    for mine, other in _WORST.values():
        rows = [_shared(number, other) for number in range(reservations)]
        for count in (1, RESERVED_PATHS.most):
            patterns = list(dict.fromkeys(parse(mine(number)) for number in range(count)))
            worst = max(worst, _comparing_seconds(patterns, rows))
    return worst


def _shared(row: int, pattern: Callable[[int], str]) -> Reservation:
    """A reservation of as many patterns as it may have; shared ones may overlap."""
    most = RESERVED_PATHS.most
    paths = tuple(pattern(row * most + number) for number in range(most))
    return Reservation("default", str(row), mode=SHARED, paths=encode_paths(paths), proof="x", expires_at=FOREVER)


def _comparing_seconds(mine: Sequence[Pattern], rows: Sequence[Reservation]) -> float:
    """With as many of the reservations as are accepted."""
    theirs = [patterns_in(row.paths) for row in rows]
    count = len(rows)
    while conflicts.work_of(mine, theirs[:count]) > conflicts.MAX_WORK:
        count = count * 9 // 10
    gc.disable()  # a collection of the many rows made here would cost more than the request
    try:
        began = time.process_time()
        lifecycle.describe(mine, lifecycle.conflicts(mine, EXCLUSIVE, rows[:count], arrived_at=None, now=0))
        return time.process_time() - began
    finally:
        gc.enable()


def main() -> None:
    """Measure one round on each store and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.reservations")
    parser.add_argument("--document", action="store_true", help="write the tables into docs/explanation/speed.md")
    options = parser.parse_args()
    figures = Figures()
    figures.add("reserve.worst", worst_seconds())
    with new_folder() as folder, private_postgres() as database:
        for name, new_store in (("sqlite", new_files(folder)), ("postgres", database.new_database)):
            measure_reservations(figures, name, new_store, SECONDS)
    shown = "\n\n".join([f"{machine()}.", other_table(figures, ""), targets_table(figures)])
    print(shown)
    if options.document:
        document.replace_part("reservations", shown)


if __name__ == "__main__":
    main()
