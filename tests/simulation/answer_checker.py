"""Checks every answer that a server sends against the log: what was acknowledged is there, what was refused is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core.errors import (
    Forbidden,
    HoldfastError,
    IdempotencyConflict,
    Invalid,
    OutcomeUnknown,
    Refused,
    Trouble,
)
from holdfast.core.lease import Lease, proof_of
from holdfast.core.reservation.row import Reservation
from holdfast.core.session import Session
from holdfast.core.webhooks.webhook import Webhook
from holdfast.engine.command import Held, LeaseOutcome, Replayed
from holdfast.engine.verbs import job_claims
from holdfast.engine.verbs.job_offers import WithdrawJobOffer
from holdfast.engine.verbs.questions import AskTask, QuestionOutcome
from holdfast.engine.verbs.queues import QueueState
from holdfast.engine.verbs.reservation_claims import Reserved
from holdfast.engine.verbs.reservations import FilesHeld, ReleaseReservation, ReservationOutcome
from holdfast.engine.verbs.sessions import SessionState
from holdfast.engine.verbs.tasks.base import TaskOutcome
from holdfast.engine.verbs.tasks.claiming import Busy, Claimed, Empty
from holdfast.engine.verbs.tasks.creating import Created, CreateTask
from holdfast.engine.verbs.tasks.holding import CompleteTask
from tests.simulation.clients import render
from tests.simulation.log_checker import LogChecker
from tests.simulation.request import Request, is_holder_command, primary_verbs, subject_of

if TYPE_CHECKING:
    from tests.simulation.world import World


class AnswerChecker:
    """Compares what clients are told with the log."""

    def __init__(self, world: World, log: LogChecker) -> None:
        self._world = world
        self._log = log
        self._fail = world.fail
        self._told: dict[str, Request] = {}
        """By request: answers after which it must have no effect."""
        self._answer_of_key: dict[str, bytes] = {}

    def answered(self, request: Request, outcome: Any) -> None:
        """Check one answer at the moment at which a server sends it."""
        if isinstance(outcome, OutcomeUnknown):
            self._world.count("unknown outcome")
        elif isinstance(outcome, Trouble):
            self._told[request.id] = request
            self._check_no_effect(request, outcome)
        elif isinstance(outcome, Refused):
            if isinstance(outcome, Forbidden):
                self._world.count("refused key")
            self._told[request.id] = request
            self._check_no_effect(request, outcome)
            self._check_refusal(request, outcome)
        elif isinstance(outcome, HoldfastError | Exception):
            self._fail(f"{request} was answered with {outcome!r}")
        elif isinstance(outcome, Replayed) or getattr(outcome, "replayed", False):
            self._check_replay(request, outcome)
        elif isinstance(outcome, QuestionOutcome):
            self._check_answered(request, outcome)
        elif not isinstance(outcome, Empty | Busy):
            self._check_effect(request, outcome)

    def check_at_the_end(self) -> None:
        """A request whose caller was told that nothing was applied has never any effect."""
        for request in self._told.values():
            self._check_no_effect(request, "an error")

    def _check_no_effect(self, request: Request, outcome: Any) -> None:
        if any(event.kind in primary_verbs(request.command) for event in self._log.effects.get(request.id, ())):
            self._fail(f"P7: {request} was answered with {outcome!r}, but it was applied")

    def _check_refusal(self, request: Request, outcome: Refused) -> None:
        """A live holder is never told that its lease is over."""
        command, subject = request.command, subject_of(request.command)
        if isinstance(outcome, IdempotencyConflict):
            self._fail(f"P8: {request} was refused as another request, but it was repeated unchanged")
        if not is_holder_command(command):
            return
        if isinstance(command, ReleaseReservation) and isinstance(outcome, Invalid):
            was_released = not set(command.paths) <= set(self._log.images[subject]["paths"])
            if was_released:  # by a copy of the request
                return
        deadline = command.content.deadline_at if isinstance(command, AskTask) else None
        if deadline is not None and deadline <= self._world.database.wall():  # it came late
            return
        is_holder = self._log.is_holder(subject, command.lease_id, self._world.time.now)
        if is_holder and subject not in self._log.got_grace:
            self._fail(f"P4: {request} of the live holder was refused: {outcome!r}")
        elif self._log.images.get(subject, {}).get("proof") != proof_of(command.lease_id):
            self._world.count("refused stale holder")

    def _check_replay(self, request: Request, outcome: Any) -> None:
        self._world.count("replayed answer")
        key = request.command.once.key
        if key not in self._log.effects_of_key and not isinstance(request.command, _MAY_CHANGE_NOTHING):
            self._fail(f"P8: {request} got the answer of an earlier request that had no effect")
        body = render(outcome)[1] if isinstance(outcome, job_claims.Claimed | Reserved) else outcome.body
        if self._answer_of_key.setdefault(key, body) != body:
            self._fail(f"P8: {request} got another answer than the first request under its Idempotency-Key")

    def _check_effect(self, request: Request, outcome: Any) -> None:
        """The events of an acknowledged change are in the log, and they are what the answer says."""
        events = [
            event for event in self._log.effects.get(request.id, ()) if event.kind in primary_verbs(request.command)
        ]
        if request.command.once is not None and events and request.command.stores_answer:
            self._answer_of_key.setdefault(request.command.once.key, request.command.once.render(outcome)[1])
        if isinstance(outcome, Held | FilesHeld | job_claims.Done) or type(outcome).__name__ == "Delayed":
            if events:
                self._fail(f"P7: {request} was told that another holds it or that it is done, but it got it")
            return
        if isinstance(request.command, WithdrawJobOffer) and not events:
            return  # there was no offer
        if isinstance(outcome, Claimed):
            self._check_tasks(request, outcome, len(events))
        elif isinstance(outcome, LeaseOutcome | ReservationOutcome):
            row = outcome.lease if isinstance(outcome, LeaseOutcome) else outcome.row
            self._check_lease(request, row, [msgspec.json.decode(event.data) for event in events])
        elif isinstance(outcome, TaskOutcome):
            self._check_task(request, outcome, bool(events))
        elif isinstance(outcome, SessionState | Session) and not events:
            self._fail(f"P6: {request} was acknowledged, but the log has no event of it")
        elif not isinstance(outcome, SessionState | Session | Webhook | QueueState):
            self._fail(f"{request} was answered with {outcome!r}")

    def _check_lease(self, request: Request, lease: Lease | Reservation, written: list[dict[str, Any]]) -> None:
        if not written:
            self._fail(f"P6: {request} was acknowledged, but the log has no event of it")
            return
        written_last = written[-1]
        if "token" in written_last and written_last["token"] != lease.token:
            self._fail(f"P3: {request} was told token {lease.token}, and {written_last['token']} was stored")
        until = written_last.get("expires_at")
        if lease.expires_at is not None and until is not None and lease.expires_at > until:
            self._fail(f"P2: {request} was promised {lease.expires_at - until} µs more than was stored")
        # Its holder may have shortened the session since, in the same batch.
        session_ends = self._log.session_ends.get(request.id) if getattr(lease, "kind", "job") == "job" else None
        if session_ends is not None and lease.expires_at is not None and lease.expires_at > session_ends:
            self._fail(f"P2: {request} was promised more time than its session has")

    def _check_answered(self, request: Request, outcome: QuestionOutcome) -> None:
        """A repeated answer changes nothing, but it is the stored one."""
        row, command = outcome.question, request.command
        if (row.state, row.answer, row.answered_by) != ("answered", command.answer, command.by):
            self._fail(f"P30: {request} was acknowledged, but its answer is not the stored one")

    def _check_tasks(self, request: Request, outcome: Claimed, events: int) -> None:
        for each in outcome.taken:
            self._log.questions.check_shown(request.id, each.task)
        if events != len(outcome.taken):
            self._fail(f"P6: {request} got {len(outcome.taken)} tasks, and the log has {events} of them")

    def _check_task(self, request: Request, outcome: TaskOutcome, has_effect: bool) -> None:
        if isinstance(outcome, Created):
            if not outcome.deduplicated and not has_effect:
                self._fail(f"P9: {request} was acknowledged, but the log has no event of it")
            self._world.known_tasks.add(outcome.task.id)
        elif isinstance(request.command, CompleteTask) and outcome.task.result != request.command.result:
            self._fail(f"P10: {request} was acknowledged, but its result is not the stored one")


_MAY_CHANGE_NOTHING = (CreateTask,)
"""A task that exists already is also a stored answer."""
