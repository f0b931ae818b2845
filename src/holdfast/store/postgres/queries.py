"""The statements that only PostgreSQL understands; `sqlite/queries.py` has the same names in the same order.

The records of a batch are sent as one JSON document for each statement (`parameters.py`), and the rows found come
back as one (`results.py`). An array for each column would cost PostgreSQL as much for many rows, and twice as much
for one. Loading and saving go straight over libpq (`pipeline.py`) with the placeholders $1, $2. Reads and
housekeeping go through psycopg: they are written with `?`, which `reader.py` replaces.
"""

from __future__ import annotations

from functools import cache

from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.store.changes import Answer
from holdfast.store.rows import ROW_TYPES
from holdfast.store.sql.column_groups import ColumnNames, sql_types
from holdfast.store.sql.page_queries import columns
from holdfast.store.sql.queries import held_tasks


def keys(parameter: int) -> str:
    """The pairs in a JSON document: account, and id, session or unique key."""
    return f"SELECT value ->> 0, value ->> 1 FROM json_array_elements(${parameter}::json)"


_KEYS = keys(1)


def found_rows(record: type[Row | Answer], *more: str) -> str:
    """The records of `found` as one JSON document, the clock read after the last of them was locked, and more."""
    rows = f"coalesce(json_agg(json_build_array({columns(record)})), '[]')::text"
    return f"SELECT {', '.join((rows, 'holdfast_now()', *more))} FROM found"


def and_now(record: type[Row | Answer], select: str) -> str:
    """The records that a query finds, as one JSON document, and the clock."""
    return f"WITH found AS ({select}) {found_rows(record)}"


# -- loading -----------------------------------------------------------------------------------------------------

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
BEGIN_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
ROW_BY_KEY = {
    row.table: and_now(
        row, f"SELECT {columns(row)} FROM {row.table} WHERE (account, id) IN ({_KEYS}) ORDER BY account, id FOR UPDATE"
    )
    for row in ROW_TYPES
}
# The same for ids of one account: one index scan finds all of them, in half the time.
ROW_BY_ID = {
    row.table: and_now(
        row,
        f"SELECT {columns(row)} FROM {row.table} WHERE account = $1 AND id = ANY ($2::text[])"
        " ORDER BY account, id FOR UPDATE",
    )
    for row in ROW_TYPES
}
COUNT_ROWS = {row.table: f"SELECT count(*) FROM {row.table} WHERE (account, id) IN ({_KEYS})" for row in ROW_TYPES}
LEASES_OF_SESSION = and_now(
    Lease,
    f"SELECT {columns(Lease)} FROM leases WHERE (account, id) IN ({_KEYS} UNION"
    f" SELECT account, id FROM leases WHERE (account, session) IN ({keys(2)})"
    " AND ephemeral AND proof IS NOT NULL) ORDER BY account, id FOR UPDATE",
)
RESERVATIONS_UNDER = and_now(
    Reservation,
    f"SELECT {columns(Reservation)} FROM reservations WHERE (account, id) IN ({_KEYS} UNION"
    f" SELECT account, id FROM reservations WHERE (account, session) IN ({keys(2)}) AND session IS NOT NULL"
    " AND proof IS NOT NULL UNION SELECT paths.account, paths.id FROM json_array_elements($3::json) AS wanted"
    " JOIN reserved_paths AS paths ON paths.account = wanted.value ->> 0 AND paths.space = wanted.value ->> 1"
    " AND paths.prefix = wanted.value ->> 2 UNION SELECT paths.account, paths.id"
    " FROM json_array_elements($4::json) AS wanted JOIN reserved_paths AS paths"
    " ON paths.account = wanted.value ->> 0 AND paths.space = wanted.value ->> 1 AND paths.prefix >= wanted.value ->> 2"
    " AND (wanted.value ->> 3 IS NULL OR paths.prefix < wanted.value ->> 3)) ORDER BY account, id FOR UPDATE",
)
TASKS_OF_SESSION = and_now(
    Task,
    f"SELECT {columns(Task)} FROM tasks WHERE (account, id) IN ({_KEYS}"
    f" UNION SELECT account, id FROM tasks WHERE (account, session) IN ({keys(2)})"
    f" UNION SELECT account, id FROM tasks WHERE (account, unique_key) IN ({keys(3)} UNION"
    f" SELECT account, unique_key FROM tasks WHERE (account, id) IN ({keys(4)}) AND unique_key IS NOT NULL)"
    " AND unique_key IS NOT NULL AND state IN ('pending', 'claimed')) ORDER BY account, id FOR UPDATE",
)
LAST_VERSIONS = (
    "SELECT wanted.value ->> 0, wanted.value ->> 1, (SELECT max(version) FROM events WHERE account = wanted.value ->> 0"
    " AND subject = wanted.value ->> 1) FROM json_array_elements($1::json) AS wanted"
)
# Read, not locked: a lease's session is read after the lease is locked, and a transaction that ends that session must
# lock the lease too.
SESSIONS_OF_LEASES = and_now(Session, f"SELECT {columns(Session)} FROM sessions WHERE (account, id) IN ({_KEYS})")
# Without this lock two transactions could both count one below the limit, and both add one.
COUNT_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
LIVE_LOCKS = (
    "SELECT count(*) FROM leases WHERE account = $1 AND principal = $2 AND kind = 'lock'"
    " AND expires_at > (SELECT coalesce($3::bigint, holdfast_now()))"
)
LIVE_ELECTIONS = (
    "SELECT count(*) FROM leases WHERE account = $1 AND id >= '__election/' AND id < '__election0'"
    " AND kind = 'election' AND proof IS NOT NULL AND expires_at > (SELECT coalesce($2::bigint, holdfast_now()))"
)
WEBHOOKS = "SELECT count(*) FROM webhooks WHERE account = $1 AND family = $2 AND ($3::text = '' OR principal = $3)"
SPACE_USE = (
    "SELECT (SELECT count(*) FROM reservations WHERE account = $1 AND space = $2 AND proof IS NOT NULL"
    " AND expires_at > moment.now), (SELECT count(*) FROM reservations WHERE account = $1 AND space = $2"
    " AND waits_until IS NOT NULL AND waits_until > moment.now)"
    " FROM (SELECT coalesce($3::bigint, holdfast_now()) AS now) AS moment"
)


def _lock_each(what: str) -> str:
    """Wait for the locks of all pairs in a JSON document, in its order."""
    key = f"concat_ws(chr(31), '{what}', value ->> 0, value ->> 1)"
    return f"SELECT count(pg_advisory_xact_lock(hashtextextended({key}, 0))) FROM json_array_elements($1::json)"


# A claim skips ready tasks that its duplicate has locked, so it waits here until the duplicate has its answer.
LOCK_ANSWERS = _lock_each("answers")
# Two reservations whose paths overlap could otherwise both find no conflict.
LOCK_SPACES = _lock_each("spaces")
ANSWER = and_now(Answer, f"SELECT {columns(Answer)} FROM answers WHERE (account, key) IN ({_KEYS})")
# Transactions that create or claim tasks in an account with limits wait for each other here, account by account.
OPEN_USAGE = "INSERT INTO usage (account, cycle, created) VALUES ($1, 0, 0) ON CONFLICT DO NOTHING"
LOCK_USAGE = "SELECT cycle, created FROM usage WHERE account = $1 FOR UPDATE"
HELD_TASKS = held_tasks("$1", "(SELECT coalesce($2::bigint, holdfast_now()))")
NOW_OR = "SELECT coalesce($1::bigint, holdfast_now())"
DRAW = "SELECT string_agg(nextval('fencing_tokens')::text, ',') FROM generate_series(1, $1::int)"
ROLLBACK = "ROLLBACK"

# -- saving ------------------------------------------------------------------------------------------------------


def _new(record: type[Row | Answer | Event], names: ColumnNames, *more: str) -> str:
    """A JSON document as rows of these columns, and of `more` columns that are numbers.

    They are named c0, c1 and so on, as in the document: short names are read sooner.
    """
    types = sql_types(record)
    columns = enumerate([*(types[name] for name in names), *more])
    return f"json_to_recordset($1::json) AS new({', '.join(f'c{position} {column}' for position, column in columns)})"


def _insert(table: str, record: type[Row | Answer], names: ColumnNames) -> str:
    return f"INSERT INTO {table} ({', '.join(names)}) SELECT * FROM {_new(record, names)}"


@cache
def insert_row(row: type[Row], names: ColumnNames) -> str:
    """INSERT_ROW with these columns; the others have their defaults. A row that exists is an error (`errors.py`)."""
    return _insert(row.table, row, names)


_BIGINT = "bigint"


@cache
def update_row(row: type[Row], names: ColumnNames) -> str:
    """UPDATE_ROW of these columns; the column after them is the version that was loaded.

    A row that is missing, or has another version, is an error: the row with no account that MERGE then inserts. An
    UPDATE that counts its rows would cost half as much again for one row.
    """
    same = f"old.account = new.c0 AND old.id = new.c1 AND old.version = new.c{len(names)}"
    assignments = ", ".join(f"{name} = new.c{position}" for position, name in enumerate(names) if position > 1)
    return (
        f"MERGE INTO {row.table} AS old USING {_new(row, names, _BIGINT)} ON {same}"
        f" WHEN MATCHED THEN UPDATE SET {assignments} WHEN NOT MATCHED THEN INSERT (account) VALUES (NULL)"
    )


DELETE_ROW = {
    row.table: f"MERGE INTO {row.table} AS old USING {_new(row, ('account', 'id'), _BIGINT)}"
    " ON old.account = new.c0 AND old.id = new.c1 AND old.version = new.c2"
    " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (account) VALUES (NULL)"
    for row in ROW_TYPES
}
INSERT_ANSWER = _insert("answers", Answer, Answer.__struct_fields__)
_PATHS = "SELECT * FROM json_to_recordset($1::json) AS new(c0 text, c1 text, c2 text, c3 text)"
ADD_PATHS = f"INSERT INTO reserved_paths (account, space, prefix, id) {_PATHS}"
REMOVE_PATHS = f"DELETE FROM reserved_paths WHERE (account, space, prefix, id) IN ({_PATHS})"
# Transactions that count tasks of the same type and state wait for each other here; only the event counters are locked
# later.
COUNT_TASKS = (
    "INSERT INTO task_counts AS counted (account, type, state, total)"
    " SELECT * FROM json_to_recordset($1::json) AS new(c0 text, c1 text, c2 text, c3 bigint) ORDER BY 1, 2, 3"
    " ON CONFLICT (account, type, state) DO UPDATE SET total = counted.total + excluded.total"
)
COUNT_CREATED = (
    "INSERT INTO usage AS counted (account, cycle, created) SELECT value ->> 0, (value ->> 1)::bigint,"
    " (value ->> 2)::bigint FROM json_array_elements($1::json) ORDER BY 1 ON CONFLICT (account) DO UPDATE"
    " SET created = excluded.created + CASE WHEN excluded.cycle > counted.cycle THEN 0 ELSE counted.created END,"
    " cycle = greatest(counted.cycle, excluded.cycle)"
)
# The counter row is locked last and held only over COMMIT: readers by cursor then see every event once, in order, and
# writers wait here for each other as briefly as possible. `seq` comes in as the number of events that follow in the
# batch.
_EVENT = tuple(Event.__struct_fields__)
_SEQ = f"new.c{_EVENT.index('seq')}"
_EVENT_VALUES = ", ".join(f"new.c{position}" for position in range(len(_EVENT)))
_MOVE_COUNTER = "ON CONFLICT (account) DO UPDATE SET seq = counter.seq + excluded.seq RETURNING"
INSERT_EVENT = (
    f"WITH counters AS (INSERT INTO event_counters AS counter (account, seq) VALUES ($2, $3::bigint)"
    f" {_MOVE_COUNTER} seq) INSERT INTO events ({columns(Event)})"
    f" SELECT {_EVENT_VALUES.replace(_SEQ, f'counters.seq - {_SEQ}')} FROM counters, {_new(Event, _EVENT)}"
)
# The same for events of several accounts: the column after theirs is the place of the account among $2.
INSERT_EVENTS = (
    "WITH counters AS (INSERT INTO event_counters AS counter (account, seq)"
    f" SELECT * FROM unnest($2::text[], $3::bigint[]) {_MOVE_COUNTER} account, seq),"
    " last AS (SELECT array_agg(seq ORDER BY account) AS seqs FROM counters)"
    f" INSERT INTO events ({columns(Event)})"
    f" SELECT {_EVENT_VALUES.replace(_SEQ, f'(SELECT seqs FROM last)[new.c{len(_EVENT)}] - {_SEQ}')}"
    f" FROM {_new(Event, _EVENT, _BIGINT)}"
)

COMMIT = "COMMIT"

# -- reading and housekeeping ------------------------------------------------------------------------------------

# Without statistics PostgreSQL takes an account for rare, and reads all tasks of the account from the index of lists to
# find a few by id. It collects them within minutes; until then we do, from tables that have enough rows.
_TABLES = ", ".join(f"'{row.table}'" for row in ROW_TYPES)
ANALYZE_NEW = f"""
DO $$
DECLARE
    young text;
BEGIN
    PERFORM set_config('lock_timeout', '100ms', true);
    FOR young IN
        SELECT relname FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relname IN ({_TABLES})
            AND reltuples < 0 AND pg_relation_size(oid) >= 65536
    LOOP
        EXECUTE 'ANALYZE ' || young;
    END LOOP;
END $$
"""

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
HAS_MINIMUM_SCHEMA = "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('state') AND attname = 'minimum_schema'"
NOW = "SELECT coalesce(CAST(? AS bigint), holdfast_now())"
LOCK_TOKENS = "ALTER SEQUENCE fencing_tokens OWNED BY NONE"
"""Changes nothing, but keeps others from drawing until the end of the transaction: sequences have no LOCK."""
ADVANCE_TOKENS = (
    "SELECT setval('fencing_tokens', greatest(last_value, $1::bigint), is_called OR last_value <= $1::bigint)"
    " FROM fencing_tokens"
)
NEXT_TOKEN = "SELECT last_value + is_called::int FROM fencing_tokens"
SIZE = "SELECT pg_database_size(current_database())"
# A batch locks rows, so its transaction has a lock on a table in one of these modes, even if it has found no row yet.
OPEN_BATCHES = (
    "SELECT DISTINCT virtualtransaction FROM pg_locks JOIN pg_database ON oid = database"
    " WHERE datname = current_database() AND locktype = 'relation' AND pid <> pg_backend_pid()"
    " AND mode IN ('RowShareLock', 'RowExclusiveLock')"
)
LISTEN = "LISTEN holdfast"
NOTIFY = "NOTIFY holdfast"
SKIP_LOCKED = " FOR UPDATE OF one SKIP LOCKED"
"""Deliveries that another server claims now are skipped; its commit decides whether it gets them."""


def first_rows(table: str, condition: str, key: str = "") -> str:  # noqa: ARG001 - every row has a ctid
    """A condition for the first rows of a table that meet another condition; the last argument is how many."""
    return f"ctid = ANY (ARRAY (SELECT ctid FROM {table} WHERE {condition} LIMIT ?))"
