"""Several statements in one round trip, straight over libpq.

psycopg's pipeline costs more processor time than PostgreSQL needs for our statements. It also treats a statement as
prepared although the server skipped it because an earlier statement of the pipeline failed. Here statements are
prepared once per connection, outside any pipeline, and results come back as text.
"""

from __future__ import annotations

import math
import select
import time

from psycopg import pq
from psycopg.errors import error_from_result

from holdfast.store.postgres.connection import Connection, NoAnswer

Parameter = bytes | str | int | None
Statement = tuple[str, tuple[Parameter, ...]]
ResultRows = list[tuple[bytes | None, ...]]

_GOOD = {pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK}


class Pipeline:
    """Executes lists of statements on one connection, each list in one round trip."""

    def __init__(self, connection: Connection, *, prepare: bool) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self.expects_new = False
        """Whether most of the names in the last batch were not stored: then the next one asks for their last versions
        before it knows whether they are (`transaction.py`)."""
        self._prepare = prepare
        self._names: dict[str, bytes] = {}
        self._readable = select.poll()
        self._readable.register(self._pgconn.socket, select.POLLIN)
        self._ready = select.poll()
        self._ready.register(self._pgconn.socket, select.POLLIN | select.POLLOUT)

    def run(self, *statements: Statement, seconds: float | None = None) -> list[ResultRows]:
        """The result of each statement. After the first error the server skips the rest; the error is raised.

        NoAnswer is raised after `seconds`, or after the usual time of the connection.
        """
        pgconn, seconds = self._pgconn, seconds or self._connection.answer_seconds
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        if self._prepare:
            self._prepare_all(statements, deadline)
        pgconn.enter_pipeline_mode()
        for sql, parameters in statements:
            values = [value if value is None or type(value) is bytes else str(value).encode() for value in parameters]
            if parameters and self._prepare:
                pgconn.send_query_prepared(self._names[sql], values)
            else:
                pgconn.send_query_params(sql.encode(), values)
        pgconn.pipeline_sync()
        while pgconn.flush():  # more than the socket takes at once
            self._wait(self._ready, deadline)
            pgconn.consume_input()
        results, failure = self._read_results(len(statements), deadline)
        pgconn.exit_pipeline_mode()
        if failure is not None:
            raise error_from_result(failure)
        return results

    def _read_results(self, count: int, deadline: float) -> tuple[list[ResultRows], pq.abc.PGresult | None]:
        results: list[ResultRows] = []
        failure: pq.abc.PGresult | None = None
        while True:
            result = self._next_result(deadline)
            if result is None:
                continue  # the end of one statement's result
            status = result.status
            if status in _GOOD:
                results.append(_rows(result))
            elif status == pq.ExecStatus.PIPELINE_SYNC:
                assert failure is not None or len(results) == count
                return results, failure
            elif failure is None and status != pq.ExecStatus.PIPELINE_ABORTED:
                failure = result

    def _next_result(self, deadline: float) -> pq.abc.PGresult | None:
        """Wait for the next result; Python's global lock is released meanwhile."""
        pgconn = self._pgconn
        while pgconn.is_busy():
            self._wait(self._readable, deadline)
            pgconn.consume_input()
        return pgconn.get_result()

    def _wait(self, events: select.poll, deadline: float) -> None:
        """Wait for the socket; at the deadline drop the connection."""
        left = deadline - time.monotonic()
        if not events.poll(None if left == math.inf else max(left, 0.0) * 1000):
            self._connection.close()
            raise NoAnswer

    def _prepare_all(self, statements: tuple[Statement, ...], deadline: float) -> None:
        """Prepare the statements that are new on this connection."""
        for sql, parameters in statements:
            if parameters and sql not in self._names:
                name = f"holdfast_{len(self._names)}".encode()
                self._pgconn.send_prepare(name, sql.encode())
                result = self._finish(deadline)
                if result.status not in _GOOD:
                    raise error_from_result(result)
                self._names[sql] = name

    def _finish(self, deadline: float) -> pq.abc.PGresult:
        """The result of a command outside of a pipeline."""
        while self._pgconn.flush():
            self._wait(self._ready, deadline)
            self._pgconn.consume_input()
        result = self._next_result(deadline)
        assert result is not None
        while self._next_result(deadline) is not None:
            pass  # the end of its result
        return result


def _rows(result: pq.abc.PGresult) -> ResultRows:
    count = result.ntuples
    if not count:
        return []
    value, columns = result.get_value, range(result.nfields)
    return [tuple([value(row, column) for column in columns]) for row in range(count)]
