"""Parts of statements about groups of ready tasks: those that require the same words and have the same concurrency key.

`mark` is what stands before the number of a parameter: `?` on SQLite, `$` on PostgreSQL. A group without a key, or
without required words, has an empty text.
"""

from __future__ import annotations

NO_KEY = "''"


def tasks_of_group(mark: str, groups: str, key: str) -> str:
    """The ready tasks of a queue with the words of a row of `groups`, whose key compares so."""
    return (
        f"FROM tasks WHERE account = {mark}1 AND type = {mark}2 AND ready"
        " AND (requires IS NOT NULL OR concurrency_key IS NOT NULL)"
        f" AND coalesce(requires, '') = {groups}.words AND coalesce(concurrency_key, '') {key}"
    )


def keys_of_sets(mark: str) -> str:
    """A recursive table `keys (words, name)`: every key that ready tasks with the words of the table `sets` have."""

    def following(groups: str, key: str) -> str:
        tasks = tasks_of_group(mark, groups, f"> {key}")
        return f"(SELECT coalesce(concurrency_key, '') {tasks} ORDER BY coalesce(concurrency_key, '') LIMIT 1)"

    return (
        f"keys (words, name) AS (SELECT words, {following('sets', NO_KEY)} FROM sets"
        f" UNION ALL SELECT words, {following('keys', 'keys.name')} FROM keys WHERE name IS NOT NULL)"
    )
