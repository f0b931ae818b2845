"""The statement that lists ready tasks by type and required words.

It goes along an index from each set of required words to the next one, so a long queue costs as much as a short one.
"""

from __future__ import annotations

from holdfast.core.limits import COUNTED_READY

_NEXT_SET = (
    "SELECT requires FROM tasks WHERE tasks.account = {0}.account AND tasks.type = {0}.type AND ready"
    " AND requires IS NOT NULL{1} ORDER BY requires LIMIT 1"
)


def _first(where: str, most: int) -> str:
    return (
        "SELECT * FROM (SELECT priority, place, id FROM tasks WHERE tasks.account = work.account"
        f" AND tasks.type = work.type AND ready AND {where} ORDER BY priority DESC, place, id LIMIT {most}) AS first"
    )


def _heads(work: str, *kinds: str) -> str:
    """Type, words, place of the first task and number of tasks of some work; those of absent work are NULL and 0.

    Each of the conditions has an index of its own.
    """
    heads, counted = (" UNION ALL ".join(_first(where, most) for where in kinds) for most in (1, COUNTED_READY))
    since = f"SELECT place FROM ({heads}) AS heads ORDER BY priority DESC, place, id LIMIT 1"
    total = f"SELECT count(*) FROM (SELECT 1 FROM ({counted}) AS each_kind LIMIT {COUNTED_READY}) AS counted"
    return f"SELECT type, words, ({since}) AS since, ({total}) AS total FROM {work} AS work"


_WITHOUT_WORDS = ("requires IS NULL AND concurrency_key IS NULL", "requires IS NULL AND concurrency_key IS NOT NULL")
_PLAIN = "(SELECT account, type, NULL AS words FROM kinds)"
_REQUIRING = "(SELECT account, type, words FROM sets WHERE words IS NOT NULL)"
READY_WORK = (
    "WITH RECURSIVE kinds AS (SELECT DISTINCT account, type FROM task_counts"
    " WHERE account = ? AND state = 'pending' AND total > 0),"
    f" sets (account, type, words) AS (SELECT account, type, ({_NEXT_SET.format('kinds', '')}) FROM kinds"
    f" UNION ALL SELECT account, type, ({_NEXT_SET.format('sets', ' AND requires > sets.words')}) FROM sets"
    " WHERE words IS NOT NULL)"
    f" SELECT type, coalesce(words, ''), since, total FROM ({_heads(_PLAIN, *_WITHOUT_WORDS)}"
    f" UNION ALL {_heads(_REQUIRING, 'requires = work.words')}) AS found"
    " WHERE since IS NOT NULL ORDER BY type, coalesce(words, '') LIMIT ?"
)
