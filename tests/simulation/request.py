"""Requests of simulated clients: what a client wants, and each copy of it that may reach a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holdfast.core.event import Cause
from holdfast.core.principal import Principal
from holdfast.engine.command import Command
from holdfast.engine.ticket import Ticket
from holdfast.engine.verbs import (
    elections,
    job_claims,
    job_offers,
    jobs,
    locks,
    octostore_sessions,
    questions,
    queues,
    reservation_claims,
    reservations,
    sessions,
    webhooks,
)
from holdfast.engine.verbs.tasks import cancelling, claiming, creating, holding, offers

if TYPE_CHECKING:
    from tests.simulation.clients import Activity, Client

_VERBS: dict[type[Command[Any]], frozenset[str]] = {
    job_claims.ClaimJob: frozenset({"lease.claimed"}),
    jobs.HeartbeatJob: frozenset({"lease.renewed"}),
    jobs.ReleaseJob: frozenset({"lease.released", "lease.done", "lease.failed", "lease.undelivered"}),
    jobs.ForceRelease: frozenset({"lease.forced"}),
    job_offers.OfferJob: frozenset({"lease.offered"}),
    job_offers.WithdrawJobOffer: frozenset({"lease.offer_withdrawn", "lease.released"}),
    locks.AcquireLock: frozenset({"lease.claimed", "lease.renewed"}),
    locks.RenewLock: frozenset({"lease.renewed"}),
    locks.ReleaseLock: frozenset({"lease.released"}),
    elections.Campaign: frozenset({"lease.claimed"}),
    elections.RenewLeadership: frozenset({"lease.renewed"}),
    elections.Resign: frozenset({"lease.released"}),
    reservation_claims.Reserve: frozenset({"reservation.reserved"}),
    reservations.HeartbeatReservation: frozenset({"reservation.renewed"}),
    reservations.ReleaseReservation: frozenset(
        {"reservation.released", "reservation.reduced", "reservation.undelivered"}
    ),
    reservations.ExtendReservation: frozenset({"reservation.enlarged"}),
    reservations.ForceReleaseReservation: frozenset({"reservation.forced"}),
    sessions.BeginSession: frozenset({"session.opened", "session.resumed"}),
    sessions.HeartbeatSession: frozenset({"session.renewed"}),
    sessions.WriteContext: frozenset({"session.context"}),
    sessions.CloseSession: frozenset({"session.ended"}),
    octostore_sessions.OpenSession: frozenset({"session.opened"}),
    octostore_sessions.KeepSessionAlive: frozenset({"session.renewed"}),
    octostore_sessions.EndSession: frozenset({"session.ended"}),
    creating.CreateTask: frozenset({"task.created"}),
    claiming.ClaimTasks: frozenset({"task.claimed"}),
    claiming.ClaimTask: frozenset({"task.claimed"}),
    holding.HeartbeatTask: frozenset({"task.renewed"}),
    holding.CompleteTask: frozenset({"task.completed"}),
    holding.FailTask: frozenset({"task.failed", "task.dead_lettered", "task.cancelled"}),
    holding.ReleaseTask: frozenset({"task.released", "task.snoozed", "task.cancelled"}),
    offers.OfferTask: frozenset({"task.offered"}),
    offers.WithdrawTaskOffer: frozenset({"task.offer_withdrawn", "task.released", "task.cancelled"}),
    cancelling.CancelTask: frozenset({"task.cancelled", "task.cancel_requested"}),
    cancelling.RequeueTask: frozenset({"task.requeued"}),
    questions.AskTask: frozenset({"task.asked", "task.cancelled", "question.asked"}),
    questions.AnswerQuestion: frozenset({"question.answered"}),
    queues.OpenQueue: frozenset({"queue.opened"}),
    queues.ChangeQueue: frozenset({"queue.changed"}),
    webhooks.CreateWebhook: frozenset({"webhook.created"}),
    webhooks.UpdateWebhook: frozenset({"webhook.paused", "webhook.resumed"}),
}
_SUBJECTS = (
    (jobs.JobCommand, "lease", "name"),
    (job_claims.ClaimJob, "lease", "name"),
    (locks.LockCommand, "lease", "name"),
    (elections.ElectionCommand, "lease", "name"),
    (holding.TaskCommand, "task", "task_id"),
    (reservations.ReservationCommand, "reservation", "reservation_id"),
    (sessions.SessionCommand, "session", "session_id"),
    (questions.QuestionCommand, "question", "question_id"),
    (queues.QueueCommand, "queue", "type"),
)
_HOLDER_COMMANDS = (
    jobs.HolderCommand,
    locks.HolderCommand,
    elections.LeaderCommand,
    holding.HolderCommand,
    reservations.HolderOfReservation,
    sessions.GenerationCommand,
)


def primary_verbs(command: Command[Any]) -> frozenset[str]:
    """The kinds of events that are the effect of a command; it may also expire what it finds."""
    return _VERBS[type(command)]


class Operation:
    """What a client wants: one command, sent again until it is answered or given up."""

    __slots__ = ("activity", "by", "command", "must_retry", "tries", "wait_seconds")

    def __init__(
        self,
        activity: Activity | None,
        command: Command[Any],
        wait_seconds: float = 0.0,
        by: Principal | None = None,
    ) -> None:
        self.activity = activity
        self.by = by
        """The key that it is sent with, if not that of its client."""
        self.command = command
        self.wait_seconds = wait_seconds
        self.tries = 0
        self.must_retry = False
        """Whether the client knows that this try got no answer."""


class Request:
    """One copy of an operation on its way to a server; the log names it as the cause of its events."""

    __slots__ = ("answer", "by", "client", "command", "id", "operation", "ticket")

    def __init__(self, number: int, client: Client | None, operation: Operation) -> None:
        self.id = f"r{number}"
        self.client = client
        self.operation = operation
        self.by = operation.by if client is None or operation.by is not None else client.principal
        self.command = with_ids(operation.command, self.id, Cause(str(client), self.id))
        self.ticket: Ticket | None = None
        self.answer: Any = None
        """What a server sent as its answer, whether or not it arrived."""

    def __str__(self) -> str:
        what = f"{self.id} {type(self.command).__name__}"
        subject = subject_of(self.command)
        return f"{what} {subject}" if subject else what

    def lease_id_for(self, subject: str) -> str | None:
        """The lease id with which it writes to a subject, if it is a holder's write to it."""
        if isinstance(self.command, _HOLDER_COMMANDS) and subject_of(self.command) == subject:
            return self.command.lease_id
        return None


def with_ids(command: Command[Any], request_id: str, cause: Cause) -> Command[Any]:
    """The command with the ids that the server makes for this request: a repeated request gets others."""
    made: dict[str, Any] = {"cause": cause}
    if isinstance(command, job_claims.ClaimJob):
        made |= {"lease_id": f"lease-{request_id}", "holder": f"holder-{request_id}"}
    elif isinstance(command, reservation_claims.Reserve):
        made |= {"lease_id": f"lease-{request_id}", "reservation_id": f"reservation-{request_id}"}
    elif isinstance(command, elections.Campaign):
        made["lease_id"] = f"lease-{request_id}"
    elif isinstance(command, claiming.ClaimCommand):
        made["seed"] = request_id.encode()
    elif isinstance(command, sessions.BeginSession):
        made["fresh_secret"] = f"secret-{request_id}"
    elif isinstance(command, octostore_sessions.OpenSession):
        made["session_id"] = f"session-{request_id}"
    elif isinstance(command, creating.CreateTask):
        made["task"] = replace(command.task, id=f"task-{request_id}")
    elif isinstance(command, webhooks.CreateWebhook):
        made |= {"hook_id": f"hook-{request_id}", "hook": replace(command.hook, id=f"hook-{request_id}")}
    return replace(command, **made)


def is_holder_command(command: Command[Any]) -> bool:
    return isinstance(command, _HOLDER_COMMANDS)


def subject_of(command: Command[Any]) -> str:
    """The subject of a command about one row; empty for any other."""
    for base, noun, name in _SUBJECTS:
        if isinstance(command, base):
            return f"{noun}:{getattr(command, name)}"
    return ""
