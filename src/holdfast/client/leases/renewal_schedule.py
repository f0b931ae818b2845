"""Which leases to renew next, and in which requests. Only decides: nothing here sends or waits.

Leases that are renewed at different times would need a request each. So when one is due, all that are half way to
their next renewal are renewed with it, and from then on they are due together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Generic, TypeVar

from holdfast.client.errors import Document, HoldfastError, error_of
from holdfast.client.leases.base import LeaseBase, log
from holdfast.client.leases.clock import now
from holdfast.client.leases.state import Duration
from holdfast.operations.bounds import HEARTBEAT_LEASES

SHORTEST_PAUSE = 0.05
"""Seconds between two rounds of renewals: a lease that cannot be renewed at this moment is tried again after that."""

LONGEST_REQUEST = 10.0
"""Seconds for one request, even if its leases allow more: they cannot be renewed otherwise before it has ended."""

L = TypeVar("L", bound=LeaseBase)


class RenewalSchedule(Generic[L]):
    """The leases that a client holds."""

    def __init__(self) -> None:
        self._held: set[L] = set()

    def __bool__(self) -> bool:
        """Whether there is anything to renew."""
        return bool(self._held)

    def add(self, leases: Iterable[L]) -> None:
        """Renew these leases from now on."""
        self._held.update(leases)

    def discard(self, leases: Iterable[L]) -> None:
        """Renew these leases no more."""
        self._held.difference_update(leases)

    def pause(self) -> float:
        """Seconds until the next renewal is due; there must be one."""
        return max(SHORTEST_PAUSE, min(lease.state.pause() for lease in self._held))

    def timeout(self) -> float:
        """Seconds that one request may take, so that a request without an answer costs no other lease its renewal."""
        return shortest_timeout(self._held)

    def due(self) -> list[list[L]]:
        """The leases to renew now, as many in one request as possible. Those that are over are renewed no more."""
        self._held = {lease for lease in self._held if not lease.state.is_over()}
        is_due = {lease: lease.state.pause() <= 0 for lease in self._held}
        if not any(is_due.values()):
            return []
        due = [lease for lease in self._held if is_due[lease] or lease.state.is_stale]
        together = [lease for lease in due if lease.terms.entry is not None]
        most = HEARTBEAT_LEASES.most
        groups = [together[start : start + most] for start in range(0, len(together), most)]
        return groups + [[lease] for lease in due if lease.terms.entry is None]


def shortest_timeout(leases: Iterable[LeaseBase]) -> float:
    """Seconds that one request for these leases may take."""
    return min(LONGEST_REQUEST, *(lease.state.request_timeout for lease in leases))


class RenewalOfMany:
    """One request that renews several leases, and what its answer means for each. Create it right before sending."""

    def __init__(self, leases: Sequence[LeaseBase]) -> None:
        self._leases = leases
        self._sent = now()

    @property
    def entries(self) -> list[Document]:
        """The leases, as `heartbeat_leases` takes them."""
        return [(lease.terms.entry or {}) | lease.handover for lease in self._leases]

    def answered(self, document: Document) -> None:
        """Each lease was renewed or refused, whatever happened to the others."""
        for lease, result in zip(self._leases, document["results"], strict=True):
            if result["status"] == HTTPStatus.OK:
                granted = Duration(float(result["expires_in_seconds"]), float(result["heartbeat_every_seconds"]))
                lease.state.renewed(self._sent, granted, result)
            else:
                _refuse(lease, error_of(result["status"], result, {}))

    def failed(self, error: HoldfastError) -> None:
        """There was no answer about any lease: each is renewed again soon."""
        for lease in self._leases:
            _refuse(lease, error)


def _refuse(lease: LeaseBase, error: HoldfastError) -> None:
    lease.state.refused(error)
    log.info("%s was not renewed: %s", lease.terms.what, error)
