"""Random commands about reservations and the sessions that hold them, the same for every store."""

from __future__ import annotations

from typing import Any

from holdfast.core.holdings.lease_ids import held_lease_id
from holdfast.core.reservation.row import EXCLUSIVE, SHARED, paths_of
from holdfast.core.row import SECOND
from holdfast.engine import expiry
from holdfast.engine.command import Once
from holdfast.engine.verbs.reservation_claims import Reserved
from holdfast.engine.verbs.reservations import FilesHeld, LeaveWait, RefreshWaits
from holdfast.engine.verbs.sessions import BegunSession
from tests import reservation_commands as commands
from tests.engine.script import PRINCIPALS
from tests.engine.task_script import TaskScript
from tests.support import CAUSE, START

RESERVATION_VERBS = [
    "reserve", "reserve", "reserve", "wait for files", "wait for files", "renew files", "release files",
    "release some", "extend files", "force files", "refresh", "leave", "expire reservation", "grace for files",
    "begin", "heartbeat session", "close session", "expire named", "write snapshot",
]  # fmt: skip

PATTERNS = ["a/b", "a", "a/", "a/*", "**/b", "c/**", "a/b/c", "c/é", "*", "a0"]
SPACES = ["one", "one", "two"]


def render(outcome: Any) -> tuple[int, bytes]:
    """The stored answer; that to a grant has what a replay needs."""
    if not isinstance(outcome, Reserved):
        return 200, b"{}"
    return 200, f'{{"reservation_id":"{outcome.row.id}","lease_id":"{outcome.lease_id}"}}'.encode()


class ReservationScript(TaskScript):
    """Turns drawn moves into commands. Ids and lease ids come from earlier outcomes, or are wrong on purpose."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock)
        self.reserved: dict[str, list[tuple[str, str, str, tuple[str, ...]]]] = {}
        """By account: id, lease id, space and paths of what was reserved."""
        self.waiting: dict[str, list[tuple[str, Any]]] = {}
        """By account: ids of waits, each with its request."""

    # -- reserving -----------------------------------------------------------------------------------------------

    def reserve(self, drawn: dict[str, Any], base: dict[str, Any], extra: int, **more: Any) -> Any:
        session = self.pick_session(drawn) if extra in {2, 4} else None
        paths = [PATTERNS[(drawn["lease"] * 7 + drawn["name"] * 3) % 10], PATTERNS[(drawn["session"] + extra) % 10]]
        by = PRINCIPALS[0 if session else drawn["who"]]
        key = Once(f"key-{drawn['lease']}", "body", render) if extra == 3 else None
        return commands.reserve(
            f"r{self.made:04}", *dict.fromkeys(paths[: 1 + drawn["who"]]), space=SPACES[drawn["name"]],
            mode=SHARED if drawn["session"] == 3 else EXCLUSIVE, by=by, session=session,
            ttl=drawn["ttl"] * 10 * SECOND, reason=[None, "because"][extra % 2], once=key, **base, **more,
        )  # fmt: skip

    def wait_for_files(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        waiting = self.waiting.get(drawn["account"], [])
        command = self.reserve(drawn, base, extra, may_wait=extra != 4)
        if not waiting or drawn["session"] > 1:
            return command
        place, request = waiting[-1 - drawn["lease"] % len(waiting)]
        if extra % 2:  # the same try of the same caller, once more
            return commands.reserve(place, **base, may_wait=True, request=request)
        return commands.reserve(command.reservation_id, **base, may_wait=extra != 4, request=request, waiting_id=place)

    # -- holding -------------------------------------------------------------------------------------------------

    def _mine(self, drawn: dict[str, Any], base: dict[str, Any]) -> tuple[str, dict[str, Any], str]:
        held = self.reserved.get(drawn["account"], [])
        if not held:
            return "r0000", base, SPACES[0]
        row_id, lease_id, space, _ = held[-1 - drawn["lease"] % min(3, len(held))]
        return row_id, base | {"lease_id": "wrong" if drawn["session"] == 3 else lease_id}, space

    def renew_files(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        row_id, proof, _ = self._mine(drawn, base)
        token = {"token": self.made} if extra == 5 else {}
        return commands.renew(row_id, **proof, **token, ttl=[None, drawn["ttl"] * SECOND][extra % 2])

    def release_files(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        row_id, proof, _ = self._mine(drawn, base)
        return commands.release_paths(row_id, **proof, **({"how": "undelivered"} if extra == 4 else {}))

    def release_some(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        row_id, proof, _ = self._mine(drawn, base)
        paths = next((held[3] for held in self.reserved.get(drawn["account"], []) if held[0] == row_id), ())
        return commands.release_paths(row_id, *(paths[-1:] if extra else PATTERNS[:1]), **proof)

    def extend_files(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        row_id, proof, space = self._mine(drawn, base)
        return commands.extend(row_id, PATTERNS[(drawn["name"] * 3 + extra) % 10], **proof, space=space)

    def force_files(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return commands.force(self._mine(drawn, base)[0], account=drawn["account"])

    # -- waiting and ending --------------------------------------------------------------------------------------

    def refresh(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        waiting = tuple(row_id for row_id, _ in self.waiting.get(drawn["account"], [])[-3:]) or ("r0000",)
        return RefreshWaits(**base, cause=CAUSE, reservation_ids=waiting, lifetime=[6, 10][extra % 2] * SECOND)

    def leave(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        waiting = self.waiting.get(drawn["account"], [])
        place = waiting[-1 - drawn["lease"] % len(waiting)][0] if waiting else "r0000"
        return LeaveWait(**base, cause=CAUSE, reservation_id=place)

    def expire_reservation(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        known = [row_id for row_id, *_ in self.reserved.get(drawn["account"], [])]
        known += [row_id for row_id, _ in self.waiting.get(drawn["account"], [])]
        row_id = known[-1 - drawn["lease"] % len(known)] if known else "r0000"
        return expiry.ExpireReservation(**base, cause=CAUSE, reservation_id=row_id)

    def grace_for_files(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        key = ("reservations", drawn["account"], self._mine(drawn, base)[0])
        return expiry.GiveGrace(**base, cause=CAUSE, key=key, last_beat=START + extra * 10 * SECOND)

    def pick_key(self, drawn: dict[str, Any]) -> tuple[str, str, str]:
        return ("reservations", drawn["account"], self._mine(drawn, {})[0])

    def record_outcomes(self, commands: list[Any], outcomes: list[Any]) -> None:
        super().record_outcomes(commands, outcomes)
        for command, outcome in zip(commands, outcomes, strict=True):
            if isinstance(outcome, Reserved):
                self._note(command.account, outcome.row, outcome.lease_id)
            elif isinstance(outcome, FilesHeld) and outcome.row is not None and outcome.row.proof is None:
                self.waiting.setdefault(command.account, []).append((outcome.row.id, command.request))
            elif isinstance(outcome, BegunSession):
                for row in outcome.reservations:
                    self._note(command.account, row, held_lease_id(outcome.lease_id, row))

    def _note(self, account: str, row: Any, lease_id: str) -> None:
        self.reserved.setdefault(account, []).append((row.id, lease_id, row.space, paths_of(row)))
