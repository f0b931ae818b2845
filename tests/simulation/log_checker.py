"""Checks every commit against what the log said before, without using the rules of core.

It keeps an image of each row, made from the events alone, and knows which request caused each event. A promise is
broken if an event contradicts the image: a claim of a name that is held, a write by a former holder, an early expiry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core.event import Event, row_image
from holdfast.core.lease import proof_of
from holdfast.core.row import SECOND, Instant
from holdfast.engine.command import Command
from holdfast.engine.verbs.job_claims import ClaimJob
from holdfast.engine.verbs.job_offers import WithdrawJobOffer
from holdfast.engine.verbs.locks import AcquireLock
from holdfast.engine.verbs.questions import AskTask
from holdfast.engine.verbs.reservation_offers import WithdrawReservationOffer
from holdfast.engine.verbs.sessions import CloseSession
from holdfast.engine.verbs.tasks.holding import ReleaseTask
from holdfast.engine.verbs.tasks.offers import WithdrawTaskOffer
from holdfast.store.rows import ROW_TYPES
from tests.simulation.dependency_checker import DependencyChecker
from tests.simulation.question_checker import QuestionChecker
from tests.simulation.request import Request, primary_verbs, subject_of
from tests.simulation.reservation_checker import ReservationLogChecker
from tests.simulation.room_checker import RoomChecker
from tests.simulation.virtual_time import KEEP_ANSWERS
from tests.support import ACCOUNT

if TYPE_CHECKING:
    from tests.simulation.world import World

Image = dict[str, Any]

TASK_TRANSITIONS = {
    "created": {(None, "pending")},
    "replaced": {("pending", "pending")},
    "due": {("pending", "pending")},
    "dependency_met": {("pending", "pending"), ("dead_letter", "dead_letter")},
    "asked": {("claimed", "pending")},
    "answered": {("pending", "pending")},
    "claimed": {("pending", "claimed")},
    "renewed": {("claimed", "claimed")},
    "extended": {("claimed", "claimed")},
    "reissued": {("claimed", "claimed")},
    "cancel_requested": {("claimed", "claimed")},
    "offered": {("claimed", "claimed")},
    "offer_withdrawn": {("claimed", "claimed")},
    "handed_over": {("claimed", "pending")},
    "completed": {("claimed", "completed")},
    "failed": {("claimed", "pending")},
    "released": {("claimed", "pending")},
    "snoozed": {("claimed", "pending")},
    "undelivered": {("claimed", "pending")},
    "expired": {("claimed", "pending")},
    "dead_lettered": {("claimed", "dead_letter"), ("pending", "dead_letter")},
    "cancelled": {("pending", "cancelled"), ("claimed", "cancelled")},
    "requeued": {("dead_letter", "pending")},
    "resolved": {("dead_letter", "dead_letter")},
}
"""The states before and after each kind of event, as docs/architecture.md draws them."""
_ATTEMPTS = {"claimed": 1, "released": -1, "snoozed": -1, "undelivered": -1, "handed_over": -1, "asked": -1}
_RELEASES = ReleaseTask | CloseSession | WithdrawTaskOffer | AskTask
_WITHDRAWALS = WithdrawJobOffer | WithdrawTaskOffer | WithdrawReservationOffer
REMOVALS = frozenset({"purged", "forgotten", "removed"})
LIVE = frozenset({"pending", "claimed"})


class LogChecker:
    """The state of every row by the log, and the rules that no event may break."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.fail = world.fail
        self.events: list[Event] = []
        self.images: dict[str, Image] = {}
        self._versions: dict[str, int] = {}
        self._tokens: set[int] = set()
        self.effects: dict[str, list[Event]] = {}
        """By request: the events it caused."""
        self.effects_of_key: dict[str, tuple[str, Instant]] = {}
        """By Idempotency-Key: the request that had an effect, and when."""
        self.session_ends: dict[str, Instant] = {}
        """By request: when the session of the lease that it changed last would end, at that moment."""
        self._ended_sessions: list[str] = []
        self._handed_over: list[Event] = []
        self._changed_at: dict[str, Instant] = {}
        self.got_grace: set[str] = set()
        """Subjects whose last event extended them: a refusal may have been decided before that."""
        self.dependencies = DependencyChecker(world)
        self.questions = QuestionChecker(world, self)
        self.room = RoomChecker(world, self)
        self._checks: dict[str, Callable[[Event, str, Image, Image], None]] = {
            "lease": self._check_lease,
            "task": self._check_task_and_what_it_needs,
            "session": self._check_session,
            "reservation": ReservationLogChecker(self).check,
            "question": self.questions.check,
            "queue": self.room.check,
        }

    def committed(self, events: Sequence[Event], newest_token: int) -> None:
        """Check the events of one transaction. Its tokens must be larger than all drawn before it began."""
        self._ended_sessions, self._handed_over = [], []
        numbered = self._world.database.log[ACCOUNT][-len(events) :] if events else []
        for event in numbered:
            self._add(event, newest_token)
        self.questions.committed()
        for session in self._ended_sessions:
            held = [subject for subject, image in self.images.items() if _is_held_by(image, session)]
            if held:
                self.fail(f"P5: session {session} ended in a transaction that left it {', '.join(held)}")

        for ended in self._handed_over:
            place = (ended.subject, ended.version + 1)
            if not any((each.subject, each.version) == place and each.kind.endswith(".claimed") for each in numbered):
                self.fail(f"P24: nobody holds {ended.subject} after it was handed over")

    def _add(self, event: Event, newest_token: int) -> None:
        subject, version = event.subject, self._versions.get(event.subject, 0)
        if event.seq != len(self.events) + 1:
            self.fail(f"P13: event {event.seq} follows {len(self.events)}")
        if event.version != version + 1:
            self.fail(f"P13: {subject} version {event.version} follows {version}")
        noun, _, verb = event.kind.partition(".")
        exists, data = subject in self.images, msgspec.json.decode(event.data)
        before = self.images[subject] if exists else blank_image(event)
        after: Image = data if "id" in data else before | data
        self.events.append(event)
        self._versions[subject] = event.version
        self.effects.setdefault(event.request_id, []).append(event)
        if "token" in data and after["token"] != before["token"]:
            self._check_token(event, before, after, newest_token)
        if verb == "snapshot":
            if after | {"version": 0} != before | {"version": 0}:
                self.fail(f"P13: the snapshot of {subject} differs from its events")
        elif noun in self._checks:
            self._checks[noun](event, verb, before, after)
        self._check_key(event)
        self._changed_at[subject] = event.at
        session = self.images.get(f"session:{after['session']}") if noun in {"lease", "reservation"} else None
        if session is not None and after["proof"] is not None:  # not one that the request only ended
            self.session_ends[event.request_id] = session["expires_at"]
        (self.got_grace.add if verb == "extended" else self.got_grace.discard)(subject)
        if verb in REMOVALS:
            if noun != "session" and before.get("proof") is not None:
                self.fail(f"P9: {subject} was removed while it was held")
            del self.images[subject]
        else:
            self.images[subject] = after

    def _check_token(self, event: Event, before: Image, after: Image, newest_token: int) -> None:
        token = after["token"]
        if token in self._tokens:
            self.fail(f"P3: token {token} of {event.subject} was granted before")
        if token <= max(before["token"], newest_token):
            self.fail(f"P3: token {token} of {event.subject} is not the newest")
        self._tokens.add(token)

    def _check_key(self, event: Event) -> None:
        """One effect under one Idempotency-Key, by one request."""
        request = self._world.requests.get(event.request_id)
        if request is None or request.command.once is None or event.kind not in primary_verbs(request.command):
            return
        if not request.command.stores_answer:
            return
        first, at = self.effects_of_key.setdefault(request.command.once.key, (request.id, event.at))
        if first != request.id and event.at < at + KEEP_ANSWERS:
            self.fail(f"P8: {first} and {request.id}, repeated under one Idempotency-Key, both had an effect")

    # -- names -------------------------------------------------------------------------------------------------

    def _check_lease(self, event: Event, verb: str, before: Image, after: Image) -> None:
        held = before["proof"] is not None
        if verb == "claimed":
            if held:
                self.fail(f"P1: {event.subject} was claimed while it was held until {before['expires_at']}")
            if (before["available_at"] or 0) > event.at:
                self.fail(f"P1: {event.subject} was claimed during its delay")
            if (before["ended"] or {}).get("how") == "expired":
                self._world.count("takeover")
            self._check_done(event, before)
        elif verb == "forgotten":
            pass
        elif not held:
            self.fail(f"P4: {event.kind} of {event.subject}, which nobody held")
        elif verb == "expired":
            self.check_expiry(event, before)
        elif verb in {"renewed", "released", "done", "failed", "undelivered", "offered", "offer_withdrawn"}:
            self.check_holder(event, before)
        self._check_offer(event, verb, before, after)

    def _check_offer(self, event: Event, verb: str, before: Image, after: Image) -> None:
        """Only a code of the open offer takes over, in one transaction; nothing but a withdrawal shortens the lease."""
        offer = before["offer"]
        is_open = offer is not None and offer["until"] > event.at
        if verb == "handed_over":
            request = self._world.requests.get(event.request_id)
            code = getattr(getattr(request, "command", None), "offer", None)
            if not is_open or code is None or proof_of(code) != offer["proof"]:
                self.fail(f"P24: {event.subject} was handed over without the code of an open offer")
            if after["proof"] is None:
                self._handed_over.append(event)
        elif verb == "renewed" and is_open and after["expires_at"] < before["expires_at"]:
            self.fail(f"P24: a renewal of {event.subject} shortened a lease that is offered")
        elif verb == "offered" and (after["session"] is not None or after["expires_at"] < after["offer"]["until"]):
            self.fail(f"P24: {event.subject} is offered for longer than it is held, or ends with a session")

    def _check_done(self, event: Event, before: Image) -> None:
        """A done job goes only to who asked to do it again."""
        if before["done_at"] is None or (before["done_until"] or event.at + 1) <= event.at:
            return
        request = self._world.requests.get(event.request_id)
        command = request.command if isinstance(request, Request) else None
        if isinstance(command, ClaimJob) and not command.again:
            self.fail(f"P23: {event.subject} was claimed although it is done")
        self._world.count("claimed again")

    def check_holder(self, event: Event, before: Image) -> None:
        """Only the newest live holder may write; other writes come from the end or the renewal of its session."""
        request = self._world.requests.get(event.request_id)
        noun, _, row_id = event.subject.partition(":")
        session = before.get("session", row_id if noun == "session" else None)
        lease_id = None if request is None else request.lease_id_for(event.subject)
        if lease_id is not None:
            if proof_of(lease_id) != before["proof"]:
                self.fail(f"P4: {event.kind} of {event.subject} by a former holder")
            elif not self._is_live(before, event.subject, event.at) and not _gives_up(request, event, before):
                self.fail(f"P4: {event.kind} of {event.subject} by a holder whose time was over")
        elif event.kind.endswith(".released"):
            self._world.count("session ended with a lease")
            if session not in self._ended_sessions:
                self.fail(f"P4: {event.kind} of {event.subject} by no holder")
        elif not self._is_live(before, event.subject, event.at):
            self.fail(f"P4: {event.kind} of {event.subject}, whose time was over")
        elif isinstance(request, Request) and isinstance(request.command, AcquireLock):
            if request.command.by.id != before["principal"]:
                self.fail(f"P4: {event.subject} was renewed by another principal")
        elif session is None or request is None or not self._is_sent_for(request.command, session):
            self.fail(f"P4: {event.kind} of {event.subject} by no holder")

    def _is_sent_for(self, command: Command[Any], session: str) -> bool:
        """Whether a command may renew what the session holds: it is about the session, or it carries its proof."""
        acting, subject = command.acting_session(), f"session:{session}"
        if subject_of(command) == subject:
            return True
        is_proof = acting is not None and proof_of(acting.lease_id) == self.images[subject]["proof"]
        self._world.count("renewed by a write for its session")
        return is_proof and acting is not None and acting.session_id == session

    def is_holder(self, subject: str, lease_id: str, at: Instant) -> bool:
        """Whether a lease id is that of the live holder."""
        image = self.images.get(subject)
        return image is not None and image["proof"] == proof_of(lease_id) and self._is_live(image, subject, at)

    def _is_live(self, image: Image, subject: str, at: Instant) -> bool:
        """By its own deadline, and by that of the session that it was claimed for."""
        if subject.startswith("session:"):
            return image["ended_at"] is None and image["expires_at"] > at
        offer = image["offer"]
        session = offer.get("session") if offer is not None and offer["until"] <= at else image["session"]
        session = session if image.get("ephemeral", True) else None
        return (image["expires_at"] or 0) > at and (session is None or self.is_session_live(session, at))

    def is_session_live(self, session: str, at: Instant) -> bool:
        image = self.images.get(f"session:{session}")
        return image is not None and self._is_live(image, f"session:{session}", at)

    def check_expiry(self, event: Event, before: Image) -> None:
        """Never before its time; after an interruption of the service only after grace."""
        if before.get("session") is not None and before["session"] in self._ended_sessions:
            return
        if before["expires_at"] > event.at:
            self.fail(f"P2: {event.subject} expired {before['expires_at'] - event.at} µs early")
        gap = self._world.last_gap
        has_grace = (
            event.subject.startswith(("task:", "reservation:")) or before.get("kind") == "job" or before.get("name")
        )
        if before.get("run_until") is not None:
            return  # no lease lasts longer than the task may run
        if gap is None or not has_grace or self._changed_at[event.subject] >= gap[0]:
            return
        if gap[0] < before["expires_at"] and event.at < gap[1] + 10 * SECOND:
            self.fail(f"P16: {event.subject} expired after an outage, without grace")

    # -- tasks and sessions ------------------------------------------------------------------------------------

    def _check_task_and_what_it_needs(self, event: Event, verb: str, before: Image, after: Image) -> None:
        self._check_task(event, verb, before, after)
        self.dependencies.check(event, verb, after)
        self.questions.check_task(event, verb, after)
        self.room.check_task(event, verb, after)

    def handed_over_places(self) -> set[tuple[str, int]]:
        """(subject, version) of the handovers in this transaction."""
        return {(event.subject, event.version) for event in self._handed_over}

    def _check_task(self, event: Event, verb: str, before: Image, after: Image) -> None:
        if verb == "purged":
            if before["state"] in LIVE:
                self.fail(f"P9: {event.subject} was removed while it was {before['state']}")
            return
        change = (None if verb == "created" else before["state"], after["state"])
        if change not in TASK_TRANSITIONS[verb]:
            self.fail(f"P11: {event.kind} changed {event.subject} from {change[0]} to {change[1]}")
        if after["attempt"] < before["attempt"]:
            self.fail(f"P11: the attempt of {event.subject} fell")
        self._check_attempts(event, verb, before, after)
        if verb == "claimed" and _is_over(after, event.at + self._world.database.wall_step):
            self.fail(f"P11: {event.subject} was claimed after its deadline")
        if verb in {"completed", "renewed", "failed", "released", "snoozed", "offered", "offer_withdrawn", "asked"}:
            self.check_holder(event, before)
        elif verb == "expired":
            self.check_expiry(event, before)
        self._check_offer(event, verb, before, after)
        if after["unique_key"] is not None and after["state"] in LIVE:
            self._check_unique(event, after["unique_key"])

    def _check_attempts(self, event: Event, verb: str, before: Image, after: Image) -> None:
        """A claim uses an attempt; only handing the task back undoes that; the last one makes it a dead letter."""
        used, limit = after["attempt_count"], after["max_attempts"]
        expected = before["attempt_count"] + _ATTEMPTS.get(verb, 0)
        request = self._world.requests.get(event.request_id)
        if verb == "requeued":
            expected = 0
        elif verb == "cancelled" and isinstance(getattr(request, "command", None), _RELEASES):
            expected -= before["expires_at"] > event.at  # a lease that has expired is not released
        if used != expected or used > limit:
            self.fail(f"P10: {event.kind} left {event.subject} with {used} of {limit} attempts used")
        is_permanent = getattr(getattr(request, "command", None), "permanent", False)
        if verb == "dead_lettered" and not is_permanent:
            self._check_dead_letter(event, before, after)

    def _check_dead_letter(self, event: Event, before: Image, after: Image) -> None:
        """A task is a dead letter after its last attempt, at its deadline, or without an answer, and not before."""
        used, limit, cause = after["attempt_count"], after["max_attempts"], after["dead_cause"]
        is_over = _is_over(after, event.at + self._world.database.wall_step)
        if cause == "unanswered" and before["state"] == "pending":
            self._world.count("unanswered")
        elif cause == "deadline" and is_over:
            self._world.count("over at its deadline")
        elif used < limit or before["state"] == "pending":
            self.fail(f"P10: {event.subject} became a dead letter after {used} of {limit} attempts")

    def _check_unique(self, event: Event, key: str) -> None:
        for subject, image in self.images.items():
            if subject != event.subject and image.get("unique_key") == key and image["state"] in LIVE:
                self.fail(f"P9: {subject} and {event.subject} are both live under the unique key {key}")

    def _check_session(self, event: Event, verb: str, before: Image, after: Image) -> None:
        if verb in {"expired", "ended"}:
            self._ended_sessions.append(event.subject.partition(":")[2])
        if verb == "expired":
            self.check_expiry(event, before)
        elif verb in {"renewed", "context", "ended"} and before["name"] is not None:
            self.check_holder(event, before)


def blank_image(event: Event) -> Image:
    """A row before its first event: an event records only what differs from it."""
    noun, _, row_id = event.subject.partition(":")
    return _BLANK[noun] | {"account": event.account, "id": row_id}


_BLANK = {row_type.noun: row_image(row_type("", "")) for row_type in ROW_TYPES}


def _is_held_by(image: Image, session: str) -> bool:
    return image.get("session") == session and image["proof"] is not None and image.get("ephemeral", True)


def _is_over(task: Image, wall: Instant) -> bool:
    """Whether the deadline of a task has passed, by the wall clock."""
    return task["deadline_at"] is not None and task["deadline_at"] <= wall


def _gives_up(request: Any, event: Event, before: Image) -> bool:
    """Whether a holder withdraws an offer that is over, and its session is over too: it holds nothing any more."""
    is_withdrawal = isinstance(request, Request) and isinstance(request.command, _WITHDRAWALS)
    return is_withdrawal and event.kind.endswith(".released") and (before["expires_at"] or 0) > event.at
