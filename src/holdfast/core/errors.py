"""All errors of the server, in one tree.

Refused                       an ordinary answer: nothing was changed
├── Invalid                   the request itself is wrong
│   └── TooLarge              a value is over its limit
├── Unauthenticated           no usable credential
│   └── UnknownKey            a credential that this server did not issue
├── Forbidden                 known, but not allowed
│   ├── InsecureTransport     a key came over plain HTTP
│   ├── RegistrationClosed    this server creates no accounts
│   └── OfferRestricted       the offer is for another session
├── PaymentRequired           the plan does not allow it; waiting does not help
│   ├── QuotaExceeded         the plan's tasks for this cycle are used up
│   ├── PlanExpired           the plan that would have allowed it has expired
│   ├── PaymentFailed         the payment was not made; the purchase is unchanged
│   └── PaymentsOff           this server takes no payments
├── Missing                   it does not exist, or belongs to another account: the answer is the same
│   ├── SessionMissing
│   ├── TaskMissing
│   ├── ReservationMissing
│   ├── QuestionMissing
│   ├── PurchaseMissing
│   └── WebhookMissing
├── Conflict                  the state is not what the request assumes
│   ├── LeaseLost             the caller held it and no longer does
│   ├── LeaseGone             nothing is held under that name
│   ├── LeaseMismatch         it is held under another lease
│   ├── WrongToken            the right lease with a wrong token
│   ├── NotHeld               there is no holder
│   ├── SessionExpired
│   ├── SessionTaken          the name belongs to a live session, and its secret was not sent
│   ├── SessionLive           the caller's own session is live: its former process may still run
│   ├── SessionBusy           the session allows one task in flight and has one
│   ├── ContextConflict       the context changed since it was read
│   ├── InvalidTransition     the task's state does not allow that
│   ├── LeaseExpired          the task's lease expired before this call
│   ├── LeaseSuperseded       another worker holds the task now, or it is finished
│   ├── TaskClaimed           another worker holds the task
│   ├── NotYetClaimable       the task is scheduled for later, or waits for something else
│   ├── CapabilityMissing     the worker lacks a capability that the task requires
│   ├── OfferRefused          the code accepts no open offer
│   ├── QuestionClosed        the question was answered already, has expired or was withdrawn
│   ├── AclConflict
│   ├── NameTaken             another user has this name
│   ├── ConfiguredKey         the key is part of the server's settings
│   ├── LastAdmin             the last key that can administer the account
│   ├── TooManyWebhooks       the limit of webhooks is reached
│   ├── CursorTooOld          events after that cursor were removed
│   ├── CursorAhead           the log ends before that cursor
│   └── IdempotencyConflict   the key was used for another request
└── Limited                   a limit is reached; `retry_after` is set where waiting helps
    ├── LockLimit
    ├── TooManyElections
    ├── TooManyWaiters
    ├── SpaceFull             the space has as many reservations as it may have
    ├── MaxWorkersReached     the plan's limit of held tasks is reached
    └── RateLimited

Trouble                       the server could not do it; `applied` is "no" or "unknown"
├── Overloaded                applied: no; retry
├── Draining                  applied: no; this server is shutting down, retry
├── InFlight                  the first request under this Idempotency-Key still runs
├── StoreUnavailable          applied: no
├── ServerOutdated            applied: no; the store needs a newer Holdfast, and this server stops
├── StoreFull                 applied: no, and more space is needed first
├── ValueRefused              applied: no; the database refused a value of this request
├── DamagedRow                applied: no; a stored row cannot be used, an operator must correct it
├── PaymentUnavailable        applied: unknown, the payment provider did not answer; a retry is safe
└── OutcomeUnknown            applied: unknown, the connection broke inside COMMIT

`code` never changes: clients depend on it. `hint` is the next step, in words that an agent can follow.
"""

from __future__ import annotations

from typing import Any, ClassVar


class HoldfastError(Exception):
    """The root of all errors: a message for people, a code for programs, and a hint about the next step."""

    code: ClassVar[str] = "error"
    hint: ClassVar[str] = ""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts


class Refused(HoldfastError):
    """An ordinary answer: nothing was changed."""


class Invalid(Refused):
    """The request is invalid; `errors` lists each field."""

    code = "invalid_request"
    hint = "Fix the fields listed in `errors`, then send it again."

    def __init__(self, message: str, errors: list[dict[str, str]] | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.errors = errors or []


class TooLarge(Invalid):
    """A value is over its documented limit."""

    code = "too_large"
    hint = "Store the large value elsewhere and send a reference to it."


class Unauthenticated(Refused):
    """The request has no usable credential."""

    code = "missing_api_key"
    hint = "Send `Authorization: Bearer <key>`: this machine's key, or one that you ask the operator for."


class UnknownKey(Unauthenticated):
    """The server did not issue this credential, or it was revoked or has expired."""

    code = "invalid_api_key"
    hint = "Use a key that this server issued: this machine's, or one that you ask the operator for."


class Forbidden(Refused):
    """The caller is known, but may not do this."""

    code = "forbidden"
    hint = "Ask an administrator, or use a key that may do this."


class PaymentRequired(Refused):
    """The account's plan does not allow it."""

    code = "payment_required"
    hint = "Ask the account's owner to buy a larger plan."


class QuotaExceeded(PaymentRequired):
    """The plan's tasks for this cycle are used up."""

    code = "quota_exceeded"
    hint = "Buy a larger plan, or wait for the next cycle."


class PlanExpired(PaymentRequired):
    """The plan that would have allowed it has expired."""

    code = "plan_expired"
    hint = "Renew the plan."


class InsecureTransport(Forbidden):
    """A key was sent over plain HTTP from another machine, where it could be read on the way."""

    code = "insecure_transport"
    hint = "Use the server's https address, and replace this key."


class RegistrationClosed(Forbidden):
    """This server creates no accounts: its agents share the operator's."""

    code = "registration_closed"
    hint = "Use this machine's key or ask the operator for one: a new account would not see the other agents' work."


class OfferRestricted(Forbidden):
    """The offer names the session that may accept it, and the claim is not for that session."""

    code = "offer_restricted"
    hint = "Claim with `session_id` (and `session_lease_id`) of the live session that the offer names."


class PaymentFailed(PaymentRequired):
    """The payment was not made: not approved, declined, or a wrong amount."""

    code = "payment_failed"
    hint = "Ask the payer to approve the checkout, then verify again; or start a new checkout."


class PaymentsOff(PaymentRequired):
    """This server takes no payments; only its operator can change the account's limits."""

    code = "payments_not_configured"
    hint = (
        "This server takes no payments. Ask its operator for higher limits, or wait until your usage is below the"
        " limit."
    )


class Missing(Refused):
    """It does not exist, or belongs to another account: the answer is the same on purpose."""

    code = "not_found"
    hint = "Check the id."


class SessionMissing(Missing):
    """No such session for this caller."""

    code = "session_not_found"
    hint = "Open a new session."


class TaskMissing(Missing):
    """No such task in this account."""

    code = "task_not_found"
    hint = "List the tasks to find the right id."


class ReservationMissing(Missing):
    """There is no such reservation."""

    code = "reservation_not_found"
    hint = "List the reservations of the space, or reserve the paths."


class QuestionMissing(Missing):
    """There is no such question."""

    code = "question_not_found"
    hint = "List the questions to find the right id."


class PurchaseMissing(Missing):
    """No such purchase in this account."""

    code = "purchase_not_found"
    hint = "Start a new checkout."


class WebhookMissing(Missing):
    """No such webhook in the caller's account."""

    code = "webhook_not_found"
    hint = "List the webhooks to find the right id."


class Conflict(Refused):
    """The state is not what the request assumes."""

    code = "conflict"
    hint = "Read its current state, then decide."


class LeaseLost(Conflict):
    """Another holder has it now, or the lease ended: the caller must stop."""

    code = "lease_lost"
    hint = "Stop work on it. Claim it again if the work is still needed."


class LeaseGone(Conflict):
    """Nothing is held under that name, or the lease has expired."""

    code = "lease_gone"
    hint = LeaseLost.hint


class LeaseMismatch(Conflict):
    """The name is held under another lease."""

    code = "lease_mismatch"
    hint = LeaseLost.hint


class WrongToken(Conflict):
    """The lease is the caller's, but the fencing token sent with it is not."""

    code = "wrong_token"
    hint = "Send the token that the claim returned, or none."


class NotHeld(Conflict):
    """It has no holder, so there is nothing to release."""

    code = "not_held"
    hint = "Nothing to do: nobody holds it."


class SessionExpired(Conflict):
    """The session has expired."""

    code = "session_expired"
    hint = "Open a new session."


class SessionTaken(Conflict):
    """The name belongs to a live session, and the request did not send its secret."""

    code = "session_taken"
    hint = "Send the `secret` that opening the session returned, with the same key, or choose another name."


class SessionLive(Conflict):
    """The caller's own session is live, and the request does not take it over from a process that still runs."""

    code = "session_live"
    hint = "Stop your former process, or resume with `if_live` `fence`: you get new lease ids, the old ones end."


class SessionBusy(Conflict):
    """The session allows one task in flight and has one."""

    code = "session_busy"
    hint = "Finish the task in flight first."


class ContextConflict(Conflict):
    """The context has another version than the caller read."""

    code = "context_conflict"
    hint = "Read the session's context again, then write it."


class InvalidTransition(Conflict):
    """The task's state does not allow that."""

    code = "invalid_transition"
    hint = "Read the task's current state, then decide."


class LeaseExpired(Conflict):
    """The task's lease expired before this call."""

    code = "lease_expired"
    hint = "Stop work on it and read its state: another worker may hold it now."


class LeaseSuperseded(Conflict):
    """The lease is over: another worker holds the task now, or it is finished."""

    code = "lease_superseded"
    hint = "Stop work on it. Do not publish anything you did after the lease was lost."


class TaskClaimed(Conflict):
    """Another worker holds the task."""

    code = "task_currently_claimed"
    hint = "Wait for the lease to end, or claim another task."


WAIT_FOR_TASK_SECONDS = 30
"""When to ask again for a task that waits for something without a known end."""


class NotYetClaimable(Conflict):
    """The task is scheduled for later, or waits for something else."""

    code = "not_yet_claimable"
    hint = "Claim it again when `agent_contract` says, or claim another task."

    def __init__(self, message: str, retry_after: int = WAIT_FOR_TASK_SECONDS, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after


class CapabilityMissing(Conflict):
    """The worker lacks a capability that the task requires."""

    code = "capability_missing"
    hint = "Claim another task, or claim it with all the `capabilities` that it requires."


class OfferRefused(Conflict):
    """The code accepts no open offer: wrong, replaced, withdrawn, accepted already, or expired."""

    code = "offer_refused"
    hint = "Ask the holder for a new offer, or claim without `offer`."


class QuestionClosed(Conflict):
    """The question was answered already, has expired or was withdrawn."""

    code = "question_closed"
    hint = "Read the question; its task may ask another one."


class CursorTooOld(Conflict):
    """Events after this cursor were removed by retention or lost in a restore: reading on would skip them."""

    code = "cursor_too_old"
    hint = "Start again from `oldest`; the events in between are lost."


class CursorAhead(Conflict):
    """The log ends before this cursor: reading on would skip every event until the log has reached it."""

    code = "cursor_ahead"
    hint = "Use a cursor that this account's log returned. Start again from 0, or from `last` for new events only."


class AclConflict(Conflict):
    """The name already has another access list."""

    code = "acl_conflict"
    hint = "Omit `acl`, or replace the access list with the operation that sets it."


class NameTaken(Conflict):
    """Another user has this name."""

    hint = "Choose another name."


class ConfiguredKey(Conflict):
    """The key is part of the server's settings."""

    code = "configured_key"
    hint = "Change the server's settings and restart it."


class LastAdmin(Conflict):
    """It is the last key that can administer the account."""

    code = "last_admin_key"
    hint = "Create another key with the scope `admin` first."


class TooManyWebhooks(Conflict):
    """The limit of webhooks is reached."""

    code = "too_many_webhooks"
    hint = "Delete a webhook that is no longer needed."


class IdempotencyConflict(Conflict):
    """This Idempotency-Key was used for a different request."""

    code = "idempotency_conflict"
    hint = "Use a new Idempotency-Key for a different request."


class Limited(Refused):
    """A limit is reached. `retry_after` is in seconds, where waiting helps."""

    code = "rate_limited"
    hint = "Wait, then send the same request again."

    def __init__(self, message: str, retry_after: int | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after


class LockLimit(Limited):
    """The caller's limit of held locks is reached."""

    code = "lock_limit_exceeded"
    hint = "Release locks you no longer need."


class TooManyElections(Limited):
    """The server's limit of live elections is reached."""

    code = "capacity_exceeded"


class TooManyWaiters(Limited):
    """Too many callers already wait for this name, or for work."""

    code = "too_many_waiters"


class SpaceFull(Limited):
    """The space has as many reservations as it may have."""

    code = "space_full"
    hint = "Release reservations that you do not need, use fewer patterns with wildcards, or wait and try again."


class MaxWorkersReached(Limited):
    """The plan's limit of held tasks is reached."""

    code = "max_workers_reached"
    hint = "Finish a held task, wait for a lease to end, or buy a larger plan."
    billing: dict[str, Any] | None = None
    """The plan, the workers in use and their limit."""

    def __init__(self, message: str, retry_after: int | None = 30, **facts: Any) -> None:
        super().__init__(message, retry_after, **facts)


class RateLimited(Limited):
    """The request budget of this window is used up."""


class Trouble(HoldfastError):
    """The server could not do it. `applied` is "no", which is a promise, or "unknown"."""

    code = "store_unavailable"
    hint = "Nothing was changed. Wait, then send the same request again."
    applied: ClassVar[str] = "no"
    retry_after: ClassVar[int] = 1


class Overloaded(Trouble):
    """This server has as much work as it can take; the request was not started."""

    code = "overloaded"


class Draining(Trouble):
    """This server is shutting down; another server, or the restarted one, will answer."""

    code = "draining"


class InFlight(Trouble):
    """Another request under the same Idempotency-Key has not been answered yet."""

    code = "idempotency_in_flight"
    hint = "Wait, then send the same request with the same key again."
    retry_after = 2


class StoreUnavailable(Trouble):
    """The store cannot be reached or written at the moment."""


class ServerOutdated(Trouble):
    """A newer Holdfast has raised the store's minimum schema: this server must not use the store, and stops."""

    code = "server_outdated"
    hint = (
        "A newer server has upgraded the store, and this one stops. Nothing was changed. Send the same request to an"
        " upgraded server; the operator must upgrade this one."
    )
    retry_after = 5


class StoreFull(Trouble):
    """The disk under the store is full."""

    code = "storage_full"
    hint = "Nothing was changed. The operator must free disk space; then send the same request again."
    retry_after = 10


class ValueRefused(Trouble):
    """The database refused a value of this request."""

    code = "value_refused"
    hint = "Nothing was changed. Change the value that the message names, then send the request again."


class DamagedRow(Trouble):
    """A stored row that this request needs cannot be used: it was not written by Holdfast, or the disk changed it."""

    code = "damaged_row"
    hint = (
        "Nothing was changed, and a retry does not help. The operator must run `holdfast verify`, which names the row."
    )

    def __init__(
        self, table: str, key: tuple[str, ...] = (), damage: str = "", columns: dict[str, Any] | None = None
    ) -> None:
        super().__init__("a stored row that this request needs is damaged", table=table)
        self.table, self.key, self.damage, self.columns = table, key, damage, columns or {}


class PaymentUnavailable(Trouble):
    """The payment provider did not answer: money may or may not have moved."""

    code = "payment_unavailable"
    hint = "The payment provider did not answer. Send the same request again: a payment is never taken twice."
    applied = "unknown"
    retry_after = 5


class OutcomeUnknown(Trouble):
    """The connection broke during the commit: the change may or may not have happened."""

    code = "outcome_unknown"
    hint = "The change may have happened. Read the current state, or repeat with the same Idempotency-Key."
    applied = "unknown"
