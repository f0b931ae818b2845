"""Events: after any sequence of changes, folding a row's events yields the row."""

from __future__ import annotations

import hashlib
from functools import cache

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core.event import REMOVAL_VERBS, SNAPSHOT, BrokenLog, difference, fold, make_event, row_image, subject_of
from holdfast.core.lease import Lease
from holdfast.core.principal import Principal
from holdfast.store.rows import ROW_TYPES
from tests.support import CAUSE, START, a_lease

instants = st.integers(0, 2**53)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
documents = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2))


@cache
def columns(row_type):
    """Any change of any columns except the key and the version."""
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


def make_step_event(before, after, kind, now=START):
    """The event of a step."""
    return make_event(difference(before, after), after, kind, CAUSE, now, whole=kind == SNAPSHOT)


@pytest.mark.parametrize("row_type", ROW_TYPES)
@given(data=st.data())
def test_the_events_of_any_sequence_of_changes_fold_into_the_row(row_type, data):
    blank = row = row_type("default", "x")
    events = []
    for change in data.draw(st.lists(columns(row_type), min_size=1, max_size=6)):
        after = replace(row, version=row.version + 1, **change)
        events.append(make_step_event(row, after, "changed"))
        row = after
    assert fold(blank, events) == row_image(row)


@pytest.mark.parametrize("row_type", ROW_TYPES)
@given(data=st.data())
def test_a_log_truncated_before_a_snapshot_still_folds_into_the_row(row_type, data):
    """Changes, snapshots and removals in any order; the events before any snapshot or removal may be missing."""
    blank = row = row_type("default", "x")
    events, images, cuts = [], [], [0]
    for kind in data.draw(st.lists(st.sampled_from(["changed", "changed", SNAPSHOT, "forgotten"]), max_size=8)):
        row = row if images and images[-1] is not None else row_type("default", "x", version=row.version)
        change = data.draw(columns(row_type)) if kind == "changed" else {}
        after = replace(row, version=row.version + 1, **change)
        events.append(make_step_event(row, after, kind))
        images.append(None if kind in REMOVAL_VERBS else row_image(after))
        if kind != "changed":
            cuts.append(len(events) - 1)
        row = after
    cut = data.draw(st.sampled_from(cuts))
    assert fold(blank, events[cut:]) == (images[-1] if images else None)


def test_an_event_records_only_the_changed_columns():
    before = a_lease(version=1)
    after = replace(before, version=2, changed_at=START + 1, expires_at=START + 5, metadata='{"a":[1, 2]}')
    event = make_step_event(before, after, "renewed", START + 1)
    assert (event.account, event.subject, event.kind) == ("default", "lease:job", "lease.renewed")
    assert (event.version, event.at, event.actor, event.request_id) == (2, START + 1, CAUSE.actor, CAUSE.request_id)
    assert msgspec.json.decode(event.data) == {
        "version": 2, "changed_at": START + 1, "expires_at": START + 5, "metadata": {"a": [1, 2]},
    }  # fmt: skip


def test_a_checkpoint_is_recorded_by_hash_and_size_only():
    secret = '{"state":"w\u00f6rk"}'
    event = make_step_event(a_lease(), a_lease(checkpoint=secret, version=1), "renewed")
    assert "state" not in event.data
    shown = msgspec.json.decode(event.data)["checkpoint"]
    assert shown == {"sha256": hashlib.sha256(secret.encode()).hexdigest(), "size": len(secret.encode())}


def test_a_key_hash_is_not_recorded_unchanged():
    principal = Principal("default", "p")
    event = make_step_event(principal, replace(principal, version=1, key_hash="ab" * 32), "created")
    assert "ab" * 32 not in event.data


def test_a_row_without_events_has_no_image():
    assert fold(Lease("default", "job"), []) is None


@pytest.mark.parametrize("last_word", sorted(REMOVAL_VERBS))
def test_a_removed_row_has_no_image_and_a_new_one_continues_its_versions(last_word):
    was, gone, back = a_lease(version=1, note="old"), a_lease(version=2, note="old"), a_lease(version=3, owner="new")
    events = [
        make_step_event(Lease("default", "job"), was, "claimed"),
        make_step_event(was, gone, last_word),
    ]
    assert fold(Lease("default", "job"), events) is None
    events.append(make_step_event(Lease("default", "job", version=2), back, "claimed"))
    image = fold(Lease("default", "job"), events)
    assert image == row_image(back)
    assert image["note"] is None, "no value of the removed row comes back"


def test_a_snapshot_records_the_whole_row_with_secrets_by_hash_only():
    row = a_lease(version=4, checkpoint='{"secret":1}', metadata='{"a":1}')
    event = make_step_event(row, replace(row, version=5), SNAPSHOT, START + 9)
    whole = msgspec.json.decode(event.data)
    assert set(whole) == set(Lease.__struct_fields__)
    assert whole == row_image(replace(row, version=5))
    assert "secret" not in event.data
    assert (event.kind, event.at, whole["changed_at"]) == ("lease.snapshot", START + 9, 0)


@pytest.mark.parametrize("versions", [[1, 3], [1, 1], [3, 5], [2, 1]], ids=str)
def test_a_gap_in_the_versions_of_a_subject_raises(versions):
    events = [make_step_event(a_lease(), a_lease(version=version), SNAPSHOT) for version in versions]
    with pytest.raises(BrokenLog, match="does not follow"):
        fold(Lease("default", "job"), events)


def test_a_log_without_its_first_events_needs_a_snapshot():
    events = [make_step_event(a_lease(), a_lease(version=version), "renewed") for version in (2, 3)]
    with pytest.raises(BrokenLog, match="no snapshot"):
        fold(Lease("default", "job"), events)
    events.append(make_step_event(a_lease(version=3), a_lease(version=4), SNAPSHOT))
    assert fold(Lease("default", "job"), events) == row_image(a_lease(version=4))


def test_a_change_of_any_column_changes_the_row_image():
    row = a_lease(version=1)
    assert row_image(row) != row_image(replace(row, note=""))
    assert row_image(replace(row, checkpoint="1")) != row_image(replace(row, checkpoint="2"))


def test_a_subject_is_the_noun_and_the_id_of_its_row():
    nouns = [subject_of(row_type("default", "x")) for row_type in ROW_TYPES]
    assert nouns == [
        "session:x",
        "lease:x",
        "reservation:x",
        "task:x",
        "question:x",
        "queue:x",
        "principal:x",
        "account:x",
        "purchase:x",
        "webhook:x",
    ]
