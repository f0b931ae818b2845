"""The report: medians, ratios within a round, targets, the page and the pictures."""

import math
from xml.dom import minidom

import pytest

from bench import document
from bench.figures import Figures
from bench.page import OTHERS, page, table
from bench.peers.__main__ import PEERS
from bench.peers.peer import LOCKS
from bench.requests import CONNECTIONS, VERBS
from bench.targets import AT_LEAST, AT_MOST, TARGETS, Target


def test_a_ratio_is_the_median_of_the_ratios_within_each_round():
    figures = Figures({"a": [1, 20, 3], "b": [1, 10, 1]})
    assert figures.median("a") == 3
    assert figures.ratio("a", "b") == 2
    assert math.isnan(figures.ratio("a", "missing"))
    assert math.isnan(figures.median("missing"))


@pytest.mark.parametrize(
    ("relation", "limit", "is_met"),
    [(AT_MOST, 2, True), (AT_MOST, 1.9, False), (AT_LEAST, 2, True), (AT_LEAST, 3, False)],
)
def test_a_target_compares_a_figure_with_another(relation, limit, is_met):
    target = Target("x", "a", relation, limit, "b")
    assert target.is_met(Figures({"a": [4], "b": [2]})) is is_met
    assert target.is_met(Figures({"a": [4]})) is None


def everything():
    """One value for every figure that the page or a target knows."""
    figures = Figures({"flush": [0.001]})
    for store in ("sqlite", "postgres"):
        for verb in ("echo.bare", "echo.holdfast", *VERBS, "single.claim", "single.heartbeat"):
            for count in CONNECTIONS:
                for prefix in ("", "older."):
                    for value in ("cpu", "rate", "cycles", "p50", "p99"):
                        figures.add(f"{prefix}{store}.{verb}.{count}.{value}", 0.5)
    known = {name for name, *_ in OTHERS} | {target.figure for target in TARGETS} | {target.base for target in TARGETS}
    for name in known - {"", *figures.rounds}:
        figures.add(name, 0.5)
    return figures


def test_the_page_shows_every_target_met_or_missed():
    shown = page(everything(), "56d5e9c", rounds=3, seconds=2)
    assert shown.count("met |") + shown.count("MISSED |") == len(TARGETS)
    assert "MISSED |" in shown
    assert "| claim, 128 " in shown
    assert "nan" not in shown


def test_the_page_of_a_run_without_an_older_commit_leaves_its_columns_out():
    shown = page(everything(), "", rounds=3, seconds=2)
    assert "CPU ratio" not in shown
    assert shown.count("\n\n") >= 3


def test_tables_are_aligned():
    assert table(["what", "n"], [["a", "1,000"]]).splitlines() == [
        "| what |     n |",
        "| ---- | ----: |",
        "| a    | 1,000 |",
    ]


def test_the_pictures_are_svg_with_one_bar_for_each_figure():
    names = [peer.name for peer in PEERS if peer.kind == LOCKS]
    rates = Figures({f"{name}.{count}.cycles": [100] for name in names for count in CONNECTIONS})
    pictures = (document.speed_picture(everything(), "56d5e9c"), document.peers_picture(rates, {LOCKS: names}))
    for picture, bars in zip(pictures, (2 * 16 + 2, 2 * len(names)), strict=True):
        shapes = minidom.parseString(picture).getElementsByTagName("rect")  # noqa: S318 - our own picture
        assert len(shapes) - 1 == bars  # one is the background
        assert "prefers-color-scheme: dark" in picture


def test_the_sections_of_the_document_are_added_in_order_and_replaced(tmp_path):
    path = tmp_path / "speed.md"
    path.write_text("# Speed\n\nText.\n")
    for name, figures in (("servers", "| 1 |"), ("bench", "| old |"), ("bench", "| new |")):
        document.replace_part(name, figures, path)
    text = path.read_text()
    assert text.startswith("# Speed\n\nText.\n\n<!-- bench: begin -->\n\n## Requests")
    assert text.endswith("| 1 |\n\n<!-- servers: end -->\n")
    assert text.index("| new |") < text.index("## Several servers") < text.index("| 1 |")
    assert "| old |" not in text
    assert text.count("## ") == 2


def test_every_section_of_the_document_has_figures():
    text = (document.FOLDER / "speed.md").read_text()
    for name in document.SECTIONS:
        part = document._part(text, name)
        assert not part or part.count("| ") > 10, name
