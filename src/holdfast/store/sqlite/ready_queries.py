"""The statements by which claims find tasks; `postgres/ready_queries.py` has the same names in the same order.

Tasks that require capabilities have indexes of their own, so a claim without any never meets them. A claim with some
looks near the head of its queue first (REQUIRING_NEAR). If too few are there that it may take
(`core.task.capabilities.may_take`), it goes along an index from each set of required words that it may take to the next
(READY_SET). Then it reads the heads of the sets that it found.

Tasks with a concurrency key have indexes as well. If their queue has a limit for each key, a claim looks near the head
of the queue first and passes over the tasks of full keys (KEYED_NEAR, REQUIRING_NEAR), or begins behind those that an
earlier claim passed over (KEYED_FROM, `claim_start.py`). If too few are there whose keys have room
(`store.concurrency_keys`), and the queue goes on (KEYED_BEYOND, REQUIRING_BEYOND), it goes along an index from key to
key, in each set that it may take, and reads the heads of those that are not full (KEYED_HEADS).
"""

from __future__ import annotations

from holdfast.core.task import Task
from holdfast.core.task.queue import Queue
from holdfast.store.concurrency_keys import NEAR, WINDOW
from holdfast.store.sql.group_queries import NO_KEY, keys_of_sets, tasks_of_group
from holdfast.store.sqlite.queries import json_rows

QUEUES_OF = (
    f"SELECT {json_rows(Queue)} FROM (SELECT value ->> 0 AS account, value ->> 1 AS id FROM json_each(?1)"
    " UNION SELECT row.account, row.id FROM json_each(?2) AS wanted CROSS JOIN queues AS row"
    " ON row.account = wanted.value UNION SELECT task.account, task.type FROM json_each(?3) AS wanted"
    " CROSS JOIN tasks AS task ON task.account = wanted.value ->> 0 AND task.id = wanted.value ->> 1)"
    " AS found CROSS JOIN queues AS row ON row.account = found.account AND row.id = found.id"
)
RUNNING = "SELECT coalesce(sum(total), 0) FROM task_counts WHERE account = ? AND type = ? AND state = 'claimed'"
RUNNING_KEYS = (
    "SELECT concurrency_key, count(*) FROM tasks WHERE account = ? AND type = ? AND state = 'claimed'"
    " AND concurrency_key IS NOT NULL GROUP BY concurrency_key"
)
_TYPE = " AND type = ?2"
_DUE = "state = 'pending' AND NOT ready AND scheduled_at <= ?"


def _first_ids(key: str) -> str:
    return (
        "SELECT rowid FROM (SELECT rowid FROM tasks WHERE account = ?1 AND type = ?2 AND ready AND requires IS NULL"
        f" AND concurrency_key IS {key} ORDER BY priority DESC, place, id LIMIT ?3)"
    )


# The first of those without a concurrency key and the first of those with one: each kind has an index of its own.
READY = (
    f"SELECT {json_rows(Task)} FROM ({_first_ids('NULL')} UNION ALL {_first_ids('NOT NULL')}) AS first"
    " CROSS JOIN tasks AS row ON row.rowid = first.rowid"
)
READY_ANY = (
    f"SELECT {json_rows(Task)} FROM (SELECT * FROM tasks WHERE account = ? AND ready AND requires IS NULL"
    " ORDER BY -priority, place, id LIMIT ?) AS row"
)
DUE_TASKS = (
    f"SELECT {json_rows(Task)} FROM (SELECT * FROM tasks WHERE account = ? AND type = ? AND {_DUE}"
    " AND requires IS NULL ORDER BY priority DESC, place, id LIMIT ?) AS row"
)
# The plus sign keeps SQLite from using the index by account, which has every task the account ever had; few tasks have
# just come due.
DUE_TASKS_ANY = (
    f"SELECT {json_rows(Task)} FROM (SELECT * FROM tasks WHERE +account = ? AND {_DUE}"
    " AND requires IS NULL ORDER BY priority DESC, place, id LIMIT ?) AS row"
)


def _heads(of_type: str, priority: str, sets: str, most: str) -> str:
    """The first tasks of a queue that require one of the sets in a JSON array."""
    order = f"{priority}, place, id"
    head = (
        f"SELECT rowid FROM tasks WHERE account = ?1{of_type} AND requires = wanted.value AND ready"
        f" ORDER BY {order} LIMIT {most}"
    )
    first = (
        f"SELECT head.rowid FROM json_each({sets}) AS wanted CROSS JOIN tasks AS head ON head.rowid IN ({head})"
        f" ORDER BY head.priority DESC, head.place, head.id LIMIT {most}"
    )
    return f"SELECT {json_rows(Task)} FROM ({first}) AS first CROSS JOIN tasks AS row ON row.rowid = first.rowid"


# The types that have ready tasks: one step along each of the two indexes for each type.
_NEXT_TYPE = "SELECT type FROM tasks WHERE account = ?1 AND ready AND {0}{1} ORDER BY type LIMIT 1"


def _types(where: str) -> str:
    first, following = _NEXT_TYPE.format(where, ""), _NEXT_TYPE.format(where, " AND type > types.name")
    return (
        f"WITH RECURSIVE types (name) AS (SELECT ({first}) UNION ALL SELECT ({following}) FROM types"
        " WHERE name IS NOT NULL) SELECT name FROM types WHERE name IS NOT NULL"
    )


READY_TYPES = _types("requires IS NULL AND concurrency_key IS NULL")
GROUPED_TYPES = _types("(requires IS NOT NULL OR concurrency_key IS NOT NULL)")
DUE_TYPES = f"SELECT DISTINCT type FROM tasks WHERE +account = ? AND {_DUE}"
_REQUIRING = "SELECT requires FROM tasks WHERE account = ?1{0} AND ready AND requires IS NOT NULL"
READY_NEAR = f"{_REQUIRING.format(_TYPE)} ORDER BY priority DESC, place, id LIMIT {NEAR}"
READY_NEAR_ANY = f"{_REQUIRING.format('')} ORDER BY -priority, place, id LIMIT {NEAR}"
READY_SET = f"{_REQUIRING.format(_TYPE)} AND requires >= ?3 ORDER BY requires LIMIT 1"
READY_SET_ANY = f"{_REQUIRING.format('')} AND requires >= ?2 ORDER BY requires LIMIT 1"
READY_REQUIRING = _heads(_TYPE, "priority DESC", "?3", "?4")
READY_REQUIRING_ANY = _heads("", "-priority", "?2", "?3")
DUE_SETS = f"SELECT DISTINCT requires FROM tasks WHERE account = ? AND type = ? AND {_DUE} AND requires IS NOT NULL"
DUE_SETS_ANY = f"SELECT DISTINCT requires FROM tasks WHERE +account = ? AND {_DUE} AND requires IS NOT NULL"
_OF_SETS = " AND requires IN (SELECT value FROM json_each(?)) ORDER BY priority DESC, place, id LIMIT ?) AS row"
DUE_REQUIRING = (
    f"SELECT {json_rows(Task)} FROM (SELECT * FROM tasks WHERE account = ? AND type = ? AND {_DUE}{_OF_SETS}"
)
DUE_REQUIRING_ANY = f"SELECT {json_rows(Task)} FROM (SELECT * FROM tasks WHERE +account = ? AND {_DUE}{_OF_SETS}"

# Queues with a limit for each concurrency key: what decides whether a claim may take a task (`core.task.queue.Head`).
_HEAD = "SELECT id, concurrency_key, requires FROM tasks WHERE account = ?1 AND type = ?2"
# Its index has no column for what tasks require: reading it would read each row.
_WITH_KEY = (
    "SELECT rowid AS line, id, concurrency_key FROM tasks WHERE account = ?1 AND type = ?2"
    " AND ready AND requires IS NULL AND concurrency_key IS NOT NULL"
)
_KEYED = f"{_WITH_KEY} ORDER BY priority DESC, place, id"
# Those of one priority from a place on: ?5 is the priority, negated.
_KEYED_FROM = f"{_WITH_KEY} AND priority = -?5 AND (place, id) >= (?6, ?7) ORDER BY place, id"
_ANY_SET = f"{_HEAD} AND ready AND requires IS NOT NULL ORDER BY priority DESC, place, id"


def _near(columns: str, tasks: str, or_else: str = "") -> str:
    """Of the first tasks of a queue, in its order, those whose keys are not in the JSON array ?3, up to ?4."""
    has_room = f"{or_else}concurrency_key NOT IN (SELECT value FROM json_each(?3))"
    return f"SELECT {columns} FROM ({tasks} LIMIT {WINDOW}) WHERE {has_room} LIMIT ?4"


def _beyond(tasks: str) -> str:
    """Whether the queue goes on behind these."""
    return f"SELECT count(*) FROM ({tasks} LIMIT 1 OFFSET {WINDOW})"


# The first task itself, where only one is wanted.
KEYED_FIRST, KEYED_FROM = (
    f"SELECT {json_rows(Task)} FROM ({_near('line', tasks)}) AS first CROSS JOIN tasks AS row ON row.rowid = first.line"
    for tasks in (_KEYED, _KEYED_FROM)
)
DATA_VERSION = "PRAGMA data_version"
KEYED_NEAR, KEYED_BEYOND = _near("id, concurrency_key, NULL", _KEYED), _beyond(_KEYED)
REQUIRING_NEAR = _near("id, concurrency_key, requires", _ANY_SET, "concurrency_key IS NULL OR ")
REQUIRING_BEYOND = _beyond(_ANY_SET)
DUE_HEADS = f"{_HEAD} AND {_DUE}3 ORDER BY priority DESC, place, id"


def _heads_of(groups: str, name: str, where: str = "") -> str:
    """The first tasks of each group, in the order of the queue."""
    head = f"SELECT rowid {tasks_of_group('?', groups, f'= {name}')} ORDER BY priority DESC, place, id LIMIT ?4"
    return (
        f"SELECT head.id, head.concurrency_key, head.requires FROM {groups} CROSS JOIN tasks AS head"
        f" ON head.rowid IN ({head}){where} ORDER BY head.priority DESC, head.place, head.id"
    )


_SETS = "sets (words) AS (SELECT value FROM json_each(?3))"
KEYED_HEADS = (
    f"WITH RECURSIVE {_SETS}, {keys_of_sets('?')}"
    f" {_heads_of('keys', 'keys.name', ' WHERE keys.name NOT IN (SELECT value FROM json_each(?5))')}"
)
KEYLESS_HEADS = f"WITH {_SETS} {_heads_of('sets', NO_KEY)} LIMIT ?4"
