"""Registered accounts: many without limits, and one whose limits are too high to be reached."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from bench import scripts
from bench.figures import Figures
from bench.load import run
from bench.requests import record
from bench.serving import Server, server
from bench.stores import NewStore
from bench.tree import Tree

CONNECTIONS = 128
LIMITS = {"creates": 10**9, "claims": 10**9, "reads": 10**9, "mutations": 2 * 10**9, "heartbeats": 10**9}


def measure_limits(
    figures: Figures, name: str, new_store: NewStore, trees: Sequence[Tree], seconds: float, folder: Path
) -> None:
    """Claims by the server's own account, which has no limits, and by a registered one, which has all of them."""
    for tree in trees:
        with server(new_store(), tree=tree, HOLDFAST_PLAN="bench", HOLDFAST_PLANS=str(plans(folder))) as one:
            keys = {"unlimited": scripts.KEY, "limited": register(one.port, 1)[0]}
            for kind, key in keys.items():
                # A server admits more requests of a key that it knows.
                run(one.port, scripts.claims([key]), connections=8, seconds=seconds / 10)
                what = f"{tree.prefix}{name}.{kind}.{CONNECTIONS}"
                record(figures, what, one, scripts.claims([key]), connections=CONNECTIONS, seconds=seconds)


def open_server(url: str) -> AbstractContextManager[Server]:
    """A server on which anybody may register, without limits: with a plan, one address may register ten accounts."""
    return server(url, HOLDFAST_REGISTRATION="open")


def plans(folder: Path) -> Path:
    """File with a plan that has every kind of limit, each too high to be reached."""
    path = folder / "plans.toml"
    path.write_text(
        "[bench]\nmax_workers = 1000000\ntasks_per_month = 1000000000\n"
        + "".join(f"{name}_per_hour = {limit}\n" for name, limit in LIMITS.items())
    )
    return path


def register(port: int, count: int) -> list[str]:
    """The keys of so many new accounts."""
    return [_register(port) for _ in range(count)]


def _register(port: int) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/keys/register", data=b"", method="POST")
    with urllib.request.urlopen(request) as answer:
        return str(json.load(answer)["apiKey"])
