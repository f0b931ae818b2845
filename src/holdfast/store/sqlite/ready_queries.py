"""The statements by which claims find tasks; `postgres/ready_queries.py` has the same names in the same order.

Tasks that require capabilities have indexes of their own, so a claim without any never meets them. A claim with some
looks near the head of its queue first (READY_NEAR). If too few are there that it may take
(`core.task.capabilities.may_take`), it goes along an index from each set of required words that it may take to the next
(READY_SET). Then it reads the heads of the sets that it found.
"""

from __future__ import annotations

from holdfast.core.task import Task
from holdfast.core.task.queue import Queue
from holdfast.store.sqlite.queries import json_rows

QUEUES_OF = (
    f"SELECT {json_rows(Queue)} FROM (SELECT value ->> 0 AS account, value ->> 1 AS id FROM json_each(?1)"
    " UNION SELECT row.account, row.id FROM json_each(?2) AS wanted CROSS JOIN queues AS row"
    " ON row.account = wanted.value UNION SELECT task.account, task.type FROM json_each(?3) AS wanted"
    " CROSS JOIN tasks AS task ON task.account = wanted.value ->> 0 AND task.id = wanted.value ->> 1)"
    " AS found CROSS JOIN queues AS row ON row.account = found.account AND row.id = found.id"
)
RUNNING = "SELECT coalesce(sum(total), 0) FROM task_counts WHERE account = ? AND type = ? AND state = 'claimed'"
_TYPE = " AND type = ?2"
NEAR = 100
"""How many tasks at the head of a queue are looked through before the sets of required words are listed."""
_DUE = "state = 'pending' AND NOT ready AND scheduled_at <= ?"

READY = (
    f"SELECT {json_rows(Task)} FROM (SELECT * FROM tasks WHERE account = ? AND type = ? AND ready AND requires IS NULL"
    " ORDER BY priority DESC, place, id LIMIT ?) AS row"
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
_NEXT_TYPE = "SELECT type FROM tasks WHERE account = ?1 AND ready AND requires IS {0}{1} ORDER BY type LIMIT 1"


def _types(requires: str) -> str:
    first, following = _NEXT_TYPE.format(requires, ""), _NEXT_TYPE.format(requires, " AND type > types.name")
    return (
        f"WITH RECURSIVE types (name) AS (SELECT ({first}) UNION ALL SELECT ({following}) FROM types"
        " WHERE name IS NOT NULL) SELECT name FROM types WHERE name IS NOT NULL"
    )


READY_TYPES = _types("NULL")
REQUIRING_TYPES = _types("NOT NULL")
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
