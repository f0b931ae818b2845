"""Opens a store in a forked process that is killed with SIGKILL before the n-th statement that it sends.

On SQLite every statement is counted by the library. To PostgreSQL a migration is sent as one message; here it is sent
statement by statement, so that the process can be killed between any two of them.
"""

from __future__ import annotations

import os
import re
import signal
from typing import Any

import apsw
import psycopg

from holdfast.app import make_store
from holdfast.settings import Settings
from holdfast.store.postgres.connection import Connection
from holdfast.store.sqlite.store import SqliteStore

HANG_SECONDS = 60
AFTER_THE_LAST = -1
INSIDE_COMMIT = -2
"""PostgreSQL only: COMMIT is sent, and its answer is not awaited."""
_PARTS = re.compile(r"--[^\n]*\n?|'(?:[^']|'')*'|\$\$.*?\$\$|;|[^;'$-]+|.", re.DOTALL)


class Counter:
    """Counts statements and kills the process before one of them, or at one of the moments above."""

    def __init__(self, kill_at: int) -> None:
        self._kill_at = kill_at
        self.statements: list[str] = []

    def count(self, statement: str) -> None:
        self.statements.append(statement)
        if len(self.statements) == self._kill_at:
            kill()

    @property
    def kills_inside_commit(self) -> bool:
        return self._kill_at == INSIDE_COMMIT


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def open_and_kill(address: str, kill_at: int = 0) -> list[str]:
    """Open a store in a child process; returns its statements if it was not to be killed.

    At the moment of the fork another thread of the test process may have a lock inside SQLite. Such a child hangs
    before its first statement, and is ended by its alarm; then another one is forked.
    """
    statements, status = _open_in_child(address, kill_at)
    while os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        statements, status = _open_in_child(address, kill_at)
    assert os.WIFSIGNALED(status) == bool(kill_at), f"the child ended with {status}: {statements}"
    return statements.split("\x1f")


def _open_in_child(address: str, kill_at: int) -> tuple[str, int]:
    """What a child process wrote, and how it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _run_child(address, kill_at, writing)
    os.close(writing)
    with os.fdopen(reading) as told:
        statements = told.read()
    _, status = os.waitpid(child, 0)
    return statements, status


def _run_child(address: str, kill_at: int, writing: int) -> None:
    """Never returns: what the test process has registered for its own end must not run here."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(HANG_SECONDS)
    try:
        counter = Counter(kill_at)
        (_count_on_postgres if address.startswith("postgresql:") else _count_on_sqlite)(counter)
        make_store(Settings(store=address)).open()
        if kill_at == AFTER_THE_LAST:
            kill()
        os.write(writing, "\x1f".join(counter.statements).encode())
    except BaseException as error:
        os.write(writing, repr(error).encode())
        os._exit(1)
    os._exit(0)


def _count_on_sqlite(counter: Counter) -> None:
    connect = SqliteStore._connect

    def connect_and_count(store: SqliteStore) -> apsw.Connection:
        connection = connect(store)

        def trace(_cursor: apsw.Cursor, statement: str, _bindings: Any) -> bool:
            counter.count(statement)
            return True

        connection.exec_trace = trace
        return connection

    SqliteStore._connect = connect_and_count  # type: ignore[method-assign]


def _count_on_postgres(counter: Counter) -> None:
    def execute(connection: Connection, query: str, arguments: Any = None, **more: Any) -> psycopg.Cursor[Any]:
        cursor = connection.cursor()
        for statement in [query] if arguments else split(query):
            counter.count(statement)
            if counter.kills_inside_commit and statement == "COMMIT":
                connection.pgconn.send_query(b"COMMIT")
                connection.pgconn.flush()
                kill()
            cursor.execute(statement, arguments, **more)
        return cursor

    Connection.execute = execute  # type: ignore[method-assign,assignment]


def split(script: str) -> list[str]:
    """The statements of a script, without comments."""
    statements, statement = [], ""
    for part in _PARTS.findall(f"{script};"):
        if part == ";":
            statements.append(statement.strip())
            statement = ""
        elif not part.startswith("--"):
            statement += part
    return [statement for statement in statements if statement]
