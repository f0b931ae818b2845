"""The log folds back: whatever happens to a row, replaying its events gives the row."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core.event import fold, picture, subject_of, tell
from holdfast.core.lease import Lease
from holdfast.core.principal import Principal
from holdfast.core.session import Session
from tests.support import CAUSE, START, a_lease

instants = st.integers(0, 2**53)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
documents = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2))


def columns(row_type):
    """Any change of any columns but the keys and the version."""
    drawn = {}
    for field in msgspec.structs.fields(row_type):
        if field.name in {"account", "id", "version"}:
            continue
        kind = str(field.type)
        if field.name in row_type.json:
            values = documents.map(lambda value: msgspec.json.encode(value).decode())
        elif "int" in kind:
            values = instants
        else:
            values = st.booleans() if "bool" in kind else texts
        drawn[field.name] = st.none() | values if "None" in kind else values
    return st.fixed_dictionaries({}, optional=drawn)


@pytest.mark.parametrize("row_type", [Lease, Session, Principal])
@given(data=st.data())
def test_any_sequence_of_changes_folds_back_into_its_row(row_type, data):
    blank = row = row_type("default", "x")
    events = []
    for change in data.draw(st.lists(columns(row_type), max_size=6)):
        after = replace(row, version=row.version + 1, **change)
        events.append(tell(row, after, "changed", CAUSE))
        row = after
    assert fold(blank, events) == picture(row)


def test_an_event_tells_only_what_changed():
    before = a_lease(version=1)
    after = replace(before, version=2, changed_at=START + 1, expires_at=START + 5, metadata='{"a":[1, 2]}')
    event = tell(before, after, "renewed", CAUSE)
    assert (event.account, event.subject, event.kind) == ("default", "lease:job", "lease.renewed")
    assert (event.version, event.at, event.actor, event.request_id) == (2, START + 1, CAUSE.actor, CAUSE.request_id)
    assert msgspec.json.decode(event.data) == {
        "version": 2, "changed_at": START + 1, "expires_at": START + 5, "metadata": {"a": [1, 2]},
    }  # fmt: skip


def test_a_checkpoint_is_told_by_hash_and_size_alone():
    secret = '{"state":"w\u00f6rk"}'
    event = tell(a_lease(), a_lease(checkpoint=secret, version=1), "renewed", CAUSE)
    assert "state" not in event.data
    shown = msgspec.json.decode(event.data)["checkpoint"]
    assert shown == {"sha256": hashlib.sha256(secret.encode()).hexdigest(), "size": len(secret.encode())}


def test_the_hash_of_a_key_is_not_told_as_it_is():
    event = tell(Principal("default", "p"), Principal("default", "p", version=1, key_hash="ab" * 32), "created", CAUSE)
    assert "ab" * 32 not in event.data


@pytest.mark.parametrize("versions", [[2], [1, 3], [1, 1]], ids=str)
def test_a_gap_in_the_versions_of_a_subject_is_loud(versions):
    events = [tell(a_lease(), a_lease(version=version), "changed", CAUSE) for version in versions]
    with pytest.raises(AssertionError, match="does not follow"):
        fold(Lease("default", "job"), events)


def test_a_change_of_one_column_cannot_hide_from_the_picture():
    row = a_lease(version=1)
    assert picture(row) != picture(replace(row, note=""))
    assert picture(replace(row, checkpoint="1")) != picture(replace(row, checkpoint="2"))


def test_the_log_calls_rows_by_their_nouns():
    assert [subject_of(kind("default", "x")) for kind in (Lease, Session, Principal)] == [
        "lease:x", "session:x", "principal:x",
    ]  # fmt: skip
