"""Damage of whole records: text that is not the JSON it should be, unknown states, contradicting columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import compress, repeat
from operator import attrgetter, is_not
from typing import Any

import msgspec

from holdfast.core import purchase as purchases
from holdfast.core.browser_session import SESSION, SIGN_IN_LINK, BrowserSession
from holdfast.core.event import Event
from holdfast.core.lease import ELECTION, JOB, LOCK, Ended, Lease
from holdfast.core.offer import Offer
from holdfast.core.purchase import Purchase
from holdfast.core.question import OPEN, QUESTION_KINDS, QUESTION_STATES, Answered, Question
from holdfast.core.reservation.patterns import problem
from holdfast.core.reservation.row import MODES, Reservation, paths_of
from holdfast.core.row import Row
from holdfast.core.session import Session
from holdfast.core.task import CLAIMED, PENDING, STATES, Attempt, Task
from holdfast.core.task.dependencies import has_consistent_flags
from holdfast.core.task.retry import Backoff
from holdfast.core.webhooks import delivery as deliveries
from holdfast.core.webhooks import webhook as webhooks
from holdfast.core.webhooks.delivery import Delivery
from holdfast.core.webhooks.webhook import Webhook
from holdfast.decoding import decoder

_TEXTS = frozenset({"secret", "url", "key_hash", "old_key_hash", "listed_hash"})
"""Columns that events record by hash and that are no JSON."""
_SHAPES: dict[tuple[type, str], Any] = {
    (Lease, "ended"): Ended,
    (Lease, "acl"): list[str],
    (Reservation, "paths"): list[str],
    (Reservation, "offer"): Offer,
    (Lease, "offer"): Offer,
    (Task, "ended"): Attempt,
    (Task, "offer"): Offer,
    (Task, "backoff"): Backoff,
    (Task, "depends_on"): list[str],
    (Task, "answered"): Answered,
    (Question, "choices"): list[str],
    (Webhook, "events"): list[str],
    (Event, "data"): dict[str, msgspec.Raw],
}
"""Columns whose JSON the rules read."""


def damage_of(record: Any) -> str | None:
    """What is wrong with a record whose values have the right types; None if nothing is."""
    record_type: Any = type(record)
    columns, decoders, values_of = _json_columns(record_type)
    values = values_of(record)
    filled = compress(zip(columns, decoders, values, strict=True), map(is_not, values, repeat(None)))
    for column, decode, text in filled:
        try:
            decode(text)
        except (msgspec.DecodeError, UnicodeError) as error:
            return f"{column} is not the JSON it should be: {error}"
    rule = _RULES.get(record_type)
    return None if rule is None else rule(record)


@cache
def _json_columns(record_type: Any) -> tuple[list[str], list[Callable[[Any], Any]], Callable[[Any], tuple[Any, ...]]]:
    """The columns that hold JSON text, functions that decode each, and one that returns a record's values in them."""
    if issubclass(record_type, Row):
        columns = sorted((record_type.json | record_type.hashed) - _TEXTS)
    else:
        columns = {Event: ["data"], Delivery: ["body"]}.get(record_type, [])
    decoders = [decoder(_SHAPES.get((record_type, column), msgspec.Raw)) for column in columns]
    values_of: Callable[[Any], tuple[Any, ...]] = partial(_values, columns)
    return columns, decoders, attrgetter(*columns) if len(columns) > 1 else values_of


def _values(columns: list[str], record: Any) -> tuple[Any, ...]:
    """What `attrgetter` returns for several columns, for one or none."""
    return tuple(getattr(record, column) for column in columns)


def _lease(lease: Lease) -> str | None:
    if (lease.proof is None) != (lease.expires_at is None):
        return "it has a lease hash but no deadline" if lease.proof else "it has a deadline but no lease hash"
    if lease.proof is not None and lease.kind not in {JOB, LOCK, ELECTION}:
        return f"it is held as {lease.kind!r}, which is no kind of lease"
    if lease.proof is None and lease.offer is not None:
        return "it has an offer but no lease"
    return None


def _task(task: Task) -> str | None:
    if task.state not in STATES:
        return f"its state is {task.state!r}, which does not exist"
    if task.state == CLAIMED and (task.proof is None or task.expires_at is None):
        return f"it is claimed but has no {'lease hash' if task.proof is None else 'deadline'}"
    if task.state != CLAIMED and (task.proof is not None or task.expires_at is not None):
        return f"it is {task.state} but has a lease"
    return _task_parts(task)


def _task_parts(task: Task) -> str | None:
    if task.ready and task.state != PENDING:
        return f"it is {task.state} but in its queue"
    if task.state != CLAIMED and task.offer is not None:
        return f"it is {task.state} but has an offer"
    if task.unmet_flags is not None and not has_consistent_flags(task):
        return "its flags of unmet dependencies do not fit its dependencies"
    return None


def _reservation(row: Reservation) -> str | None:
    if row.mode not in MODES:
        return f"its mode is {row.mode!r}, which does not exist"
    if (row.proof is None) != (row.expires_at is None):
        return "it has a lease hash but no deadline" if row.proof else "it has a deadline but no lease hash"
    if (row.ended_at is None) != (row.proof is not None or row.waits_until is not None):
        return "it has ended but is held or waits" if row.ended_at else "it has not ended but neither is held nor waits"
    return next((f"its pattern {path!r} is none: {problem(path)}" for path in paths_of(row) if problem(path)), None)


def _question(question: Question) -> str | None:
    if question.state not in QUESTION_STATES:
        return f"its state is {question.state!r}, which does not exist"
    if question.kind not in QUESTION_KINDS:
        return f"its kind is {question.kind!r}, which does not exist"
    if question.state == OPEN and question.answer is not None:
        return "it is open but has an answer"
    return None


def _session(session: Session) -> str | None:
    if (session.ended_at is None) != (session.ended_how is None):
        return "only one of ended_at and ended_how is set"
    return None


def _webhook(hook: Webhook) -> str | None:
    if hook.state not in webhooks.STATES:
        return f"its state is {hook.state!r}, which does not exist"
    if hook.family not in {webhooks.STANDARD, webhooks.OCTOSTORE}:
        return f"its family is {hook.family!r}, which does not exist"
    return None


def _purchase(purchase: Purchase) -> str | None:
    if purchase.state not in {purchases.CREATED, purchases.COMPLETED, purchases.FAILED}:
        return f"its state is {purchase.state!r}, which does not exist"
    return None


def _delivery(delivery: Delivery) -> str | None:
    if delivery.state not in deliveries.STATES:
        return f"its state is {delivery.state!r}, which does not exist"
    return None


def _browser_session(browser_session: BrowserSession) -> str | None:
    if browser_session.kind not in {SESSION, SIGN_IN_LINK}:
        return f"its kind is {browser_session.kind!r}, which does not exist"
    return None


def _event(event: Event) -> str | None:
    noun, _, row_id = event.subject.partition(":")
    if not row_id or not event.kind.startswith(f"{noun}."):
        return f"its kind {event.kind!r} does not fit its subject {event.subject!r}"
    return None


_RULES: dict[type[Any], Callable[[Any], str | None]] = {
    Lease: _lease,
    Task: _task,
    Reservation: _reservation,
    Question: _question,
    Session: _session,
    Webhook: _webhook,
    Purchase: _purchase,
    Delivery: _delivery,
    BrowserSession: _browser_session,
    Event: _event,
}
