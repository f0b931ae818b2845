"""Commands of webhooks on every store, their events, and the retention of deliveries."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from holdfast.core.errors import TooManyWebhooks, WebhookMissing
from holdfast.core.event import Cause, Event
from holdfast.core.plan import DAY
from holdfast.core.row import SECOND
from holdfast.core.webhooks.delivery import AttemptResult, Delivery, FinishedAttempt
from holdfast.core.webhooks.webhook import ACTIVE, DISABLED, PAUSED, Webhook, active_secrets
from holdfast.engine.cleanup import Cleanup
from holdfast.engine.expiry import ExpireLease
from holdfast.engine.retention import Retention
from holdfast.engine.verbs.webhooks import (
    CreateWebhook,
    DisableWebhook,
    RemoveWebhook,
    RotateWebhookSecret,
    UpdateWebhook,
)
from holdfast.store.contract.deliveries import Capacity, CursorMove
from holdfast.transport.webhooks.log_reader import LogReader
from tests.support import ACCOUNT, ALICE, BOB, CAUSE, START, acquire, check_log, every, make_store, run, transact

HOOK = (ACCOUNT, "whk_1")


def create(hook_id="whk_1", limit=2, *, own=False, **more):
    columns = {"principal": ALICE.id, "url": "https://example.com/a-secret-path", "secret": "whsec_one"}
    hook = Webhook(ACCOUNT, hook_id, **(columns | more))
    return CreateWebhook(account=ACCOUNT, cause=CAUSE, hook_id=hook_id, hook=hook, limit=limit, own=own)


def update(hook_id="whk_1", **more):
    return UpdateWebhook(account=ACCOUNT, cause=CAUSE, hook_id=hook_id, **more)


def rotate(secret, grace=60 * SECOND):
    return RotateWebhookSecret(account=ACCOUNT, cause=CAUSE, hook_id="whk_1", secret=secret, grace=grace)


def remove(hook_id="whk_1", **more):
    return RemoveWebhook(account=ACCOUNT, cause=CAUSE, hook_id=hook_id, **more)


def test_the_log_records_every_change_of_a_webhook_without_its_secrets(store, clock):
    assert run(store, create()).created_at == START
    assert run(store, update(state=PAUSED, reason="by request")).reason == "by request"
    assert run(store, update(state=ACTIVE)).reason is None
    run(store, update(url="https://example.com/another-path", events='["task.*"]', subject="task:*"))
    assert run(store, update(subject="")).subject is None
    assert run(store, update()).version == 5
    rotated = run(store, rotate("whsec_two"))
    assert active_secrets(rotated, START) == ["whsec_two", "whsec_one"]
    assert active_secrets(rotated, START + 60 * SECOND) == ["whsec_two"]
    run(store, update(state=DISABLED, reason="gone"))
    check_log(store)
    run(store, remove())
    check_log(store)
    kinds = "created paused resumed updated updated rotated disabled removed"
    events = every(store, Event)
    assert [event.kind for event in events] == [f"webhook.{kind}" for kind in kinds.split()]
    text = " ".join(event.data for event in events)
    assert '"secret":"****"' in text
    assert not [secret for secret in ("whsec_one", "whsec_two", "secret-path", "another-path") if secret in text]
    assert every(store, Webhook) == []


def test_a_receiver_that_is_gone_disables_only_the_url_that_answered(store):
    run(store, create(url="https://example.com/old"))
    gone = DisableWebhook(account=ACCOUNT, cause=CAUSE, hook_id="whk_1", url="https://example.com/old", reason="gone")
    run(store, update(url="https://example.com/new"))
    assert run(store, gone).state == ACTIVE
    run(store, update(url="https://example.com/old", state=PAUSED, reason="by request"))
    assert (run(store, gone).state, run(store, gone).reason) == (PAUSED, "by request")
    run(store, update(state=ACTIVE))
    assert (run(store, gone).state, run(store, gone).reason) == (DISABLED, "gone")
    check_log(store)


def test_an_absent_webhook_and_another_user_s_are_missing(store):
    run(store, create())
    for command in (update("whk_2", state=PAUSED), remove("whk_2"), remove(principal=BOB.id)):
        with pytest.raises(WebhookMissing):
            run(store, command)
    assert run(store, remove(principal=ALICE.id)).id == "whk_1"


def test_the_number_of_webhooks_is_limited_and_removed_ones_do_not_count(store):
    run(store, create())
    run(store, create("whk_2"))
    with pytest.raises(TooManyWebhooks):
        run(store, create("whk_3"))
    run(store, create("whk_4", family="octostore"))
    run(store, remove())
    run(store, create("whk_3"))


def test_a_batch_counts_the_webhooks_it_created_and_removed(store):
    outcomes = transact(store, create(), create("whk_2"), create("whk_3"), remove(), create("whk_4"), create("whk_5"))
    assert [type(each) is TooManyWebhooks for each in outcomes] == [False, False, True, False, False, True]
    mine = [create(f"own_{number}", own=True, principal=ALICE.id, family="octostore") for number in range(3)]
    theirs = create("own_4", own=True, principal=BOB.id, family="octostore")
    outcomes = transact(store, *mine, theirs)
    assert [type(each) is TooManyWebhooks for each in outcomes] == [False, False, True, False]
    assert len(every(store, Webhook)) == 5


def test_racing_servers_do_not_exceed_the_limit_of_webhooks(tmp_path, new_postgres_database):
    url = new_postgres_database()
    stores = [make_store("postgres", tmp_path, lambda: url) for _ in range(4)]

    def make(server):
        return transact(stores[server], create(f"whk_{server}a")), transact(stores[server], create(f"whk_{server}b"))

    with ThreadPoolExecutor(4) as racers:
        list(racers.map(make, range(4)))
    made = every(stores[0], Webhook)
    for store in stores:
        store.close()
    assert len(made) == 2


def test_a_takeover_in_one_request_is_delivered_as_a_claim_only(store, clock):
    """OctoStore reports the claim; a lease that expired before another claim is reported as expired."""
    alice, bob = (replace(each, id=str(uuid.uuid4())) for each in (ALICE, BOB))
    run(store, create(family="octostore", principal=alice.id))
    for name in ("taken-over", "swept"):
        run(store, acquire(name, by=alice))
    clock.advance(61)
    request = Cause("bob", "req_2")
    run(store, acquire("taken-over", by=bob, cause=request))
    run(store, ExpireLease(account=ACCOUNT, cause=Cause("sweep", ""), name="swept"))
    LogReader(store).read_on(store.deliveries.pending_work(10).behind)
    delivered = [(each.subject, each.kind) for each in store.deliveries.page(HOOK, None, 2**53, 10)]
    assert delivered == [("lease:swept", "lease.expired"), ("lease:swept", "lease.claimed"),
                    ("lease:taken-over", "lease.claimed")]  # fmt: skip


def test_delivered_messages_are_removed_after_a_day_and_dead_ones_after_thirty(store, clock):
    run(store, create())
    found = tuple(Delivery(*HOOK, seq, f"task:{seq}", "task.created", "{}", START) for seq in (1, 2, 3))
    store.deliveries.advance_cursors([CursorMove(HOOK, None, 3, found)])
    capacity = Capacity({}, per_hook=9, per_account=1_000, in_all=2, claim_ttl=SECOND)
    first, second = store.deliveries.save_outcomes_and_claim([], capacity)
    arrived, dead = AttemptResult(arrived=True, status=200), AttemptResult(arrived=False, status=500)
    store.deliveries.save_outcomes_and_claim(
        [FinishedAttempt(first, arrived), FinishedAttempt(second, dead)], replace(capacity, in_all=0)
    )
    seen = []
    for days in (0.9, 0.2, 28.8, 0.2):
        clock.advance(days * DAY / SECOND)
        cleanup = Cleanup(store, lambda commands: transact(store, *commands) if commands else [], Retention(0, 0, 0))
        cleanup.run()
        seen.append([each.seq for each in store.deliveries.page(HOOK, None, 10, 10)])
    assert seen == [[3, 2, 1], [3, 2], [3, 2], [3]]


def test_snapshots_of_a_truncated_log_contain_no_webhook_secret(store, clock):
    run(store, create())
    run(store, rotate("whsec_two"))
    clock.advance(100 * DAY / SECOND)
    Cleanup(store, lambda commands: transact(store, *commands) if commands else [], Retention(0, DAY, 0)).run()
    (snapshot,) = every(store, Event)
    assert (snapshot.kind, "whsec" in snapshot.data, '"old_secret":"****"' in snapshot.data) == (
        "webhook.snapshot", False, True,
    )  # fmt: skip
    check_log(store)


def cut_log(store):
    """Remove all events older than a day, as retention does."""
    settings = Retention(tasks=0, names=0, events=DAY)
    Cleanup(store, lambda commands: transact(store, *commands) if commands else [], settings).run()


def read_log(store):
    """One pass of the dispatcher over the log."""
    return LogReader(store).read_on(store.deliveries.pending_work(10).behind)


def test_events_removed_while_a_webhook_is_paused_are_recorded_as_a_dead_letter(store, clock):
    run(store, create())
    read_log(store)
    run(store, update(state=PAUSED))
    transact(store, acquire("lost-1"), acquire("lost-2"))
    clock.advance(2 * DAY / SECOND)
    cut_log(store)
    run(store, update(state=ACTIVE))
    read_log(store)
    (record,) = store.deliveries.page(HOOK, "dead", 2**53, 10)
    with store.read() as reader:
        floor, last = reader.log_bounds(ACCOUNT)
    assert (record.seq, record.kind, record.subject) == (floor, "log.removed", f"log:{floor}")
    assert record.error == f"retention removed the events 2 to {floor} before they could be sent"
    assert max(each.seq for each in store.deliveries.page(HOOK, "pending", 2**53, 10)) == last
    read_log(store)
    assert len(store.deliveries.page(HOOK, "dead", 2**53, 10)) == 1, "it is recorded once"
    assert store.deliveries.replay(HOOK, seq=None, after=None, limit=10) == [floor]


def test_events_that_a_webhook_has_read_are_not_recorded_as_removed(store, clock):
    """A cursor that found no delivery is saved rarely, so after a restart it may be older than what was read."""
    run(store, create(events='["task.never"]'))
    reader = LogReader(store)
    for number in range(3):
        run(store, acquire(f"seen-{number}"))
        reader.read_on(store.deliveries.pending_work(10).behind)
        clock.advance(2 * DAY / SECOND)
        cut_log(store)
        reader.read_on(store.deliveries.pending_work(10).behind)
    read_log(store)
    assert store.deliveries.counts(HOOK) == {}
