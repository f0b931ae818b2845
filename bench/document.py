"""Writes measured pages and pictures into docs/explanation, between the markers of docs/explanation/speed.md."""

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


def write_speed(shown: str, figures: Figures, older: str) -> None:
    """Keep the page of `make bench` and its picture."""
    replace_part("bench", shown)
    (FOLDER / "speed.svg").write_text(speed_picture(figures, older))


def replace_part(name: str, text: str, path: Path = FOLDER / "speed.md") -> None:
    """Replace what is between the markers of one program."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = path.read_text().partition(begin)
    _, _, after = rest.partition(end)
    assert after, f"{path} has no markers {begin} and {end}"
    path.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}")


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
