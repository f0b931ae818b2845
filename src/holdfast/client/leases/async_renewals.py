"""Renews everything that an asyncio client holds, in one task."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.client.errors import HoldfastError
from holdfast.client.leases.base import log
from holdfast.client.leases.clock import now
from holdfast.client.leases.renewal_schedule import RenewalOfMany, RenewalSchedule
from holdfast.client.leases.renewals import SEPARATELY

if TYPE_CHECKING:
    from holdfast.client.async_client import AsyncClient
    from holdfast.client.leases.async_lease import AsyncLease


class AsyncRenewals:
    """The task that renews the leases of one client on one event loop. It runs while anything is held."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.loop = asyncio.get_running_loop()
        self._schedule: RenewalSchedule[AsyncLease] = RenewalSchedule()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._wakes_at = 0.0

    def add(self, lease: AsyncLease) -> None:
        """Renew this lease from now on."""
        self._schedule.add([lease])
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="holdfast-renewals")
        elif lease.state.pause() < self._wakes_at - now():
            self._changed.set()

    async def discard(self, lease: AsyncLease) -> None:
        """Renew this lease no more; the task ends with the last one."""
        self._schedule.discard([lease])
        if not self._schedule and self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            await asyncio.wait({task})

    async def _run(self) -> None:
        while self._schedule:
            pause = self._schedule.pause()
            self._wakes_at = now() + pause
            await self._wait(pause)
            groups, timeout = self._schedule.due(), self._schedule.timeout() if self._schedule else 0.0
            for group in groups:
                try:
                    await self._renew(group, timeout)
                except Exception:  # noqa: BLE001 - such as an answer of a proxy: other leases are renewed
                    log.exception("%d leases were not renewed", len(group))

    async def _wait(self, pause: float) -> None:
        """Wait until a renewal is due, or until there is a new lease."""
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), pause)
        except TimeoutError:
            return

    async def _renew(self, group: list[AsyncLease], timeout: float) -> None:
        """Renew leases in one request, except those that another task renews at this moment."""
        leases = [lease for lease in group if not lease.one_renewal.locked()]
        for lease in leases:
            await lease.one_renewal.acquire()  # at once, because it is not locked
        try:
            if len(leases) > 1:
                await self._renew_together(leases, timeout)
            else:
                await self._renew_separately(leases, timeout)
        finally:
            for lease in leases:
                lease.one_renewal.release()

    async def _renew_together(self, leases: list[AsyncLease], timeout: float) -> None:
        renewal = RenewalOfMany(leases)
        try:
            document = await self._client.call(
                "heartbeat_leases", leases=renewal.entries, timeout=timeout, deadline=timeout
            )
        except SEPARATELY:
            await self._renew_separately(leases, timeout)
        except HoldfastError as error:
            renewal.failed(error)
        else:
            renewal.answered(document)

    async def _renew_separately(self, leases: list[AsyncLease], timeout: float) -> None:
        for lease in leases:
            try:
                await lease.send_renewal(lease.handover, timeout)
            except HoldfastError as error:
                log.info("%s was not renewed: %s", lease.terms.what, error)
