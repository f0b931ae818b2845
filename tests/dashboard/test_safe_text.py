"""Text for people: nothing hidden, nothing turned round, nothing that is more than text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup, escape

from holdfast.transport.dashboard.safe_text import safe_block, safe_json, safe_line, web_link
from tests.dashboard.payloads import HIDDEN, PAYLOADS


@pytest.mark.parametrize("text", PAYLOADS)
def test_no_payload_keeps_its_teeth(text):
    for made in (safe_line(text), safe_block(text), safe_json(text)):
        assert isinstance(made, Markup)
        bare = made.replace('<span class="hidden-character">', "").replace('<span class="cut">', "")
        assert "<" not in bare.replace("</span>", "")
        assert not HIDDEN & set(made)


@given(st.text(max_size=60))
def test_plain_words_stay_as_they_are_and_nothing_hidden_is_left(text):
    made = safe_line(text, 60)
    if text.isascii() and text.isprintable():
        assert made == escape(text)
    assert made.replace("…", "").isprintable()


def test_lines_are_kept_in_blocks_and_nowhere_else():
    assert safe_block("a\nb\tc") == "a\nb\tc"
    assert "\n" not in safe_line("a\nb")
    assert "\\u{a}" in safe_line("a\nb")


def test_long_words_are_cut_and_whole_ones_are_not():
    assert safe_line("x" * 200).striptags() == "x" * 120 + "…"
    assert safe_line("x" * 120) == "x" * 120
    assert safe_block("x" * 5000) == "x" * 5000


def test_other_scripts_can_be_read():
    for text in ("日本語", "Ελληνικά", "עברית", "naïve café", "e\u0301", "🙂", "x₁²"):
        assert safe_line(text) == text


def test_json_is_set_out_and_what_is_none_is_shown_as_it_is():
    assert safe_json('{"a":[1]}') == escape('{\n  "a": [\n    1\n  ]\n}')
    assert safe_json("{oops") == "{oops"
    assert safe_json(None) == ""


@pytest.mark.parametrize(
    ("text", "followed"),
    [
        ("https://a.example/x?y#z", True),
        ("http://a.example", True),
        ("HTTPS://a.example", True),
        ("javascript:alert(1)", False),
        ("java\nscript:alert(1)", False),
        ("https://user@a.example", False),
        ("https://", False),
        ("//a.example", False),
        ("ftp://a.example", False),
        ("https://a.example/\u202e", False),
        ("https://[", False),
        (" https://a.example", False),
        ("", False),
    ],
)
def test_only_plain_web_addresses_are_followed(text, followed):
    assert web_link(text) == (text if followed else None)
