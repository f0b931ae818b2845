"""What simulated clients do with reservations: reserve, wait, keep their place, renew, release, extend, force."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from holdfast.core.errors import Refused
from holdfast.core.holdings.lease_ids import held_lease_id
from holdfast.core.reservation.row import EXCLUSIVE, SHARED, Reservation, paths_of
from holdfast.core.reservation.row import Request as Wanted
from holdfast.engine.command import Command, Replayed
from holdfast.engine.verbs.reservation_claims import Reserve, Reserved
from holdfast.engine.verbs.reservations import (
    ChangedReservation,
    ExtendReservation,
    FilesHeld,
    ForceReleaseReservation,
    HeartbeatReservation,
    ReleaseReservation,
    ReservationOutcome,
)
from holdfast.engine.verbs.sessions import BegunSession
from tests.simulation.activities import WAIT_SECONDS, SessionActivity
from tests.simulation.clients import BASE, TTL, Activity, Client
from tests.simulation.request import Operation, is_holder_command

SPACES = ("shop", "shop", "site")
PATTERNS = ("src/a", "src/b", "src/", "src/*", "docs/**", "docs/x", "**/x")
FILES = ("src", "src/a", "src/b", "src/x", "src/a/x", "docs", "docs/a", "docs/x", "docs/a/x", "x")
"""Paths in which any two of the patterns overlap that overlap at all."""


@cache
def files_of(pattern: str) -> frozenset[str]:
    """The files that a pattern matches, found without any rule of core."""
    text = re.escape(pattern).replace(r"\*\*/", "(?:.+/)?").replace(r"/\*\*", "(?:/.+)?").replace(r"\*", "[^/]*")
    expression = re.compile(text + (".+" if pattern.endswith("/") else ""))
    return frozenset(file for file in FILES if expression.fullmatch(file))


def files_in_both(mine: list[str], theirs: list[str]) -> frozenset[str]:
    """The files that two lists of patterns have in common."""
    return frozenset().union(*map(files_of, mine)) & frozenset().union(*map(files_of, theirs))


class ReservationActivity(Activity):
    """Reserves paths, for a session if the client has one."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.session: SessionActivity | None = None
        self.held: dict[str, str] = {}
        """By reservation: its lease id."""
        self.places: list[tuple[str, Wanted]] = []
        """Places that the client may continue, each with its request."""
        self.past: list[tuple[str, str]] = []
        self.known: dict[str, Reservation] = {}
        """By reservation: the newest row that an answer showed."""
        self.conflicting: list[str] = []
        """The reservations that conflicted with the last request."""

    def join(self, session: SessionActivity) -> None:
        """Reserve for a session of the client."""
        self.session = session
        session.on_begun.append(self._begun)

    def next_operation(self) -> Operation | None:
        chance = self.random.random()
        if self.held and chance < 0.6:
            return self.operation(self._write(*self.random.choice(sorted(self.held.items()))))
        if self.past and chance < 0.7:
            return self.operation(self._write(*self.random.choice(self.past)))
        if self.conflicting and chance < 0.76:
            forced = {"reservation_id": self.random.choice(self.conflicting), "by": "admin", "reason": "it hangs"}
            return self.operation(ForceReleaseReservation(**BASE, **forced))
        return self._reserve()

    def _reserve(self) -> Operation:
        waits = self.random.random() < 0.6
        place: str | None = None
        wanted = self._wanted()
        if self.places and self.random.random() < 0.7:
            place, wanted = self.places.pop()
        lease_id = None if self.session is None or wanted.session is None else self.session.lease_id
        command = Reserve(
            **BASE, by=self.client.principal, request=wanted, reservation_id="", lease_id="", waiting_id=place,
            may_wait=waits, session_lease_id=lease_id, once=self.maybe_once(0.2),
        )  # fmt: skip
        wait_seconds = self.random.choice([TTL / 2e6, WAIT_SECONDS]) if waits else 0.0
        return self.operation(command, wait_seconds)

    def _wanted(self) -> Wanted:
        has_session = self.session is not None and self.session.lease_id is not None and self.random.random() < 0.6
        return Wanted(
            space=self.random.choice(SPACES), mode=self.random.choice([EXCLUSIVE, EXCLUSIVE, SHARED]),
            paths=tuple(self.random.sample(PATTERNS, self.random.randint(1, 2))), owner=str(self.client),
            principal=self.client.principal.id, ttl=TTL,
            session=self.session.session_id if self.session is not None and has_session else None,
        )  # fmt: skip

    def _write(self, reservation_id: str, lease_id: str) -> Command[Any]:
        mine: dict[str, Any] = {"reservation_id": reservation_id, "lease_id": lease_id}
        chance = self.random.random()
        if chance < 0.35:
            ttl = self.random.choice([None, TTL // 2, 2 * TTL])
            return HeartbeatReservation(**BASE, **mine, ttl=ttl)
        if chance < 0.5:
            added = (self.random.choice(PATTERNS),)
            return ExtendReservation(**BASE, **mine, space=self.known[reservation_id].space, paths=added)
        some = (self.random.choice(paths_of(self.known[reservation_id])),) if chance < 0.75 else ()
        return ReleaseReservation(**BASE, **mine, paths=some, once=self.maybe_once(0.2))

    def receive(self, command: Command[Any], outcome: Any) -> None:
        if isinstance(outcome, ReservationOutcome):
            self.known[outcome.row.id] = outcome.row
        if isinstance(outcome, Reserved):
            self.held[outcome.row.id] = outcome.lease_id
        elif isinstance(outcome, FilesHeld):
            self.conflicting = [conflict.row.id for conflict in outcome.conflicts]
            if outcome.waiting_id is not None and isinstance(command, Reserve):
                self.places.append((outcome.waiting_id, command.request))
        elif is_holder_command(command):
            is_over = isinstance(outcome, ChangedReservation) and outcome.row.proof is None
            is_lost = isinstance(outcome, Refused) and outcome.code == "lease_lost"
            if is_over or is_lost or isinstance(outcome, Replayed):
                self._lose(command.reservation_id, command.lease_id)

    def _lose(self, reservation_id: str, lease_id: str) -> None:
        self.past.append((reservation_id, lease_id))
        if self.held.get(reservation_id) == lease_id:
            del self.held[reservation_id]

    def _begun(self, outcome: BegunSession) -> None:
        """Reservations of a session that was resumed have new lease ids."""
        self.known |= {row.id: row for row in outcome.reservations}
        self.held |= {row.id: held_lease_id(outcome.lease_id, row) for row in outcome.reservations}

    def forget(self) -> None:
        self.past += self.held.items()
        self.held = {}
        self.places = []
