"""Webhooks: the filter that applies to an event, limit groups, and takeovers."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from holdfast.core.event import Cause, Event, is_takeover, row_image
from holdfast.core.webhooks.webhook import Webhook, filter_at, filter_history, is_in_group

HOOK = Webhook("acct", "whk_1", version=4, url="https://example.com/", events='["c"]', subject="task:*")


def hook_event(seq, version, kind, **data):
    return Event(
        "acct", "webhook:whk_1", version, f"webhook.{kind}", 0, "", "", msgspec.json.encode(data).decode(), seq
    )


HISTORY = [
    hook_event(10, 1, "created", events=["a"]),
    hook_event(20, 2, "rotated", secret="****"),
    hook_event(30, 3, "updated", events=["b"], subject="task:*"),
    hook_event(40, 4, "updated", events=["c"]),
    hook_event(50, 5, "updated", events=["later than the row"]),
]


@pytest.mark.parametrize(
    ("seq", "events", "subject"),
    [(9, "a", None), (10, "a", None), (29, "a", None), (30, "b", "task:*"), (40, "c", "task:*"), (60, "c", "task:*")],
)
def test_an_event_is_matched_against_the_filter_that_applied_at_its_seq(seq, events, subject):
    then = filter_at(filter_history(HOOK, HISTORY), seq)
    assert then == replace(HOOK, events=f'["{events}"]', subject=subject)


def test_a_truncated_filter_history_begins_with_the_first_snapshot():
    before = replace(HOOK, version=3, events='["b"]')
    cut = [
        HISTORY[1],
        replace(hook_event(35, 3, "snapshot"), data=msgspec.json.encode(row_image(before)).decode()),
        HISTORY[3],
    ]
    filters = filter_history(HOOK, cut)
    assert [(since, hook.events) for since, hook in filters] == [(35, '["b"]'), (40, '["c"]')]
    assert filter_at(filters, 1).events == '["b"]'
    assert filter_history(HOOK, []) == ((0, HOOK),)


def test_a_limit_group_is_the_same_account_family_and_principal():
    hook = Webhook("acct", "whk_1", principal="alice", family="octostore")
    assert is_in_group(hook, ("acct", "octostore", "alice"))
    assert is_in_group(hook, ("acct", "octostore", ""))
    for other in [("acct", "octostore", "bob"), ("acct", "standard", ""), ("other", "octostore", "alice")]:
        assert not is_in_group(hook, other)


@pytest.mark.parametrize(
    ("change", "same"),
    [({}, True), ({"version": 9}, False), ({"kind": "lease.released"}, False), ({"request_id": "r2"}, False),
     ({"at": 6}, False)],
)  # fmt: skip
def test_a_takeover_is_an_expiry_and_the_next_claim_in_one_request(change, same):
    cause = Cause("bob", "r1")
    expired = Event("acct", "lease:a", 7, "lease.expired", 5, cause.actor, cause.request_id, "{}")
    assert is_takeover(expired, replace(replace(expired, version=8, kind="lease.claimed"), **change)) is same
