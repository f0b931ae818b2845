"""The heartbeat that servers write into the store: when it has been missing for a while, holders get grace."""

from __future__ import annotations

import logging
import math
import time

from holdfast.core.errors import HoldfastError
from holdfast.core.row import SECOND, Instant
from holdfast.engine.outages import OUTAGE_SECONDS, Outages
from holdfast.store.contract import Store

BEAT_SECONDS = 1.0
OTHERS_SECONDS = 1.5
"""A server that runs writes a heartbeat within this time."""

log = logging.getLogger("holdfast.sweep")


class ServerHeartbeat:
    """One heartbeat for all servers of a store. Embedded programs read it and write none."""

    def __init__(self, store: Store, outages: Outages, *, serving: bool) -> None:
        self._store = store
        self._outages = outages
        self._serving = serving
        self._written_at = 0.0
        self._own: Instant | None = None
        """The last one that this server wrote."""
        self._others_ran_at = -math.inf
        self._hidden_outage: Instant | None = None
        """The last heartbeat before an outage that a later one hides."""
        self.wait = time.sleep

    def write(self) -> None:
        """Record that a server runs. If the heartbeat before this one is new and not its own, another one runs too.

        The process may have been suspended just now: then this heartbeat would hide the outage.
        """
        before, at = self._store.beat()
        if before is not None and before != self._own and at - before <= OUTAGE_SECONDS * SECOND:
            self._others_ran_at = self._outages.now()
        elif self._outages.is_paused():
            self._hidden_outage = before or at - int(self._outages.seconds_paused() * SECOND)
        self._own = at

    def write_if_due(self) -> bool:
        """Write it once a second; returns whether it was written."""
        now = time.monotonic()
        if now - self._written_at < BEAT_SECONDS:
            return False
        self.write()
        self._written_at = now
        return True

    def record_stop(self) -> None:
        """Record that no outage begins now, unless another server runs: when it is killed, that must be seen.

        Servers that stop together leave the record to the last one.
        """
        try:
            self.write()
            if self._outages.now() - self._others_ran_at <= OUTAGE_SECONDS:
                self.wait(OTHERS_SECONDS)
            assert self._own is not None
            self._store.close_outage(self._own)  # nothing, if another server has written one since
        except HoldfastError:
            log.warning("the clean shutdown could not be recorded in the store")

    def last_service(self) -> tuple[Instant | None, Instant]:
        """(when a server last ran, or None if none was running, now).

        The store has no heartbeat if another server stopped on purpose, or if a program has given grace meanwhile. A
        server that was paused knows itself that its holders could not renew.
        """
        beat = self._store.last_beat()
        if beat is not None and self._hidden_outage is not None:
            return self._hidden_outage, beat[1]
        if beat is not None or not self._serving or not self._outages.is_paused():
            return beat or (None, 0)
        with self._store.read() as reader:
            return reader.now - int(self._outages.seconds_paused() * SECOND), reader.now

    def close_outage(self, outage: Instant) -> None:
        """Record that grace was given for the outage after this heartbeat, and that a server runs again."""
        if not self._serving:
            self._store.close_outage(outage)
            self._outages.record_check(0.0)
            return
        self.forget_outage()
        self.write()

    def forget_outage(self) -> None:
        """Grace was given for the outage that a heartbeat has hidden."""
        self._hidden_outage = None

    def is_kept(self) -> bool:
        """Whether a server keeps it. That server ends what expires; if it was killed, grace comes first."""
        beat = self._store.last_beat()
        return beat is not None and beat[1] - beat[0] <= OUTAGE_SECONDS * SECOND
