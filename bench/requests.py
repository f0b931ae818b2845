"""Requests and cycles over HTTP: server CPU per request, requests per second and latency, beside an echo server."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import ExitStack

from bench import scripts
from bench.figures import Figures
from bench.load import Result, run
from bench.scripts import Load
from bench.serving import Server, echo_server, server
from bench.stores import NewStore
from bench.tree import Tree

CONNECTIONS = (1, 32, 128)
RENEWED = 256
"""How many jobs the renewals renew in turn."""
WARM_UP = 0.1
"""Part of the measured time that a server runs before, so that its caches are filled."""
VERBS = ("claim", "heartbeat", "release", "jobs", "locks")


def measure_requests(
    figures: Figures, name: str, new_store: NewStore, trees: Sequence[Tree], seconds: float,
    connections: Sequence[int] = CONNECTIONS,
) -> None:  # fmt: skip
    """One round on one kind of store: every measurement for each tree in turn, and for the echo servers."""
    with ExitStack() as stack:
        echoes = {kind: stack.enter_context(echo_server(kind)) for kind in ("bare", "holdfast")}
        servers = {tree.prefix: stack.enter_context(server(new_store(), tree=tree)) for tree in trees}
        for measured in (*echoes.values(), *servers.values()):
            load = scripts.echo() if measured in echoes.values() else scripts.job_cycles()
            run(measured.port, load, connections=32, seconds=WARM_UP * seconds)
        for count in connections:
            options = {"connections": count, "seconds": seconds}
            for kind, echo in echoes.items():
                record(figures, f"{name}.echo.{kind}.{count}", echo, scripts.echo(), **options)
            for prefix, one in servers.items():
                held = _claims(figures, f"{prefix}{name}", one, **options)
                record(figures, f"{prefix}{name}.heartbeat.{count}", one, held[0], **options)
                record(figures, f"{prefix}{name}.release.{count}", one, held[1], **options)
            for verb, load in (("jobs", scripts.job_cycles()), ("locks", scripts.lock_cycles())):
                for prefix, one in servers.items():
                    record(figures, f"{prefix}{name}.{verb}.{count}", one, load, **options)


def measure_one_process(
    figures: Figures, name: str, new_store: NewStore, trees: Sequence[Tree], seconds: float
) -> None:
    """Claims and renewals of one connection to a server that is one process, whatever its default is."""
    for tree in trees:
        with server(new_store(), "--workers", "1", tree=tree) as one:
            run(one.port, scripts.claims(), connections=1, seconds=WARM_UP * seconds)
            held = _claims(figures, f"{tree.prefix}{name}.single", one, connections=1, seconds=seconds)
            record(figures, f"{tree.prefix}{name}.single.heartbeat.1", one, held[0], connections=1, seconds=seconds)


def _claims(figures: Figures, name: str, one: Server, *, connections: int, seconds: float) -> tuple[Load, Load]:
    """Measure claims; gives the renewals and releases of what was claimed."""
    prefix = uuid.uuid4().hex[:8]
    claims = scripts.claims(prefix=prefix)
    result = record(figures, f"{name}.claim.{connections}", one, claims, connections=connections, seconds=seconds)
    return scripts.heartbeats(prefix, result.captures[:RENEWED]), scripts.releases(prefix, result.captures)


def record(figures: Figures, name: str, one: Server, load: Load, *, connections: int, seconds: float) -> Result:
    """Run a load and keep its figures: CPU per request, requests and cycles per second, latency."""
    before = one.cpu_seconds()
    result = run(one.port, load, connections=connections, seconds=seconds)
    figures.add(f"{name}.cpu", (one.cpu_seconds() - before) / result.answered)
    figures.add(f"{name}.rate", result.rate)
    figures.add(f"{name}.cycles", result.cycles_rate)
    figures.add(f"{name}.p50", result.all.p50)
    figures.add(f"{name}.p99", result.all.p99)
    figures.add(f"{name}.generator", result.cpu / result.answered)
    return result
