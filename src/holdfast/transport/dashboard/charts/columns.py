"""SVG column charts, drawn on the server: colours come from CSS classes, and a sentence describes the chart."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

WIDTH, HEIGHT = 600, 120
GAP = 3
FRONT_WIDTH = 0.5
"""Width of the front column, as a fraction of the one behind it."""


class Column(msgspec.Struct, frozen=True):
    """One minute: work that began in the column behind, work that ended in the column in front."""

    label: str
    begun: int
    ended: tuple[tuple[str, int], ...]
    """(CSS class, count), from the bottom up."""

    @property
    def top(self) -> int:
        """The larger of the two totals."""
        return max(self.begun, sum(count for _, count in self.ended))


class Rect(msgspec.Struct, frozen=True):
    """A rectangle with its position."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    title: str


class Chart(msgspec.Struct, frozen=True):
    """Rectangles, the highest value, the labels of the first and last column, and the description."""

    rects: list[Rect]
    top: int
    first: str
    last: str
    description: str
    width: int = WIDTH
    height: int = HEIGHT


def draw(columns: Sequence[Column], description: str) -> Chart:
    """Draw columns over time, oldest at the left."""
    top = max((column.top for column in columns), default=0)
    step = WIDTH / len(columns)
    rects = []
    for index, column in enumerate(columns):
        left, width = index * step, step - GAP
        title = f"{column.label}: {column.begun} begun" + "".join(f", {count} {kind}" for kind, count in column.ended)
        if column.begun:
            rects.append(_rect("begun", (left, width), (0, column.begun / top), title))
        stacked, inside = 0, (left + width * (1 - FRONT_WIDTH) / 2, width * FRONT_WIDTH)
        for kind, count in column.ended:
            if count:
                rects.append(_rect(kind, inside, (stacked / top, count / top), title))
            stacked += count
    return Chart(rects, top, columns[0].label, columns[-1].label, description)


def _rect(kind: str, horizontal: tuple[float, float], vertical: tuple[float, float], title: str) -> Rect:
    """A rectangle at (left, width) and (bottom, height), the latter as fractions of the whole height."""
    (x, width), (bottom, height) = horizontal, vertical
    y = HEIGHT * (1 - bottom - height)
    return Rect(kind, round(x, 1), round(y, 1), round(width, 1), round(HEIGHT * height, 1), title)
