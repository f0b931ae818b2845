"""The dispatcher with an engine: a failing receiver, event or write affects nothing else."""

import json
import threading
import time

import pytest
from msgspec.structs import replace

from holdfast.core.event import Event
from holdfast.core.plan import DAY
from holdfast.core.webhooks.webhook import Webhook
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.webhooks import UpdateWebhook
from holdfast.settings import Settings
from holdfast.transport.webhooks import log_reader
from holdfast.transport.webhooks.dispatcher import HOOKS_PER_PASS, IN_ALL, PER_HOOK, dispatching
from holdfast.transport.webhooks.log_reader import SAVE_EVERY, LogReader
from holdfast.transport.webhooks.messages import message_for
from tests.support import (
    ACCOUNT,
    CAUSE,
    START,
    a_lock,
    claim,
    every,
    heartbeat,
    make_store,
    put,
    stop_in_time,
    wait_until,
)

FAR = START + 100 * 365 * DAY
"""Later than the clock of any machine, so that no sweep ends it."""
SETTINGS = Settings(webhook_allow_private_networks=True, webhook_retries=(0.1,), webhook_timeout=2)


@pytest.fixture
def engine(tmp_path):
    engine = Engine(make_store("sqlite", tmp_path, str))
    engine.start()
    yield engine
    stop_in_time(engine)
    engine.store.close()


def make_hook(url, hook_id="whk_1", **more):
    return Webhook(ACCOUNT, hook_id, url=url, created_at=START, **more)


def test_a_hanging_receiver_uses_only_its_own_attempts_and_delays_no_other(engine, receiver, path):
    slow, quick = f"{path}/slow", f"{path}/quick"
    free = threading.Event()
    before = receiver.most_inside
    put(engine.store, make_hook(receiver.url(slow, lambda _: free.wait(25))), kind="created")
    put(engine.store, make_hook(receiver.url(quick), "whk_2"), kind="created")
    try:
        with dispatching(engine, replace(SETTINGS, webhook_timeout=30)):
            began = time.monotonic()
            for number in range(20):
                engine.call(claim(f"job-{number}", f"lease-{number}"))
            receiver.await_messages(quick, 20)
            assert time.monotonic() - began < 15, "nobody waited for the one that hangs"
            assert len(receiver.on(slow)) <= PER_HOOK
            assert receiver.most_inside <= max(before, IN_ALL)
    finally:
        free.set()


def test_events_written_without_a_dispatcher_are_sent_by_a_later_one(engine, receiver, path):
    put(engine.store, make_hook(receiver.url(path), events='["lease.*"]'), kind="created")
    for number in range(3):
        engine.call(claim(f"job-{number}", f"lease-{number}"))
    assert receiver.on(path) == []
    assert engine.store.deliveries.counts((ACCOUNT, "whk_1")) == {}
    with dispatching(engine, SETTINGS):
        receiver.await_messages(path, 3)
        assert engine.change_signal.size() == 0, "nobody waits who is not a caller"


def test_deliveries_write_no_events(engine, receiver, path):
    put(engine.store, make_hook(receiver.url(path, 500, 204)), kind="created")
    engine.call(claim())
    with dispatching(engine, SETTINGS):
        receiver.await_messages(path, 2)
        wait_until(lambda: engine.store.deliveries.counts((ACCOUNT, "whk_1")) == {"delivered": 1})
    assert [event.kind for event in every(engine.store, Event)] == ["webhook.created", "lease.claimed"]


def test_an_event_that_cannot_be_rendered_does_not_block_others(engine, receiver, path, caplog, monkeypatch):
    def fail_for_one(hook, event, *rest):
        if event.subject == "lease:bad-lock":
            raise ValueError("it cannot be rendered")
        return message_for(hook, event, *rest)

    monkeypatch.setattr(log_reader, "message_for", fail_for_one)
    webhook = make_hook(receiver.url(path), family="octostore", principal="id-alice")
    put(engine.store, webhook, kind="created")
    for name in ("bad-lock", "good-lock"):
        lock = a_lock(name, ends=FAR, holder="550e8400-e29b-41d4-a716-446655440000", principal="id-alice")
        put(engine.store, lock, kind="claimed")
    with dispatching(engine, SETTINGS):
        (message,) = receiver.await_messages(path, 1)
    assert json.loads(message.raw)["lock"] == "good-lock"
    assert "is skipped" in caplog.text


def test_a_page_that_another_server_read_first_is_not_skipped(engine):
    """Two readers have the same position; the slower one must not skip deliveries that it did not save."""
    store = engine.store
    put(store, make_hook("http://127.0.0.1:9/", events='["lease.*"]'), kind="created")
    engine.call(claim("job", "l1"))
    ours, theirs = LogReader(store), LogReader(store)
    stale = store.deliveries.pending_work(10).behind
    theirs.read_on(stale)
    engine.call(heartbeat("job", "l1"))
    fresh = [type(each)(each.hook, each.cursor, each.floor, each.last + 1) for each in stale]
    ours.read_on(fresh)
    ours.read_on(store.deliveries.pending_work(10).behind)
    kinds = [each.kind for each in store.deliveries.page((ACCOUNT, "whk_1"), None, 2**53, 10)]
    assert kinds == ["lease.renewed", "lease.claimed"]


def test_a_page_whose_deliveries_could_not_be_saved_is_read_again(engine):
    """SQLite reports for a moment that the disk is full."""
    store = engine.store
    put(store, make_hook("http://127.0.0.1:9/", events='["lease.*"]'), kind="created")
    engine.call(claim("job", "l1"))
    reader = LogReader(store)
    refuse = "CREATE TRIGGER full BEFORE INSERT ON deliveries BEGIN SELECT raise(ABORT, 'disk is full'); END"
    with store.write() as (execute, _):
        execute(refuse)
    with pytest.raises(Exception, match="disk is full"):
        reader.read_on(store.deliveries.pending_work(10).behind)
    with store.write() as (execute, _):
        execute("DROP TRIGGER full")
    reader.read_on(store.deliveries.pending_work(10).behind)
    assert stored_kinds(store) == ["lease.claimed"]


def stored_kinds(store, hook_id="whk_1"):
    return [each.kind for each in store.deliveries.page((ACCOUNT, hook_id), None, 2**53, 10)]


def test_an_event_is_selected_by_the_filter_at_its_time(engine):
    """By a reader at that time, by a later one, and by one that read just before the filter changed."""
    store = engine.store
    for number in (1, 2, 3):
        put(store, make_hook("http://127.0.0.1:9/", f"whk_{number}", events='["task.*"]'), kind="created")
    present = LogReader(store)
    of = {each.hook.id: each for each in store.deliveries.pending_work(10).behind}
    present.read_on([of["whk_1"]])
    engine.call(claim("job", "l1"))
    of = {each.hook.id: each for each in store.deliveries.pending_work(10).behind}
    present.read_on([of["whk_1"]])
    for number in (1, 2, 3):
        change = {"account": ACCOUNT, "cause": CAUSE, "hook_id": f"whk_{number}"}
        engine.call(UpdateWebhook(events='["lease.renewed", "lease.claimed"]', **change))
    engine.call(heartbeat("job", "l1"))
    LogReader(store).read_on([of["whk_3"]])
    now = {each.hook.id: each for each in store.deliveries.pending_work(10).behind}
    present.read_on([now["whk_1"]])
    LogReader(store).read_on([now["whk_2"]])
    LogReader(store).read_on([now["whk_3"]])
    assert [stored_kinds(store, f"whk_{number}") for number in (1, 2, 3)] == [["lease.renewed"]] * 3


def test_every_webhook_is_read_however_many_are_behind(engine, receiver, path):
    """Webhooks without matches stay behind; they must not block the ones after them."""
    quiet = [
        make_hook("http://127.0.0.1:9/", f"whk_{number:03}", events='["task.*"]') for number in range(HOOKS_PER_PASS)
    ]
    put(engine.store, *quiet, make_hook(receiver.url(path), "whk_z", events='["lease.*"]'), kind="created")
    with dispatching(engine, SETTINGS):
        for number in range(3):
            engine.call(claim(f"job-{number}", f"lease-{number}"))
            receiver.await_messages(path, number + 1)


def test_deleted_webhooks_are_dropped_from_memory(engine):
    store = engine.store
    put(store, make_hook("http://127.0.0.1:9/"), make_hook("http://127.0.0.1:9/", "whk_2"), kind="created")
    reader = LogReader(store)
    reader.read_on(store.deliveries.pending_work(10).behind)
    reader.forget_all_but([(ACCOUNT, "whk_2")])
    assert set(reader._positions) == {(ACCOUNT, "whk_2")}


def test_a_cursor_without_deliveries_is_saved_rarely(engine):
    store = engine.store
    put(store, make_hook("http://127.0.0.1:9/", events='["task.*"]'), kind="created")
    reader = LogReader(store)
    reader.read_on(store.deliveries.pending_work(10).behind)
    engine.call(claim("job", "l1"))
    reader.read_on(store.deliveries.pending_work(10).behind)
    (behind,) = store.deliveries.pending_work(10).behind
    assert (behind.cursor, behind.last) == (1, 2)
    for _ in range(SAVE_EVERY):
        engine.submit(heartbeat("job", "l1"), _NoReplies())
    engine.call(heartbeat("job", "l1"))
    while reader.read_on(store.deliveries.pending_work(10).behind).more:
        pass
    behind = store.deliveries.pending_work(10).behind
    assert behind == [] or behind[0].cursor >= SAVE_EVERY


class _NoReplies:
    def deliver(self, replies):
        pass


def test_every_attempt_sends_the_same_bytes(engine, receiver, path):
    put(engine.store, make_hook(receiver.url(path, 500, 204)), kind="created")
    engine.call(claim())
    with dispatching(engine, SETTINGS):
        first, second = receiver.await_messages(path, 2)
    assert (first.raw, first.id) == (second.raw, second.id)
