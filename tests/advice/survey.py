"""All walks, and the table that is made of them: what an agent does first, and how its walk ends.

`python -m tests.advice.survey > docs/reference/advice.md` writes the page.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.advice import starts
from tests.advice.starts import Start
from tests.advice.walker import FIXED, WAYS, BadAdvice, Walker, Way
from tests.compat.orchestrion.account import Account, register
from tests.http.account_resources import Resources
from tests.http.in_process_app import InProcessServer

PAGE = """# Where the advice leads

An agent that does what the first recommended action of `agent_contract` says, word for word, up to ten steps, comes to
one of these ends. It never meets a loop, a dead end, a missing tool, route or command, a route of another API, or work
that nobody asked for. A test follows every path and compares this page with it.

Rows that Orchestrion's clients rely on are as its V1 fixes them on its own HTTP routes: the states of a task, the
codes of its errors, the list of tasks and the answer to a registration. MCP and the command line have better advice
there.

"""


class Row(NamedTuple):
    """One walk."""

    table: str
    name: str
    way: str
    action: str
    end: str


def survey(server: InProcessServer) -> Iterator[Row]:
    """Make every walk on a server; every failed one is told in one error."""
    tools = {tool["name"]: tool for tool in server.anyone.get("/v1/tool").json["tools"]}
    bad: list[str] = []

    def new_account() -> Account:
        return register(server.anyone)

    for table, name, start, caller, way in _all(server, new_account):
        walker = Walker(caller, tools, way)
        walker.proofs |= start.proofs
        try:
            action, end = walker.walk(start.document, start.operation, start.subject)
        except BadAdvice as problem:
            bad.append(f"{way.name}: {start.name} ({name}): {problem}")
            continue
        yield Row(table, start.name, way.name, action, end)
    assert not bad, "\n".join(bad)


def _all(server: InProcessServer, new_account: Callable[[], Account]) -> Iterator[tuple[str, str, Start, Account, Way]]:
    callers: list[Account] = []

    def account() -> Account:
        callers.append(new_account())
        return callers[-1]

    for way in WAYS:
        for name, begin in (*starts.of_operations(account), *starts.of_states(account)):
            if way.has(name):
                start = begin()
                yield _table(start), name, start, callers[-1], way
        for name, begin in starts.of_public_operations(server.anyone):
            if way.has(name):
                yield "answers", name, begin(), new_account(), way
    it = Resources(new_account())
    seen: set[tuple[str, ...]] = set()
    for start in (*starts.of_refusals(it), starts.unknown_path("/v1/nothing"), starts.unknown_path("/nothing")):
        for way in WAYS:
            kind = _kind(start, way)
            if way.has(start.operation.name) and kind not in seen:
                seen.add(kind)
                proofs = {thing.id: thing.proof for thing in it.made if thing.proof}
                yield "refusals", start.operation.name, start._replace(proofs=proofs), it.account, way


def _table(start: Start) -> str:
    return "refusals" if start.name.startswith("`") else "answers"


def _kind(start: Start, way: Way) -> tuple[str, ...]:
    """Refusals with the same code and the same first request have the same walk."""
    step = start.document["agent_contract"]["next_actions"][0]
    endpoint = step.get("endpoint", "").replace(start.subject or "-", "{}").partition("?")[0]
    return way.name, start.name, start.operation.error_family, step["action"], endpoint


def page(rows: list[Row]) -> str:
    """The page with the tables."""
    parts = [PAGE.rstrip("\n")]
    for table, title in (("refusals", "Refusals"), ("answers", "Answers")):
        names = sorted({row.name for row in rows if row.table == table}, key=lambda name: name.strip("`"))
        head = "code" if table == "refusals" else "operation or state"
        lines = [f"## {title}", "", f"| {head} | HTTP | MCP | command line |", "| --- | --- | --- | --- |"]
        for name in names:
            of_name = [row for row in rows if (row.table, row.name) == (table, name)]
            cells = [_cell([row for row in of_name if row.way == way.name]) for way in WAYS]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _cell(rows: list[Row]) -> str:
    ends = dict.fromkeys(f"`{row.action}`: {row.end}" for row in sorted(rows, key=lambda row: row.end == FIXED))
    return "; ".join(ends) or "-"


if __name__ == "__main__":
    server = InProcessServer()
    try:
        sys.stdout.write(page(list(survey(server))))
    finally:
        server.close()
