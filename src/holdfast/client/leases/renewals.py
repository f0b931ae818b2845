"""Renews everything that a client holds, in one thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.client.errors import HoldfastError, Invalid, Limited, NotFound
from holdfast.client.leases.base import log
from holdfast.client.leases.clock import now
from holdfast.client.leases.renewal_schedule import RenewalOfMany, RenewalSchedule, shortest_timeout

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.client.leases.lease import Lease

IDLE_SECONDS = 5.0
"""How often the thread looks whether anything is held; it ends if not, and the next lease starts another."""
SEPARATELY = (Invalid, NotFound, Limited)
"""Errors of a request for many leases after which each is renewed by itself: it is too large, the server is of a
version without this operation, or the account's plan allows so many renewals no more, but perhaps some."""


class Renewals:
    """The thread that renews the leases of one client. It runs while anything is held."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._schedule: RenewalSchedule[Lease] = RenewalSchedule()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = 0.0

    def add(self, *leases: Lease) -> None:
        """Renew these leases from now on."""
        with self._changed:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="holdfast-renewals", daemon=True)
                thread.start()  # if the system refuses it, the next lease starts one
                self._thread = thread
            elif min(lease.state.pause() for lease in leases) < self._wakes_at - now():
                self._changed.notify()
            self._schedule.add(leases)

    def renew_stale(self, leases: Sequence[Lease]) -> None:
        """Renew those that were perhaps granted long ago, after a claim that waited: what is certain begins anew."""
        stale = [lease for lease in leases if lease.state.is_stale]
        if stale:
            self._try_to_renew(stale, shortest_timeout(stale))

    def discard(self, *leases: Lease) -> None:
        """Renew these leases no more. A renewal that is under way may still arrive at the server, which refuses it."""
        with self._changed:
            self._schedule.discard(leases)

    def _run(self) -> None:
        while self._wait():
            with self._changed:
                groups, timeout = self._schedule.due(), self._schedule.timeout() if self._schedule else 0.0
            for group in groups:
                self._try_to_renew(group, timeout)

    def _wait(self) -> bool:
        """Wait until a renewal may be due; False if nothing is held any more."""
        with self._changed:
            while True:
                pause = min(IDLE_SECONDS, self._schedule.pause()) if self._schedule else IDLE_SECONDS
                self._wakes_at = now() + pause
                if self._changed.wait(pause):
                    continue  # there is a new lease
                if not self._schedule:
                    self._thread = None
                return bool(self._schedule)

    def _try_to_renew(self, group: list[Lease], timeout: float) -> None:
        try:
            self._renew(group, timeout)
        except Exception:  # noqa: BLE001 - such as an answer of a proxy: other leases are renewed
            log.exception("%d leases were not renewed", len(group))

    def _renew(self, group: list[Lease], timeout: float) -> None:
        """Renew leases in one request, except those that another thread renews at this moment."""
        leases = [lease for lease in group if lease.one_renewal.acquire(blocking=False)]
        try:
            if len(leases) > 1:
                self._renew_together(leases, timeout)
            else:
                self._renew_separately(leases, timeout)
        finally:
            for lease in leases:
                lease.one_renewal.release()

    def _renew_together(self, leases: list[Lease], timeout: float) -> None:
        renewal = RenewalOfMany(leases)
        try:
            document = self._client.call("heartbeat_leases", leases=renewal.entries, timeout=timeout, deadline=timeout)
        except SEPARATELY:
            self._renew_separately(leases, timeout)
        except HoldfastError as error:
            renewal.failed(error)
        else:
            renewal.answered(document)

    def _renew_separately(self, leases: list[Lease], timeout: float) -> None:
        for lease in leases:
            try:
                lease.send_renewal(lease.handover, timeout)
            except HoldfastError as error:
                log.info("%s was not renewed: %s", lease.terms.what, error)
