"""Charts as SVG, drawn on the server: shapes by attributes, colours by classes, a sentence for who cannot see them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

WIDTH, HEIGHT = 600, 120
GAP = 2


class Bar(msgspec.Struct, frozen=True):
    """One column, of parts that stand on each other."""

    label: str
    parts: tuple[tuple[str, int], ...]
    """(class, how many)"""

    @property
    def total(self) -> int:
        """How high it stands."""
        return sum(many for _, many in self.parts)


class Rect(msgspec.Struct, frozen=True):
    """A part of a column, placed."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    title: str


class Chart(msgspec.Struct, frozen=True):
    """Placed rectangles, the highest value, and the sentence."""

    rects: list[Rect]
    top: int
    words: str
    width: int = WIDTH
    height: int = HEIGHT


def columns(bars: Sequence[Bar], words: str) -> Chart:
    """Columns over time, oldest at the left."""
    top = max((bar.total for bar in bars), default=0)
    step = WIDTH / max(len(bars), 1)
    rects = []
    for place, bar in enumerate(bars):
        y = float(HEIGHT)
        for kind, many in bar.parts:
            if many:
                height = many / top * HEIGHT
                y -= height
                title = f"{bar.label}: {many} {kind}"
                rects.append(Rect(kind, _round(place * step), _round(y), _round(step - GAP), _round(height), title))
    return Chart(rects, top, words)


def _round(number: float) -> float:
    return round(number, 1)
