"""Writes measured figures and pictures into docs/explanation/speed.md: one section for each program, after its text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from bench.figures import OLDER, Figures
from bench.page import VERB_NAMES
from bench.picture import Bar, Panel, chart
from bench.tree import ROOT

FOLDER = ROOT / "docs" / "explanation"
OURS, OTHER = 0, 3
"""Colours of the bars."""

SECTIONS = {
    "bench": """
## Requests, tasks and targets

`make bench`. Columns with the name of a commit are that older commit, measured in the same rounds.

![CPU per request and cycles per second](speed.svg)
""",
    "peers": """
## Beside other systems

`make bench-peers`. All of them flush every write. They do not promise the same: Redis gives no fencing token and
keeps no history; etcd's revisions are tokens, and it replicates; the PostgreSQL tables keep no history; beanstalkd and
persist-queue know no token. Each has the fastest client that was available: Redis, etcd, beanstalkd and Holdfast
`bench/load.c`, the tables PostgreSQL's pgbench, the libraries their own Python process. etcd is called through its JSON
gateway, which costs it more CPU than gRPC.

![Cycles per second of Holdfast and other systems](peers.svg)
""",
    "growth": """
## Cost against what is stored

`python -m bench.growth`. Server CPU per request with the most rows may be at most 1.3 times that with the fewest.
""",
    "servers": """
## Several servers on one PostgreSQL

`python -m bench.servers`. Servers, PostgreSQL and load generators share this machine, so this shows what a claim costs
in all, not how far it scales. Writers of one account on different servers meet at the account's event counter: it is
locked from the last statement of a transaction until its COMMIT is flushed. `ms in the flush` is about how long that
is, `ms waiting for a lock` what it costs the others; both are times per commit, from samples of PostgreSQL's sessions.
""",
    "reservations": """
## Reservations of files

`make bench` measures this too; `python -m bench.reservations` measures it alone. A full space has 500 reservations of
folders, files and patterns, 50 of which begin with a wildcard. The most expensive request is the worst of many that
were made to be expensive: long, deep, nested and ambiguous patterns, as many as are accepted. Hand-offs are measured
from sending the release to the answer of the caller that waits.
""",
}
"""Heading and text of the sections, in their order."""


def write_speed(shown: str, figures: Figures, older: str) -> None:
    """Keep the page of `make bench` and its picture."""
    replace_part("bench", shown)
    (FOLDER / "speed.svg").write_text(speed_picture(figures, older))


def replace_part(name: str, figures: str, path: Path = FOLDER / "speed.md") -> None:
    """Replace the section of one program, or add it in its place among the others."""
    text = path.read_text()
    parts = {known: _part(text, known) for known in SECTIONS}
    parts[name] = f"{SECTIONS[name].strip()}\n\n{figures.strip()}"
    shown = [f"<!-- {known}: begin -->\n\n{part}\n\n<!-- {known}: end -->" for known, part in parts.items() if part]
    path.write_text("\n\n".join([text.partition("<!-- ")[0].strip(), *shown]) + "\n")


def _part(text: str, name: str) -> str:
    """What the page has between the markers of one program."""
    return text.partition(f"<!-- {name}: begin -->")[2].partition(f"<!-- {name}: end -->")[0].strip()


def speed_picture(figures: Figures, older: str) -> str:
    """CPU per request and cycles per second on SQLite, now and in the older commit."""
    panels = [
        Panel("Server CPU per request on SQLite, 128 connections (µs, less is better)", _cpu_bars(figures, 128)),
        Panel("Server CPU per request on SQLite, 1 connection (µs, less is better)", _cpu_bars(figures, 1)),
        Panel("Cycles per second on SQLite, every write flushed (more is better)", _cycle_bars(figures)),
    ]
    return chart("Speed of Holdfast", panels, ["now", older] if older else [])


def _cpu_bars(figures: Figures, connections: int) -> Sequence[Bar]:
    verbs = ("echo.bare", "echo.holdfast", "claim", "heartbeat", "release")
    names = [(VERB_NAMES[verb], f"sqlite.{verb}.{connections}.cpu") for verb in verbs]
    return _bars(figures, names, 1e6)


def _cycle_bars(figures: Figures) -> Sequence[Bar]:
    verbs = [(verb, count) for verb in ("jobs", "locks") for count in (1, 32, 128)]
    names = [(f"{VERB_NAMES[verb]}, {count}", f"sqlite.{verb}.{count}.cycles") for verb, count in verbs]
    return _bars(figures, names, 1)


def _bars(figures: Figures, names: Sequence[tuple[str, str]], factor: float) -> Sequence[Bar]:
    bars = []
    for label, name in names:
        for series, prefix in enumerate(("", OLDER)):
            value = figures.median(prefix + name) * factor
            if not math.isnan(value):
                bars.append(Bar(label if series == 0 else "", value, series))
    return bars


def write_peers(shown: str, figures: Figures, names: dict[str, list[str]]) -> None:
    """Keep the page of `make bench-peers` and its picture."""
    replace_part("peers", shown)
    (FOLDER / "peers.svg").write_text(peers_picture(figures, names))


def peers_picture(figures: Figures, names: dict[str, list[str]]) -> str:
    """Cycles per second of every system, with one caller and with many."""
    panels = [
        Panel(f"{kind[0].upper()}{kind[1:]}: cycles per second, {callers}", _system_bars(figures, systems, count))
        for kind, systems in names.items()
        for count, callers in ((1, "1 caller"), (128, "128 callers"))
        if systems and f"{systems[0]}.{count}.cycles" in figures
    ]
    return chart("Holdfast beside other systems", panels)


def _system_bars(figures: Figures, names: Sequence[str], count: int) -> Sequence[Bar]:
    return [
        Bar(name.partition(" (")[0], figures.median(f"{name}.{count}.cycles"), OURS if "Holdfast" in name else OTHER)
        for name in names
    ]
