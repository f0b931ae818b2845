"""Charts as SVG, drawn on the server: shapes by attributes, colours by classes, a sentence for who cannot see them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

WIDTH, HEIGHT = 600, 120
GAP = 3
NARROW = 0.5
"""How wide the column in front is, as a part of the one behind it."""


class Column(msgspec.Struct, frozen=True):
    """One minute: what began stands behind, what came to its end stands in front."""

    label: str
    begun: int
    ended: tuple[tuple[str, int], ...]
    """(class, how many), from the bottom up."""

    @property
    def top(self) -> int:
        """How high it stands."""
        return max(self.begun, sum(many for _, many in self.ended))


class Rect(msgspec.Struct, frozen=True):
    """A placed rectangle."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    title: str


class Chart(msgspec.Struct, frozen=True):
    """Rectangles, the highest value, where the time begins and ends, and the sentence."""

    rects: list[Rect]
    top: int
    first: str
    last: str
    words: str
    width: int = WIDTH
    height: int = HEIGHT


def draw(columns: Sequence[Column], words: str) -> Chart:
    """Columns over time, oldest at the left."""
    top = max((column.top for column in columns), default=0)
    step = WIDTH / len(columns)
    rects = []
    for place, column in enumerate(columns):
        left, width = place * step, step - GAP
        title = f"{column.label}: {column.begun} begun" + "".join(f", {many} {kind}" for kind, many in column.ended)
        if column.begun:
            rects.append(_rect("begun", (left, width), (0, column.begun / top), title))
        stands, inside = 0, (left + width * (1 - NARROW) / 2, width * NARROW)
        for kind, many in column.ended:
            if many:
                rects.append(_rect(kind, inside, (stands / top, many / top), title))
            stands += many
    return Chart(rects, top, columns[0].label, columns[-1].label, words)


def _rect(kind: str, across: tuple[float, float], up: tuple[float, float], title: str) -> Rect:
    """From (left, width), and (below, height) as parts of the whole height."""
    (x, width), (below, height) = across, up
    y = HEIGHT * (1 - below - height)
    return Rect(kind, round(x, 1), round(y, 1), round(width, 1), round(HEIGHT * height, 1), title)
