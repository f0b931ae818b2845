"""The statements by which claims find and lock tasks; `sqlite/ready_queries.py` has the same names in the same order.

Tasks that require capabilities have indexes of their own, so a claim without any never meets them. A claim with some
goes along such an index from each set of required words to the next, keeps the sets that it may take, which
`core.task.capabilities.may_take` also decides, and locks the heads of those: no more tasks in all than it asks for.

Tasks with a concurrency key have indexes of their own as well. If their queue has a limit for each key, a claim looks
near the head of the queue first, passes over the tasks of full keys, which `core.task.queue.is_key_full` also decides,
and locks the first of the others (KEYED_NEAR, REQUIRING_NEAR). If too few are there whose keys have room
(`store.concurrency_keys`), and the queue goes on, it goes along an index from key to key, in each set that it may take
(ALLOWED_SETS), and reads the heads of those that are not full (KEYED_HEADS). Of these it locks the tasks that it chose
(CHOSEN).
"""

from __future__ import annotations

from holdfast.core.task import Task
from holdfast.core.task.queue import Queue
from holdfast.store.concurrency_keys import NEAR, WINDOW
from holdfast.store.postgres.queries import and_now, found_rows, keys
from holdfast.store.sql.group_queries import NO_KEY, keys_of_sets, tasks_of_group
from holdfast.store.sql.page_queries import columns

_LOCK = "FOR UPDATE SKIP LOCKED"
# Claims of any type find nothing in an account that has queues with settings: there the types are listed first. They
# are counted there all the same: if the first settings were made since the queues were read, the batch runs again.
_WITHOUT_SETTINGS = " WHERE NOT EXISTS (SELECT 1 FROM queues WHERE queues.account = value ->> 0)"

QUEUES_OF = and_now(
    Queue,
    f"SELECT {columns(Queue)} FROM queues WHERE (account, id) IN ({keys(1)} UNION SELECT account, id FROM queues"
    " WHERE account IN (SELECT json_array_elements_text($2::json)) UNION SELECT account, type FROM tasks"
    f" WHERE (account, id) IN ({keys(3)})) ORDER BY account, id FOR UPDATE",
)
# Read after the queues were locked: claims of these queues have ended.
RUNNING = f"SELECT account, type, total FROM task_counts WHERE (account, type) IN ({keys(1)}) AND state = 'claimed'"
_COUNTED = (
    "counted AS MATERIALIZED (SELECT concurrency_key, count(*) AS total FROM tasks WHERE account = $1 AND type = $2"
    " AND state = 'claimed' AND concurrency_key IS NOT NULL GROUP BY concurrency_key)"
)
_COUNTS = "SELECT coalesce(json_object_agg(concurrency_key, total), '{}')::text FROM counted"
RUNNING_KEYS = f"WITH {_COUNTED} {_COUNTS}"


def _wanted(only: str = "") -> str:
    """The queues in $1."""
    return (
        "wanted AS (SELECT value ->> 0 AS account, value ->> 1 AS type, (value ->> 2)::int AS most"
        f" FROM json_array_elements($1::json){only})"
    )


def _first_of(*kinds: str, typed: bool, priority: str = "priority DESC") -> str:
    """The first tasks of each of the queues in $1 that meet a condition, and the first that meet the next."""
    each = (
        f"SELECT * FROM (SELECT {columns(Task)} FROM tasks WHERE {_queue('wanted', typed=typed)} AND {where}"
        f" AND requires IS NULL ORDER BY {priority}, place, id LIMIT wanted.most {_LOCK}) AS first"
        for where in kinds
    )
    return (
        f"WITH {_wanted('' if typed else _WITHOUT_SETTINGS)}, found AS (SELECT task.* FROM wanted CROSS JOIN LATERAL"
        f" ({' UNION ALL '.join(each)}) AS task) {found_rows(Task)}"
    )


def _queue(of: str, *, typed: bool) -> str:
    """The tasks of a queue, or of all queues of its account."""
    return f"account = {of}.account" + (f" AND type = {of}.type" if typed else "")


_DUE = "state = 'pending' AND NOT ready AND scheduled_at <= (SELECT coalesce($2::bigint, holdfast_now()))"
# Those without a concurrency key and those with one have an index each.
READY = _first_of("ready AND concurrency_key IS NULL", "ready AND concurrency_key IS NOT NULL", typed=True)
READY_ANY = _first_of("ready", typed=False, priority="-priority")
DUE_TASKS = _first_of(_DUE, typed=True)
DUE_TASKS_ANY = _first_of(_DUE, typed=False)

# The types with claimable tasks: one step along each of the two indexes for each type.
_NEXT_TYPE = "(SELECT type FROM tasks WHERE account = {0}.account AND ready AND {1}{2} ORDER BY type LIMIT 1)"


def _types(where: str) -> str:
    first = _NEXT_TYPE.format("accounts", where, "")
    following = _NEXT_TYPE.format("types", where, " AND type > types.name")
    return (
        "WITH RECURSIVE accounts AS (SELECT value #>> '{}' AS account FROM json_array_elements($1::json)),"
        f" types (account, name) AS (SELECT account, {first} FROM accounts UNION ALL SELECT account, {following}"
        " FROM types WHERE name IS NOT NULL) SELECT account, name FROM types WHERE name IS NOT NULL"
    )


READY_TYPES = _types("requires IS NULL AND concurrency_key IS NULL")
GROUPED_TYPES = _types("(requires IS NOT NULL OR concurrency_key IS NOT NULL)")
DUE_TYPES = (
    f"SELECT DISTINCT account, type FROM tasks WHERE account IN (SELECT json_array_elements_text($1::json)) AND {_DUE}"
)


def _claims(only: str = "") -> str:
    """Each claim with its own capabilities and those of its session, which is locked already."""
    return (
        "claims AS (SELECT account, type, capabilities, max(most) AS most FROM (SELECT value ->> 0 AS account,"
        " value ->> 1 AS type, concat_ws(',', nullif(value ->> 2, ''), (SELECT sessions.capabilities FROM sessions"
        " WHERE sessions.account = value ->> 0 AND sessions.id = value ->> 3)) AS capabilities,"
        f" (value ->> 4)::int AS most FROM json_array_elements($1::json){only}) AS given"
        " WHERE capabilities <> '' GROUP BY 1, 2, 3)"
    )


def _may_take(requires: str, of: str) -> str:
    return f"string_to_array({requires}, ',') <@ string_to_array({of}.capabilities, ',')"


_ABLE = "string_to_array(sets.capabilities, ',')"
_FIRST = "split_part(sets.words, ',', 1)"
# Where the next set begins that a claim may take: after a set whose first word it has, else at the next word that it
# has. No word has a character before the comma, so nothing lies between a set and the same text with "!".
_NEXT = (
    f"CASE WHEN {_FIRST} = ANY ({_ABLE}) THEN sets.words || '!'"
    f' ELSE (SELECT min(word COLLATE "C") FROM unnest({_ABLE}) AS word WHERE word COLLATE "C" > {_FIRST}) END'
)


def _allowed(claims: str, *, typed: bool) -> str:
    """The sets of words that the ready tasks of each claim's queue require and that it may take."""

    def step(of: str, after: str = "") -> str:
        where = f"{_queue(of, typed=typed)} AND ready AND requires IS NOT NULL{after}"
        following = f"(SELECT requires FROM tasks WHERE {where} ORDER BY requires LIMIT 1)"
        return f"SELECT {of}.account, {of}.type, {of}.capabilities, {of}.most, {following} FROM {of}"

    return (
        f"sets (account, type, capabilities, most, words) AS ({step(claims)} UNION ALL"
        f" {step('sets', f' AND requires >= {_NEXT}')} WHERE words IS NOT NULL),"
        f" allowed AS (SELECT * FROM sets WHERE words IS NOT NULL AND {_may_take('words', 'sets')})"
    )


def _heads(*, typed: bool) -> str:
    """The first tasks of each claim's queue that require no more than it has.

    As a rule they are near the head of the queue, so that is where they are looked for first. If too few are, the heads
    of all sets that the claim may take are read.
    """
    order = "priority DESC, place, id" if typed else "-priority, place, id"

    def heads_of(of: str) -> str:
        return f"FROM tasks WHERE {_queue(of, typed=typed)} AND requires = {of}.words AND ready ORDER BY {order}"

    near = f"{_queue('claims', typed=typed)} AND ready AND requires IS NOT NULL ORDER BY {order} LIMIT {NEAR}"
    head = "account, type, capabilities, most, words, priority, place, id"
    claims = _claims("" if typed else _WITHOUT_SETTINGS)
    return (
        f"WITH RECURSIVE {claims}, near AS MATERIALIZED (SELECT claims.*, head.* FROM claims"
        f" CROSS JOIN LATERAL (SELECT * FROM (SELECT requires AS words, priority, place, id FROM tasks WHERE {near})"
        f" AS first WHERE {_may_take('words', 'claims')} LIMIT claims.most) AS head),"
        " unfilled AS (SELECT * FROM claims WHERE most > (SELECT count(*)"
        " FROM near WHERE near.account = claims.account AND near.type = claims.type"
        f" AND near.capabilities = claims.capabilities)), {_allowed('unfilled', typed=typed)},"
        f" heads AS (SELECT {head} FROM near UNION SELECT allowed.*, head.* FROM allowed CROSS JOIN LATERAL"
        f" (SELECT priority, place, id {heads_of('allowed')} LIMIT allowed.most) AS head),"
        " numbered AS (SELECT *, row_number() OVER (PARTITION BY account, type, capabilities"
        " ORDER BY priority DESC, place, id) AS number FROM heads),"
        " shares AS (SELECT account, type, words, max(share) AS share FROM (SELECT account, type, capabilities, words,"
        " count(*) AS share FROM numbered WHERE number <= most GROUP BY 1, 2, 3, 4) AS each_claim GROUP BY 1, 2, 3),"
        f" found AS (SELECT task.* FROM shares CROSS JOIN LATERAL (SELECT {columns(Task)} {heads_of('shares')}"
        f" LIMIT shares.share {_LOCK}) AS task) {found_rows(Task)}"
    )


def _due_requiring(*, typed: bool) -> str:
    where = f"{_queue('claims', typed=typed)} AND {_DUE} AND requires IS NOT NULL AND {_may_take('requires', 'claims')}"
    claims = _claims("" if typed else _WITHOUT_SETTINGS)
    return (
        f"WITH {claims}, found AS (SELECT task.* FROM claims CROSS JOIN LATERAL (SELECT {columns(Task)}"
        f" FROM tasks WHERE {where} ORDER BY priority DESC, place, id LIMIT claims.most {_LOCK}) AS task)"
        f" {found_rows(Task)}"
    )


READY_REQUIRING = _heads(typed=True)
READY_REQUIRING_ANY = _heads(typed=False)
DUE_REQUIRING = _due_requiring(typed=True)
DUE_REQUIRING_ANY = _due_requiring(typed=False)

# Queues with a limit for each concurrency key: what decides whether a claim may take a task (`core.task.queue.Head`).
_HEAD = "SELECT id, concurrency_key, requires FROM tasks WHERE account = $1 AND type = $2"
# Keys of which a task may end in the batch, in $4, are left out: what room they have is decided after the task is read.
_FULL_KEYS = (
    "SELECT concurrency_key FROM counted WHERE total >= $3::bigint"
    " AND concurrency_key NOT IN (SELECT json_array_elements_text($4::json))"
)
_ORDER = "ORDER BY priority DESC, place, id"


def _near(where: str, words: str, able: str = "true") -> str:
    """Of the first tasks of a queue, in its order, those whose keys are not full, up to $5.

    The first $6 of them are locked and loaded. After these come all of them, whether the queue goes on behind them, how
    many tasks of each key run, and the ids of the first tasks that have no key and require nothing.
    """
    tasks = f"FROM tasks WHERE account = $1 AND type = $2 AND ready AND {where} {_ORDER}"
    has_room = f"(concurrency_key IS NULL OR $3::bigint > 0 AND concurrency_key NOT IN ({_FULL_KEYS}))"
    return (
        f"WITH {_COUNTED}, heads AS MATERIALIZED (SELECT * FROM (SELECT id, concurrency_key, {words}, priority, place"
        f" {tasks} LIMIT {WINDOW}) AS first WHERE {able} AND {has_room} {_ORDER} LIMIT $5::bigint),"
        f" found AS (SELECT {columns(Task)} FROM tasks WHERE account = $1 AND id = ANY (ARRAY (SELECT id FROM heads"
        f" {_ORDER} LIMIT $6::bigint)) ORDER BY account, id {_LOCK}) {found_rows(Task, _HEADS.format(tasks))}"
    )


_HEADS = (
    f"(SELECT coalesce(json_agg(json_build_array(id, concurrency_key, requires) {_ORDER}), '[]')::text FROM heads),"
    " CASE WHEN (SELECT count(*) FROM heads) < $5::bigint"
    f" THEN EXISTS (SELECT {{0}} LIMIT 1 OFFSET {WINDOW}) ELSE true END, ({_COUNTS.replace('{}', '{{}}')}),"
    " (SELECT coalesce(json_agg(id), '[]')::text FROM (SELECT id FROM tasks WHERE account = $1 AND type = $2 AND ready"
    f" AND requires IS NULL AND concurrency_key IS NULL {_ORDER} LIMIT $6::bigint) AS plain)"
)
_KEYED, _ANY_SET = "requires IS NULL AND concurrency_key IS NOT NULL", "requires IS NOT NULL"
KEYED_NEAR = _near(_KEYED, "NULL::text AS requires")  # which its index does not have, so rows would be read
REQUIRING_NEAR = _near(_ANY_SET, "requires", "string_to_array(requires, ',') <@ string_to_array($7::text, ',')")
DUE_HEADS = f"{_HEAD} AND {_DUE.replace('$2', '$3')} ORDER BY priority DESC, place, id"
ALLOWED_SETS = (
    "WITH RECURSIVE claims AS (SELECT $1::text AS account, $2::text AS type, $3::text AS capabilities, 0 AS most),"
    f" {_allowed('claims', typed=True)} SELECT words FROM allowed"
)


def _heads_of(groups: str, name: str, where: str = "") -> str:
    """The first tasks of each group, in the order of the queue."""
    first = f"{tasks_of_group('$', groups, f'= {name}')} ORDER BY priority DESC, place, id LIMIT $4::bigint"
    return (
        f"SELECT head.id, head.concurrency_key, head.requires FROM {groups} CROSS JOIN LATERAL (SELECT id,"
        f" concurrency_key, requires, priority, place {first}) AS head{where}"
        " ORDER BY head.priority DESC, head.place, head.id"
    )


_SETS = 'sets AS (SELECT words COLLATE "C" AS words FROM json_array_elements_text($3::json) AS given (words))'
_NOT_FULL = " WHERE keys.name IS NOT NULL AND keys.name NOT IN (SELECT json_array_elements_text($5::json))"
KEYED_HEADS = f"WITH RECURSIVE {_SETS}, {keys_of_sets('$')} {_heads_of('keys', 'keys.name', _NOT_FULL)}"
KEYLESS_HEADS = f"WITH {_SETS} {_heads_of('sets', NO_KEY)} LIMIT $4::bigint"
CHOSEN = and_now(
    Task, f"SELECT {columns(Task)} FROM tasks WHERE (account, id) IN ({keys(1)}) ORDER BY account, id {_LOCK}"
)

# How many tasks could be claimed, also those that other servers have locked, up to the number asked for.


def _count(*, typed: bool) -> str:
    def count(where: str) -> str:
        of_queue = f"{_queue('wanted', typed=typed)} AND {where} AND requires IS NULL"
        return f"(SELECT count(*) FROM (SELECT FROM tasks WHERE {of_queue} LIMIT most) AS found)"

    kinds = ("ready AND concurrency_key IS NULL", "ready AND concurrency_key IS NOT NULL") if typed else ("ready",)
    total = " + ".join(map(count, (*kinds, _DUE)))
    return f"WITH {_wanted()} SELECT account, type, '', {total} FROM wanted"


COUNT_CLAIMABLE = _count(typed=True)
COUNT_CLAIMABLE_ANY = _count(typed=False)


def _count_requiring(*, typed: bool) -> str:
    of_set = f"{_queue('allowed', typed=typed)} AND requires = allowed.words AND ready LIMIT allowed.most"
    due = f"{_queue('claims', typed=typed)} AND {_DUE} AND requires IS NOT NULL AND {_may_take('requires', 'claims')}"
    return (
        f"WITH RECURSIVE {_claims()}, {_allowed('claims', typed=typed)}"
        " SELECT account, type, capabilities, least(most, (SELECT coalesce(sum((SELECT count(*)"
        f" FROM (SELECT FROM tasks WHERE {of_set}) AS found)), 0) FROM allowed WHERE allowed.account = claims.account"
        " AND allowed.type = claims.type AND allowed.capabilities = claims.capabilities) + (SELECT count(*)"
        f" FROM (SELECT FROM tasks WHERE {due} LIMIT claims.most) AS found)) FROM claims"
    )


COUNT_REQUIRING = _count_requiring(typed=True)
COUNT_REQUIRING_ANY = _count_requiring(typed=False)
