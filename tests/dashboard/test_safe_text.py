"""Filters for text by agents: no hidden characters, no reversed text, no markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup, escape

from holdfast.transport.dashboard.safe_text import safe_block, safe_json, safe_label, safe_line, web_link
from tests.dashboard.payloads import HIDDEN, PAYLOADS


@pytest.mark.parametrize("text", PAYLOADS)
def test_no_hostile_payload_survives_the_filters(text):
    for made in (safe_line(text), safe_block(text), safe_json(text)):
        assert isinstance(made, Markup)
        bare = made.replace('<span class="hidden-character">', "").replace('<span class="cut">', "")
        assert "<" not in bare.replace("</span>", "")
        assert not HIDDEN & set(made)


@given(st.text(max_size=60))
def test_plain_text_is_unchanged_and_hidden_characters_are_shown(text):
    made = safe_line(text, 60)
    if text.isascii() and text.isprintable():
        assert made == escape(text)
    assert made.replace("…", "").isprintable()


def test_line_breaks_are_kept_in_blocks_only():
    assert safe_block("a\nb\tc") == "a\nb\tc"
    assert "\n" not in safe_line("a\nb")
    assert "\\u{a}" in safe_line("a\nb")


def test_text_is_cut_at_the_limit_only():
    assert safe_line("x" * 200).striptags() == "x" * 120 + "…"
    assert safe_line("x" * 120) == "x" * 120
    assert safe_block("x" * 5000) == "x" * 5000


def test_text_in_other_scripts_is_unchanged():
    for text in ("日本語", "Ελληνικά", "עברית", "naïve café", "e\u0301", "🙂", "x₁²"):
        assert safe_line(text) == text


def test_json_is_indented_and_other_text_is_unchanged():
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
def test_only_plain_web_addresses_are_linked(text, followed):
    assert web_link(text) == (text if followed else None)


@pytest.mark.parametrize("text", PAYLOADS)
def test_labels_have_no_markup_and_no_hidden_characters(text):
    made = safe_label(text)
    assert not isinstance(made, Markup), "the template escapes it"
    assert "hidden-character" not in made
    assert not HIDDEN & set(made)
