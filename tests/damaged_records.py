"""Damaged records: what another program or a failing disk may leave in each table, written past every rule of it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from holdfast.core.browser_session import SESSION, BrowserSession
from holdfast.core.principal import Principal
from holdfast.core.question import Question
from holdfast.core.webhooks.delivery import Delivery
from holdfast.core.webhooks.webhook import Webhook
from holdfast.engine.verbs.webhooks import CreateWebhook
from holdfast.store.contract.deliveries import CursorMove
from tests.reservation_commands import reserve
from tests.support import ACCOUNT, ALICE, CAUSE, SECOND, START, claim, once, put, transact
from tests.task_commands import begin, create, take_this

TTL = 60 * SECOND
TABLES = ("sessions", "leases", "reservations", "tasks", "questions", "principals", "webhooks", "events", "answers",
          "deliveries", "badges", "task_counts", "usage", "budgets", "key_uses")  # fmt: skip
SESSIONS = {"good": str(uuid.UUID(int=1)), "bad": str(uuid.UUID(int=2))}
RESERVATIONS = {"good": str(uuid.UUID(int=3)), "bad": str(uuid.UUID(int=4))}
KEPT_TRIGGER = "only_holdfast_writes"
NOT_UTF8 = "CAST(x'ff41' AS TEXT)"
BLOB = "x'ff41'"
"""A text column of SQLite takes both of these; PostgreSQL refuses them, whoever writes them."""


class Case(NamedTuple):
    """One damaged record: its table, its key, and the assignment that damages it."""

    table: str
    key: dict[str, Any]
    assignment: str
    damage: str
    """Part of what `verify` must say about it."""

    @property
    def where(self) -> str:
        return " AND ".join(f"{column} = '{value}'" for column, value in self.key.items())

    def __str__(self) -> str:
        return f"{self.table}: {self.assignment}"


def _case(table: str, assignment: str, damage: str, **key: Any) -> Case:
    return Case(table, {"account": ACCOUNT} | (key or {"id": f"bad-{table}"}), assignment, damage)


CASES = (
    _case("leases", "metadata = '{\"a\":'", "metadata is not the JSON"),
    _case("leases", "ended = '[1]'", "ended is not the JSON"),
    _case("leases", "acl = '{}'", "acl is not the JSON"),
    _case("leases", "offer = '{}'", "offer is not the JSON"),
    _case(
        "leases",
        'proof = NULL, expires_at = NULL, offer = \'{"proof":"x","until":1,"lasts":1}\'',
        "an offer but no lease",
    ),
    _case("leases", "proof = NULL", "a deadline but no lease hash"),
    _case("leases", "expires_at = NULL", "a lease hash but no deadline"),
    _case("leases", "expires_at = -5", "expires_at: expected int >= 0"),
    _case("leases", "claimed_at = 9000000000000000000", "claimed_at: expected int <="),
    _case("leases", "kind = 'castle'", "no kind of lease"),
    _case("leases", "version = NULL", "version: expected int, got null"),
    _case("leases", f"owner = {NOT_UTF8}", "owner is not valid UTF-8"),
    _case("leases", f"owner = {BLOB}", "owner is not valid UTF-8"),
    _case("reservations", "paths = '[1]'", "paths is not the JSON", id=RESERVATIONS["bad"]),
    _case("reservations", "paths = '[\"a//b\"]'", "its pattern 'a//b' is none", id=RESERVATIONS["bad"]),
    _case("reservations", "metadata = '{'", "metadata is not the JSON", id=RESERVATIONS["bad"]),
    _case("reservations", "mode = 'open'", "'open', which does not exist", id=RESERVATIONS["bad"]),
    _case("reservations", "proof = NULL", "a deadline but no lease hash", id=RESERVATIONS["bad"]),
    _case("reservations", "expires_at = NULL", "a lease hash but no deadline", id=RESERVATIONS["bad"]),
    _case("reservations", "ended_at = 5", "it has ended but is held or waits", id=RESERVATIONS["bad"]),
    _case("reservations", "arrived_at = NULL", "arrived_at: expected int, got null", id=RESERVATIONS["bad"]),
    _case("reservations", f"owner = {NOT_UTF8}", "owner is not valid UTF-8", id=RESERVATIONS["bad"]),
    _case("tasks", "state = 'asleep'", "'asleep', which does not exist"),
    _case("tasks", "depends_on = '[1]'", "depends_on is not the JSON"),
    _case("tasks", "depends_on = '[\"a\"]', unmet_flags = '1'", "its flags of unmet dependencies"),
    _case("tasks", "payload = '{'", "payload is not the JSON"),
    _case("tasks", "state = 'completed'", "it is completed but has a lease"),
    _case("tasks", "proof = NULL", "claimed but has no lease hash"),
    _case("tasks", "backoff = '7'", "backoff is not the JSON"),
    _case("tasks", "attempt = NULL", "attempt: expected int, got null"),
    _case("tasks", f"note = {NOT_UTF8}", "note is not valid UTF-8"),
    _case("tasks", f"payload = {BLOB}", "payload is not valid UTF-8"),
    _case("questions", "state = 'asleep'", "'asleep', which does not exist"),
    _case("questions", "kind = 'riddle'", "'riddle', which does not exist"),
    _case("questions", "answer = 'yes'", "it is open but has an answer"),
    _case("questions", "choices = '[1]'", "choices is not the JSON"),
    _case("questions", "text = NULL", "text: expected str, got null"),
    _case("sessions", "ended_how = 'expired'", "only one of ended_at and ended_how", id=SESSIONS["bad"]),
    _case("sessions", "expires_at = NULL", "expires_at: expected int, got null", id=SESSIONS["bad"]),
    _case("sessions", "opened_at = -1", "opened_at: expected int >= 0", id=SESSIONS["bad"]),
    _case("sessions", "context = 'nope'", "context is not the JSON", id=SESSIONS["bad"]),
    _case("principals", "scopes = NULL", "scopes: expected str, got null"),
    _case("principals", "created_at = -1", "created_at: expected int >= 0"),
    _case("webhooks", "events = 'nope'", "events is not the JSON"),
    _case("webhooks", "state = 'asleep'", "'asleep', which does not exist"),
    _case("webhooks", "url = NULL", "url: expected str, got null"),
    _case("events", "data = '{'", "data is not the JSON", subject="lease:bad-leases", version=1),
    _case("events", "kind = 'teleported'", "does not fit its subject", subject="lease:bad-leases", version=1),
    _case("events", "at = -1", "at: expected int >= 0", subject="lease:bad-leases", version=1),
    _case("answers", "status = NULL", "status: expected int, got null", key="bad-key"),
    _case("deliveries", "state = 'lost'", "'lost', which does not exist", hook="good-webhooks", subject="bad"),
    _case("deliveries", "body = '{'", "body is not the JSON", hook="good-webhooks", subject="bad"),
    _case("deliveries", "attempts = NULL", "attempts: expected int, got null", hook="good-webhooks", subject="bad"),
)


COUNTERS = (
    "UPDATE task_counts SET total = NULL WHERE type = 'odd'",
    "UPDATE task_counts SET state = 'asleep', total = 7 WHERE type = 'odd'",
    "UPDATE usage SET created = NULL, cycle = NULL",
    "UPDATE usage SET created = -5",
    "UPDATE budgets SET used = NULL, started_at = NULL",
    "UPDATE key_uses SET used_at = NULL",
    "UPDATE badges SET kind = 'castle' WHERE id = 'odd'",
)
"""Damage to what is counted beside the rows. It may give wrong numbers, and stops nothing."""


def fill(store: Any) -> None:
    """A good and a bad record of each kind: `good-leases`, `bad-leases` and so on; what is held ends after `TTL`."""
    for name, session in SESSIONS.items():
        transact(store, begin(session, seed=session, ttl=TTL), create(f"{name}-tasks", lease_duration=TTL))
        transact(
            store,
            claim(f"{name}-leases", f"l-{name}", ttl=TTL, metadata='{"a":1}', once=once(f"{name}-key")),
            take_this(f"{name}-tasks", seed=name),
            reserve(RESERVATIONS[name], f"{name}/", space="acme/shop", ttl=TTL, metadata='{"a":1}'),
            CreateWebhook(
                account=ACCOUNT,
                cause=CAUSE,
                hook_id=f"{name}-webhooks",
                hook=Webhook(ACCOUNT, f"{name}-webhooks", principal=ALICE.id, url="https://example.com/x", secret="s"),
                limit=10,
                own=False,
            ),
        )
        put(store, Principal(ACCOUNT, f"{name}-principals", name=name, key_hash=f"hash-{name}"))
        put(store, Question(ACCOUNT, f"{name}-questions", task=f"{name}-tasks", text="Which one?"))
    store.save_key_uses({(ACCOUNT, "bad-principals"): START})
    store.save_browser_session(BrowserSession("odd", SESSION, ACCOUNT, ALICE.id, "hash", START, START))
    write(store, f"INSERT INTO usage (account, cycle, created) VALUES ('{ACCOUNT}', 0, 1)")
    write(store, f"INSERT INTO task_counts (account, type, state, total) VALUES ('{ACCOUNT}', 'odd', 'pending', 0)")
    write(store, f"INSERT INTO budgets (subject, class, started_at, used) VALUES ('{ACCOUNT}', 'read', 0, 1)")
    hook = (ACCOUNT, "good-webhooks")
    deliveries = tuple(
        Delivery(*hook, seq, name, "webhook.test", "{}", 0) for seq, name in enumerate(("good", "bad"), 1)
    )
    store.deliveries.advance_cursors([CursorMove(hook, None, 2, deliveries)])


@contextmanager
def without_rules(store: Any) -> Iterator[None]:
    """Inside, the tables take what their rules refuse: wrong types, NULL, unknown states, changed events."""
    if store.name == "sqlite":
        with _lax_file(store):
            yield
        return
    with store.read() as reader:
        checks = "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype = 'c' AND conrelid <> 0"
        for table, name in reader.execute(checks).fetchall():
            if table in TABLES:
                reader.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        columns = (
            "SELECT columns.table_name, columns.column_name FROM information_schema.columns AS columns"
            " LEFT JOIN information_schema.key_column_usage AS keys USING (table_schema, table_name, column_name)"
            " WHERE table_schema = current_schema() AND is_nullable = 'NO' AND keys.column_name IS NULL"
        )
        for table, column in reader.execute(columns).fetchall():
            if table in TABLES:
                reader.execute(f"ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL")
    yield


@contextmanager
def _lax_file(store: Any) -> Iterator[None]:
    """The same for SQLite, whose schema is text: it is rewritten, and put back at the end."""
    with store._writing:
        writer = store._writer
        schema = dict(writer.execute("SELECT name, sql FROM sqlite_schema WHERE type IN ('table', 'trigger')"))
    lax = {}
    for name, text in schema.items():
        if name in TABLES:
            lax[name] = text.replace("STRICT, WITHOUT", "WITHOUT").removesuffix(" STRICT").replace(" NOT NULL", "")
    triggers = [name for name, text in schema.items() if text.startswith("CREATE TRIGGER") and name != KEPT_TRIGGER]
    _rewrite(store, lax, [f"DROP TRIGGER {name}" for name in triggers])
    yield
    _rewrite(store, {name: schema[name] for name in lax}, [schema[name] for name in triggers])


def _rewrite(store: Any, schema: dict[str, str], statements: list[str]) -> None:
    with store._writing:
        writer = store._writer
        for statement in statements:
            writer.execute(statement)
        writer.pragma("writable_schema", 1)
        for name, text in schema.items():
            writer.execute("UPDATE sqlite_schema SET sql = ? WHERE type = 'table' AND name = ?", (text, name))
        writer.pragma("schema_version", writer.pragma("schema_version") + 1)
        writer.pragma("writable_schema", 0)
        writer.pragma("ignore_check_constraints", 1)


def write(store: Any, statement: str, *arguments: Any) -> list[tuple[Any, ...]]:
    """Execute a statement past the triggers of the database."""
    if store.name == "sqlite":
        with store.write() as (execute, _):
            return execute(statement, *arguments)
    with store.read() as reader, reader.transaction():
        reader.execute("SET LOCAL session_replication_role = replica")
        return reader.fetch(statement, *arguments)


@contextmanager
def damaged(store: Any, case: Case) -> Iterator[None]:
    """The record is damaged inside, and as before outside."""
    columns = re.findall(r"(?:^|, )(\w+) = ", case.assignment)
    (before,) = write(store, f"SELECT {', '.join(columns)} FROM {case.table} WHERE {case.where}")
    assert len(write(store, f"UPDATE {case.table} SET {case.assignment} WHERE {case.where} RETURNING 1")) == 1
    try:
        yield
    finally:
        restored = ", ".join(f"{column} = ?" for column in columns)
        write(store, f"UPDATE {case.table} SET {restored} WHERE {case.where}", *before)


def cases_for(store: Any) -> list[Case]:
    return [case for case in CASES if store.name == "sqlite" or not case.assignment.endswith((NOT_UTF8, BLOB))]
