"""Open connections within the limit of open files: idle ones are closed first, and some files stay for the store.

Without a bound, callers that only connect use up the files of the process: nobody else can connect then, and the store
can open none.
"""

from __future__ import annotations

import itertools
import logging
import resource
import time
from collections.abc import Callable
from typing import Protocol

from holdfast.telemetry import metric_names
from holdfast.telemetry.registry import Registry

WANTED_FILES = 65_536
MAX_RESERVED_FILES = 1_024
"""Files that are kept for the store, webhooks, logs and TLS handshakes; at most a quarter of all."""
IDLE_SECONDS = 75.0
"""A connection without a request for longer than this is closed, a second later at most."""
REPORT_SECONDS = 10.0

log = logging.getLogger("holdfast.http")


class Connection(Protocol):
    """A connection that can be closed."""

    def abort(self) -> None:
        """Close it at once."""

    def close_if_idle(self) -> None:
        """Close it unless a request has begun to arrive."""


def raise_file_limit() -> None:
    """Let this process open as many files as the system allows it, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, WANTED_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:  # macOS has a lower limit than it reports
            log.warning("at most %d files can be open: %s", soft, error)


def max_connections() -> int:
    """How many connections leave enough files for everything else."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = WANTED_FILES if soft == resource.RLIM_INFINITY else soft
    return files - min(MAX_RESERVED_FILES, files // 4)


class OpenConnections:
    """Counts connections. One too many closes the one that has been idle for the longest: without a complete request.

    If none is idle, that is the new connection itself.
    """

    def __init__(self, limit: int, registry: Registry) -> None:
        self._limit = limit
        self._registry = registry
        self._open: set[Connection] = set()
        self._idle: dict[Connection, float] = {}
        """Since when, the first ones first. A timer for each answer would cost more than sending it."""
        self._closed = 0
        self._reported = 0.0
        self.on_change: Callable[[], None] = lambda: None
        """Called when a connection was opened or closed."""

    def count(self) -> int:
        """How many are open."""
        return len(self._open)

    def add(self, connection: Connection) -> None:
        """A new connection, which has sent nothing yet."""
        self._open.add(connection)
        self._idle[connection] = time.monotonic()
        if len(self._open) > self._limit:
            self._close(next(iter(self._idle)), is_new=len(self._idle) == 1)
        self._registry.set(metric_names.CONNECTIONS, to=len(self._open))
        self.on_change()

    def begin_request(self, connection: Connection) -> None:
        """The head of a request has arrived."""
        self._idle.pop(connection, None)

    def end_request(self, connection: Connection) -> None:
        """The request is answered: the connection waits for another one."""
        if connection in self._open:
            self._idle[connection] = time.monotonic()

    def close_idle(self) -> None:
        """Close those that have been idle for too long; called every second."""
        last = time.monotonic() - IDLE_SECONDS
        for connection in [*itertools.takewhile(lambda each: self._idle[each] <= last, self._idle)]:
            connection.close_if_idle()

    def remove(self, connection: Connection) -> None:
        """The connection is closed."""
        self._idle.pop(connection, None)
        self._open.discard(connection)
        self._registry.set(metric_names.CONNECTIONS, to=len(self._open))
        self.on_change()

    def _close(self, connection: Connection, *, is_new: bool) -> None:
        self.remove(connection)
        connection.abort()
        self._registry.add(metric_names.CLOSED_CONNECTIONS, "new" if is_new else "idle")
        self._closed += 1
        moment = time.monotonic()
        if moment - self._reported >= REPORT_SECONDS:
            log.warning(
                "%d connections are open, as many as the limit of open files allows: %d were closed since the last such"
                " line, idle ones first; raise the limit with `ulimit -n`",
                self._limit,
                self._closed,
            )
            self._closed, self._reported = 0, moment
