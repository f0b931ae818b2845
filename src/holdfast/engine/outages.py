"""Record of the store's outages and of pauses of this process, shared by the lanes and the sweep."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.clock import boot_seconds
from holdfast.core.errors import ServerOutdated, Trouble

OUTAGE_SECONDS = 5.0
"""A store that no server has served for longer than this had an outage: holders could not renew."""


class Outages:
    """How often the store failed a lane, when this process last ran, and until when a server is known to have run.

    The clock must run while the machine sleeps: a sleeping server serves no renewals.
    """

    def __init__(self, *, serving: bool = True, clock: Callable[[], float] = boot_seconds) -> None:
        self._clock = clock
        self._serving = serving
        self.count = 0
        self.last_run = clock()
        """When the sweep, which runs at least once a second, or a lane last began something that it finished."""
        self._checked_until = 0.0
        self.writable = True
        """Whether the last batch that tried to write succeeded."""
        self.outdated: ServerOutdated | None = None
        """Why this server must not use the store any more; it stays so until the process ends."""

    def record_trouble(self, error: Trouble) -> None:
        """The store failed: holders may need grace when it is back. It never comes back for an outdated server."""
        self.count += 1
        self.writable = False
        if isinstance(error, ServerOutdated):
            self.outdated = error

    def check_outdated(self) -> None:
        """Raise if this server must not use the store any more."""
        if self.outdated is not None:
            raise ServerOutdated(self.outdated.message)

    def is_paused(self) -> bool:
        """Whether this process was stopped or suspended, so that it served no renewals meanwhile."""
        return self.seconds_paused() > OUTAGE_SECONDS

    def seconds_paused(self) -> float:
        """How long ago this process last ran."""
        return self._clock() - self.last_run

    def now(self) -> float:
        """The time by which pauses are measured."""
        return self._clock()

    def record_run(self, began: float) -> None:
        """A pass or a batch that began then is done. Its end does not count: the process may have paused within it."""
        self.last_run = max(self.last_run, began)

    def must_check_server(self) -> bool:
        """Whether a program beside servers must look whether they still run; a server knows that it runs."""
        return not self._serving and self._clock() >= self._checked_until

    def record_check(self, seconds_since_beat: float) -> None:
        """A server was seen to run so many seconds ago: until that is an outage, there is no need to look again."""
        self._checked_until = self._clock() + OUTAGE_SECONDS - max(seconds_since_beat, 0.0)
