"""SVG line charts, drawn on the server: axes with units, a legend, and a table of the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

WIDTH, HEIGHT = 600, 188
LEFT, RIGHT, TOP, BOTTOM = 56, 8, 10, 30
"""Margins for the labels of the axes."""
TICKS = 4
TIMES = 4
UNKNOWN = "\N{EN DASH}"
"""Stands in a table where a number is not known."""

Number = float | None


class Line(msgspec.Struct, frozen=True):
    """One line: its name in the legend, its CSS class, and a number for each point; None leaves a gap."""

    name: str
    kind: str
    numbers: list[Number]


class Label(msgspec.Struct, frozen=True):
    """Text at a position of an axis."""

    at: float
    text: str


class LineChart(msgspec.Struct, frozen=True):
    """A drawn chart. `paths` is (CSS class, commands of an SVG path)."""

    id: str
    title: str
    about: str
    lines: list[Line]
    paths: list[tuple[str, str]]
    levels: list[Label]
    times: list[Label]
    rows: list[tuple[str, list[str]]]
    """The table: the time of each point, and the number of each line there."""
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def draw_lines(
    names: tuple[str, str, str],
    lines: list[Line],
    times: Sequence[str],
    text: Callable[[float], str],
    end: Callable[[float], float] | None = None,
) -> LineChart:
    """Draw lines over time, oldest at the left; `names` is id, title and description, `text` shows a number.

    `end` is where the vertical axis ends for a highest number, as a rule `round_up`.
    """
    highest = max((number for line in lines for number in line.numbers if number is not None), default=0.0)
    top = (end or round_up)(highest)
    step = (WIDTH - RIGHT - LEFT) / max(len(times) - 1, 1)

    def x(point: int) -> float:
        return round(LEFT + point * step, 1)

    def y(number: float) -> float:
        return round(HEIGHT - BOTTOM - number / top * (HEIGHT - BOTTOM - TOP), 1)

    paths = [(line.kind, _path([(x(point), y(n)) for point, n in _known(run)]))
             for line in lines for run in _runs(line.numbers)]  # fmt: skip
    levels = [Label(y(top * level / TICKS), text(top * level / TICKS)) for level in range(0, TICKS + 1, 2)]
    shown = sorted({round(point * (len(times) - 1) / TIMES) for point in range(TIMES + 1)})
    rows = [
        (at, [UNKNOWN if line.numbers[point] is None else text(line.numbers[point] or 0.0) for line in lines])
        for point, at in enumerate(times)
    ]
    return LineChart(*names, lines, paths, levels, [Label(x(point), times[point]) for point in shown], rows)


def round_up(number: float) -> float:
    """The end of an axis of counts: 1, 2, 4 or 8 times a power of ten, not below the number, and 4 at least."""
    scale = 1
    while scale * 8 < number:
        scale *= 10
    return max(next(scale * factor for factor in (1, 2, 4, 8) if scale * factor >= number), 4)


def _runs(numbers: Sequence[Number]) -> list[list[tuple[int, Number]]]:
    """The parts of a line between its gaps."""
    runs: list[list[tuple[int, Number]]] = [[]]
    for point, number in enumerate(numbers):
        if number is None:
            runs.append([])
        else:
            runs[-1].append((point, number))
    return [run for run in runs if run]


def _known(run: Sequence[tuple[int, Number]]) -> list[tuple[int, float]]:
    return [(point, number) for point, number in run if number is not None]


def _path(points: Sequence[tuple[float, float]]) -> str:
    """A line through the points; a single one is a short dash."""
    if len(points) == 1:
        ((x, y),) = points
        return f"M{x - 1:g} {y:g}H{x + 1:g}"
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
