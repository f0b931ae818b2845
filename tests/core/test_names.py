"""Rules for job ids, lock names, election ids and candidate ids, and which text can be stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import names
from holdfast.core.errors import Forbidden, Invalid


@pytest.mark.parametrize(
    "job_id",
    [
        "a",
        "A-z_0.9:@",
        "deploy/web",
        "a/b/c",
        ".",
        "a/.",
        "...",
        "a" * 256,
        "__elections/x",
        "x/__election/y",
        "claim",
        "-",
        "src/app/[slug]/page.tsx",
        "docs/Über uns.md",
        "日本/é & ß (1) #2?.md",
        "a%2Fb",
        "a\\b",
        "*/a",
        "\u0661",
        "\U0001f600",
    ],
)
def test_valid_job_ids_are_accepted(job_id):
    assert names.job_id_problem(job_id) is None


@pytest.mark.parametrize(
    "job_id",
    [
        "",
        "a" * 257,
        "a\n",
        "a\u2028",
        "a\u202eb",
        "a\u200db",
        "\ud800",
        "src/*",
        "a//b",
        "/a",
        "a/",
        "..",
        "a/../b",
        "a/..",
        "a\0",
        "__election/abcdefgh",
    ],
)
def test_invalid_job_ids_are_refused(job_id):
    assert names.job_id_problem(job_id)


@given(st.text(max_size=8))
def test_a_job_id_is_storable_and_in_normal_form(text):
    if names.job_id_problem(names.normal_job_id(text)) is None:
        assert names.is_storable(text)
        assert names.is_job_id(names.normal_job_id(text))
        assert names.is_job_id(text) == (names.normal_job_id(text) == text)


@pytest.mark.parametrize(
    "name",
    [
        "a", "a-b_c.d", "a/b", "\u00fcber", "\u65e5\u672c", "\u0915\u093f", "\u24b6", "\u00bd", "\u0661", ".", "a/.",
        "a" * 64, "/".join(["a" * 63] * 4), "\u00e9" * 32,
    ],
)  # fmt: skip
def test_valid_lock_names_are_accepted(name):
    assert names.lock_name_problem(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "", "a" * 65, "\u00e9" * 33, "/".join(["a" * 63] * 4) + "/b", "/a", "a/", "a//b", "..", "a/../b", "a b", "a:b",
        "a@b", "a\n", "\U0001f600", "a\u200d", "a\ufe0f", "a\0", "\u0301",
    ],
)  # fmt: skip
def test_invalid_lock_names_are_refused(name):
    assert names.lock_name_problem(name)


@given(st.text(max_size=8))
def test_an_accepted_lock_name_is_within_its_byte_limits(text):
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return
    if names.lock_name_problem(text) is None:
        assert 1 <= size <= 256
        assert all(0 < len(part.encode()) <= 64 for part in text.split("/"))


def test_names_reserved_for_elections_are_refused_for_locks():
    names.check_reserved("__elections/x")
    with pytest.raises(Forbidden):
        names.check_reserved("__election/abcdefgh")


@pytest.mark.parametrize("election_id", ["abcdefgh", "A_-0" * 16])
def test_an_election_id_has_a_lease_name(election_id):
    assert names.election_lease_name(election_id) == f"__election/{election_id}"


@pytest.mark.parametrize(
    "election_id", ["", "abcdefg", "a" * 65, "abcdefg/", "abcdefg.", "abcdefgh\n", "\u00e4bcdefgh"]
)
def test_an_invalid_election_id_is_refused(election_id):
    with pytest.raises(Invalid):
        names.election_lease_name(election_id)


@pytest.mark.parametrize("candidate", ["a", "node-1.eu:7@x_", "a" * 64])
def test_valid_candidate_ids_are_accepted(candidate):
    names.check_candidate(candidate)


@pytest.mark.parametrize("candidate", ["", "a" * 65, "a b", "a/b", "a\n", "\u00e4"])
def test_invalid_candidate_ids_are_refused(candidate):
    with pytest.raises(Invalid):
        names.check_candidate(candidate)


@pytest.mark.parametrize(
    ("text", "fine"), [("", True), ("\u00e4\U0001f600\x01", True), ("a\0b", False), ("\ud800", False)]
)
def test_text_is_storable_without_nul_and_lone_surrogates(text, fine):
    assert names.is_storable(text) is fine
