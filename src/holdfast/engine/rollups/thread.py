"""The roll-up thread: counts the event log once a minute, so that charts need not read it."""

from __future__ import annotations

import logging
import threading

from holdfast.core.errors import HoldfastError
from holdfast.core.rollups.intervals import RESOLUTIONS
from holdfast.core.row import SECOND
from holdfast.engine.rollups.counting import Pause, count_log
from holdfast.store.contract import Rerun, Store
from holdfast.store.contract.rollups import CountedEvents, UncountedLog

ROUND_SECONDS = 60.0
SERVER_TURN = 45 * SECOND
"""An account of which a server has saved roll-ups less long ago is left alone: several servers take turns."""
ACCOUNTS_PER_PASS = 1_000
EVENTS_PER_SAVE = 20_000
"""Events that are counted before something is saved: a restart counts at most so many again."""
ACCOUNTS_PER_SAVE = 50
"""Accounts that are saved in one transaction: on SQLite other writers wait for it."""

log = logging.getLogger("holdfast.rollups")


class RollupThread:
    """Counts the logs of all accounts. Of several servers on one store, one counts an account at a time.

    The cursor of an account moves in the transaction that saves what was counted, and only from where it was read, so
    that an event is counted once, whatever is killed or runs at the same time.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-rollups", daemon=True)
        self.pause: Pause = self._stopped.wait
        """Waits between two pages; returns whether to stop."""

    def start(self) -> None:
        """Start the thread; its first pass is a minute later."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the current page and stop. What is not saved is counted by the next server."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(ROUND_SECONDS):
            try:
                self.run()
            except HoldfastError as error:
                log.warning("events could not be counted: %s", error.message)
            except Rerun:
                log.info("another server has counted the same events")
            except Exception:
                log.exception("events could not be counted")

    def run(self) -> None:
        """Count everything that is not counted, in one write unless there is a lot of it."""
        with self._store.read() as reader:
            turn = max(reader.now - SERVER_TURN, 0)
        counted: list[CountedEvents] = []
        size = 0
        for uncounted in self._store.rollups.uncounted(turn, ACCOUNTS_PER_PASS):
            at = uncounted
            while at.cursor is None or at.cursor < at.last:
                part, is_stopped = count_log(self._store, at, EVENTS_PER_SAVE - size, self.pause)
                counted.append(part)
                size += part.seq - max(at.cursor or 0, at.floor)
                if size >= EVENTS_PER_SAVE or len(counted) >= ACCOUNTS_PER_SAVE:
                    moved, counted, size = self._save(counted), [], 0
                    if part.account not in moved:  # another server counts this account
                        break
                if is_stopped:
                    return
                at = UncountedLog(at.account, part.seq, at.floor, at.last)
        if counted:
            self._save(counted)

    def _save(self, counted: list[CountedEvents]) -> list[str]:
        with self._store.read() as reader:
            now = min(reader.now, reader.wall)  # a wrong clock must not make everything look old
        return self._store.rollups.add(counted, {each.length: each.kept_since(now) for each in RESOLUTIONS})
