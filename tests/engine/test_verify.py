"""Verification: a valid store has no differences, and every tampering is found."""

from __future__ import annotations

import psycopg
import pytest

from holdfast.core.plan import DAY
from holdfast.core.row import SECOND
from holdfast.engine import verify as verifying
from holdfast.engine.cleanup import Cleanup
from holdfast.engine.retention import Retention
from holdfast.engine.verify import verify
from tests.postgres import AS_SERVER
from tests.support import ACCOUNT, ALICE, claim, put, run, transact
from tests.task_commands import begin, cancel, complete, create, fail, take


@pytest.fixture
def filled_store(store):
    """A store with rows of every kind."""
    transact(store, *(create(f"t{number}") for number in range(5)), create("abroad", account="other"))
    transact(store, take("work", limit=3), claim("job", "l1"), begin())
    transact(store, complete("t0"), fail("t1", permanent=True), cancel("t4"))
    put(store, ALICE)
    return store


def say(store, *statements):
    for statement in statements:
        if store.name == "sqlite":
            store._writer.execute(statement)
        else:
            with psycopg.connect(store._url, options=AS_SERVER) as connection:
                connection.execute(statement)


@pytest.mark.parametrize("page", [1, 2, 1_000])
def test_a_valid_store_has_no_differences_for_any_page_size(filled_store, monkeypatch, page):
    monkeypatch.setattr(verifying, "PAGE", page)
    reported = []
    report = verify(filled_store, lambda what, count: reported.append((what, count)))
    assert report.differences == []
    assert (report.accounts, report.rows, report.events) == (2, 9, 15)
    assert reported[-1][0] == "events"


def test_a_store_with_a_truncated_log_is_valid(filled_store, clock):
    clock.advance(31 * DAY // SECOND)
    cleanup = Cleanup(
        filled_store, lambda commands: transact(filled_store, *commands) if commands else [],
        Retention(tasks=30 * DAY, events=30 * DAY, names=0),
    )  # fmt: skip
    cleanup.run()
    assert verify(filled_store).differences == []
    run(filled_store, create("again"))
    assert verify(filled_store).differences == []


@pytest.mark.parametrize(
    ("statements", "reported"),
    [
        (["UPDATE tasks SET payload = '{\"a\":2}' WHERE id = 't3'"], ["task:t3: payload differ"]),
        (["UPDATE leases SET owner = 'thief', token = 99"], ["lease:job: owner, token differ"]),
        (["DELETE FROM tasks WHERE id = 't3'"], ["task:t3: by the log it exists", "miscounted: work/pending"]),
        (["UPDATE task_counts SET total = total + 1 WHERE account = 'default'"], ["miscounted: work/pending"]),
        (["UPDATE event_counters SET floor = 3", "DELETE FROM events WHERE seq = 2"], ["default"]),
        (["UPDATE event_counters SET seq = seq + 1 WHERE account = 'other'"], ["other: event 2 is missing"]),
    ],
    ids=["a column", "an owner", "a row", "a count", "an event", "the counter"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_every_tampering_is_found(opened, clock, kind, statements, reported):
    store = opened(kind, clock)
    transact(store, *(create(f"t{number}") for number in range(5)), create("abroad", account="other"))
    run(store, claim("job", "l1"))
    assert verify(store).differences == []
    say(store, *statements)
    differences = verify(store).differences
    for words in reported:
        assert any(words in difference for difference in differences), differences
    assert all(ACCOUNT in difference or "other" in difference for difference in differences)
