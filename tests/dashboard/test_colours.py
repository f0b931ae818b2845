"""Contrast of the dashboard's colours in both themes, as WCAG 2.2 AA asks for text."""

import itertools
import re
from importlib import resources

import pytest

AA = 4.5


def colours(theme):
    css = (resources.files("holdfast.transport.dashboard") / "static" / "style.css").read_text()
    found = re.findall(r"--([a-z-]+): light-dark\((#\w+), (#\w+)\);", css)
    return {name: light if theme == "light" else dark for name, light, dark in found}


def luminance(colour):
    digits = colour.removeprefix("#")
    digits = "".join(digit * 2 for digit in digits) if len(digits) == 3 else digits
    shares = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_on_every_background(theme):
    found = colours(theme)
    pairs = [*itertools.product(("text", "muted", "accent", "warn", "bad"), ("background", "panel", "tint"))]
    ratios = {pair: contrast(found[pair[0]], found[pair[1]]) for pair in [*pairs, ("on-accent", "accent")]}
    assert {pair: round(ratio, 2) for pair, ratio in ratios.items() if ratio < AA} == {}


def test_no_text_is_made_paler():
    """Opacity is for shapes of charts and legends only: it would lower the contrast of text."""
    folder = resources.files("holdfast.transport.dashboard") / "static"
    rules = re.findall(
        r"([^{}]+)\{[^{}]*opacity:", "".join((folder / name).read_text() for name in ("style.css", "detail.css"))
    )
    assert all(re.search(r"chart|timeline-row|legend-key", rule) for rule in rules), rules


def test_scroll_regions_can_be_focused():
    templates = resources.files("holdfast.transport.dashboard") / "templates"
    for template in templates.iterdir():
        assert not re.findall(r"<pre(?![^>]*tabindex=\"0\")", template.read_text()), template.name
