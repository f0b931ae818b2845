"""Bar charts as SVG, readable on light and on dark pages: the picture brings its own background for both."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import msgspec

WIDTH = 800
LABELS = 300
"""Width of the column with the labels."""
VALUES = 90
BAR, GAP, HEADING = 16, 8, 40

STYLE = """
  .page { fill: #ffffff } text { fill: #1f2328; font: 13px system-ui, sans-serif } .title { font-weight: 600 }
  .s0 { fill: #0f766e } .s1 { fill: #b45309 } .s2 { fill: #6d28d9 } .s3 { fill: #64748b }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } text { fill: #e6edf3 }
    .s0 { fill: #2dd4bf } .s1 { fill: #fbbf24 } .s2 { fill: #a78bfa } .s3 { fill: #94a3b8 }
  }
"""


class Bar(msgspec.Struct, frozen=True):
    """One bar. Bars of the same series have the same colour."""

    label: str
    value: float
    series: int = 0


class Panel(msgspec.Struct, frozen=True):
    """Bars with one scale."""

    title: str
    bars: Sequence[Bar]


def chart(title: str, panels: Sequence[Panel], legend: Sequence[str] = ()) -> str:
    """The picture. `legend` names the series in order."""
    parts, top = [], 16
    if len(legend) > 1:
        parts.append(_legend(legend, top))
        top += BAR + GAP
    for panel in panels:
        parts.append(f'<text class="title" x="16" y="{top + 20}">{escape(panel.title)}</text>')
        parts.extend(_bars(panel, top + HEADING - 8))
        top += HEADING + len(panel.bars) * (BAR + GAP)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + 8}" width="{WIDTH}" height="{top + 8}"'
        f' role="img" aria-label="{escape(title)}">\n<title>{escape(title)}</title>\n<style>{STYLE}</style>\n'
        f'<rect class="page" width="{WIDTH}" height="{top + 8}" rx="6"/>\n'
    )
    return head + "\n".join(parts) + "\n</svg>\n"


def _bars(panel: Panel, top: int) -> list[str]:
    largest = max((bar.value for bar in panel.bars), default=0) or 1
    room = WIDTH - LABELS - VALUES
    parts = []
    for index, bar in enumerate(panel.bars):
        y, width = top + index * (BAR + GAP), max(bar.value / largest * room, 1)
        parts += [
            f'<text x="{LABELS - 10}" y="{y + BAR - 3}" text-anchor="end">{escape(bar.label)}</text>',
            f'<rect class="s{bar.series}" x="{LABELS}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2"/>',
            f'<text x="{LABELS + width + 8:.1f}" y="{y + BAR - 3}">{bar.value:,.0f}</text>',
        ]
    return parts


def _legend(names: Sequence[str], top: int) -> str:
    parts = []
    for index, name in enumerate(names):
        x = LABELS + index * 180
        parts += [
            f'<rect class="s{index}" x="{x}" y="{top}" width="{BAR}" height="{BAR}" rx="2"/>',
            f'<text x="{x + BAR + 8}" y="{top + BAR - 3}">{escape(name)}</text>',
        ]
    return "\n".join(parts)
