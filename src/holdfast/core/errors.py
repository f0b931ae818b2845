"""Every refusal, in one tree.

Refused                       an ordinary answer: nothing was changed
├── Invalid                   the request itself is wrong
│   └── TooLarge              a value is over its limit
├── Unauthenticated           no usable credential
│   └── UnknownKey            a credential nobody issued
├── Forbidden                 known, but not allowed
│   └── InsecureTransport     a key came over plain HTTP
├── PaymentRequired           the plan does not allow it; waiting does not help
│   ├── QuotaExceeded         this month's tasks are used
│   ├── PlanExpired           the plan that would have allowed it has lapsed
│   └── PaymentFailed         there is no money; the purchase is as it was
├── Missing                   no such thing (or not yours: the two look alike)
│   ├── SessionMissing
│   ├── TaskMissing
│   ├── PurchaseMissing
│   └── WebhookMissing
├── Conflict                  the thing is in another state than you think
│   ├── LeaseLost             it was yours and is no longer
│   ├── LeaseGone             nothing is held under that name
│   ├── LeaseMismatch         it is held, but not by the lease you showed
│   ├── WrongToken            the right lease with another's token
│   ├── NotHeld               there is no holder to take it from
│   ├── SessionExpired
│   ├── SessionTaken          the name lives, and you did not show its secret
│   ├── SessionBusy           a lane has one task in flight, and this session has it
│   ├── ContextConflict       somebody wrote the context since you read it
│   ├── InvalidTransition     the task's state does not allow that
│   ├── LeaseExpired          the task's lease ran out before this call
│   ├── LeaseSuperseded       the task is another worker's now, or finished
│   ├── TaskClaimed           somebody holds the task
│   ├── NotYetClaimable       the task is scheduled for later
│   ├── AclConflict
│   ├── NameTaken             somebody else has this name
│   ├── ConfiguredKey         the key is part of the server's settings
│   ├── LastAdmin             without it nobody could administer the account
│   ├── TooManyWebhooks       the account has as many as it may
│   ├── CursorTooOld          retention has removed what comes after that cursor
│   └── IdempotencyConflict   the key was used for another request
└── Limited                   too much at once; carries when to come back
    ├── LockLimit
    ├── TooManyElections
    ├── TooManyWaiters
    ├── MaxWorkersReached     as many tasks are held as the plan allows
    └── RateLimited

Trouble                       the store could not do it: says whether it was applied
├── Overloaded                never started; come back
├── Draining                  this server is going away; come back
├── InFlight                  the first request under this Idempotency-Key still runs
├── StoreUnavailable          applied: no
├── StoreFull                 applied: no, and more space is needed first
├── ValueRefused              applied: no; the database would not take a value of this request
├── PaymentUnavailable        applied: unknown, the payment provider did not tell; asking again is safe
└── OutcomeUnknown            applied: unknown, the connection broke inside COMMIT

`code` is a promise to clients. `hint` is the next step, in words an agent can follow.
"""

from __future__ import annotations

from typing import Any, ClassVar


class HoldfastError(Exception):
    """The root: a message for people, a code for programs, a hint for whoever decides what to do next."""

    code: ClassVar[str] = "error"
    hint: ClassVar[str] = ""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts


class Refused(HoldfastError):
    """An ordinary answer: nothing was changed."""


class Invalid(Refused):
    """The request is wrong as it stands; `errors` lists each place."""

    code = "invalid_request"
    hint = "Mend the fields named in `errors` and send it again."

    def __init__(self, message: str, errors: list[dict[str, str]] | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.errors = errors or []


class TooLarge(Invalid):
    """A value is over its documented limit."""

    code = "too_large"
    hint = "Store the large part elsewhere and keep a reference here."


class Unauthenticated(Refused):
    """No usable credential came with the request."""

    code = "missing_api_key"
    hint = "Send `Authorization: Bearer <key>`."


class UnknownKey(Unauthenticated):
    """The credential is not one of ours, or no longer."""

    code = "invalid_api_key"
    hint = "Use a key that this server issued."


class Forbidden(Refused):
    """The caller is known, but may not do this."""

    code = "forbidden"
    hint = "Ask an administrator, or use a key that may do this."


class PaymentRequired(Refused):
    """The account's plan does not allow it."""

    code = "payment_required"
    hint = "A larger plan would allow it; somebody has to pay for one."


class QuotaExceeded(PaymentRequired):
    """This month's tasks are used."""

    code = "quota_exceeded"
    hint = "Take a larger plan, or wait for the next cycle."


class PlanExpired(PaymentRequired):
    """The plan that would have allowed it has lapsed."""

    code = "plan_expired"
    hint = "Renew the plan."


class InsecureTransport(Forbidden):
    """A key came over plain HTTP from another machine: whoever listened on the way has it now."""

    code = "insecure_transport"
    hint = "Use the server's https address, and replace this key."


class PaymentFailed(PaymentRequired):
    """There is no money: not approved, declined, not the price, or nobody here takes payments."""

    code = "payment_failed"
    hint = "Let the payer approve the checkout, then verify again; or start a new checkout."


class Missing(Refused):
    """There is no such thing, or it belongs to somebody else: the two look alike on purpose."""

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


class PurchaseMissing(Missing):
    """No such purchase in this account."""

    code = "purchase_not_found"
    hint = "Start a new checkout."


class WebhookMissing(Missing):
    """No such webhook in the caller's account."""

    code = "webhook_not_found"
    hint = "List your webhooks."


class Conflict(Refused):
    """The thing is in another state than the caller thinks."""

    code = "conflict"
    hint = "Look at its present state, then decide."


class LeaseLost(Conflict):
    """Somebody else has it now, or it ended: the caller must stop."""

    code = "lease_lost"
    hint = "Stop work on it. Claim again if the work still needs doing."


class LeaseGone(Conflict):
    """Nothing is held under that name, or the lease shown has run out."""

    code = "lease_gone"
    hint = LeaseLost.hint


class LeaseMismatch(Conflict):
    """The name is held, but not by the lease shown."""

    code = "lease_mismatch"
    hint = LeaseLost.hint


class WrongToken(Conflict):
    """The lease is the caller's, but the fencing token that came with it is another's."""

    code = "wrong_token"
    hint = "Send the token that the claim answered, or none."


class NotHeld(Conflict):
    """Nobody holds it, so there is nobody to take it from."""

    code = "not_held"
    hint = "Nothing to do: it is free."


class SessionExpired(Conflict):
    """The session ran out a moment ago."""

    code = "session_expired"
    hint = "Open a new session."


class SessionTaken(Conflict):
    """The name belongs to a live session, and the caller did not show its secret."""

    code = "session_taken"
    hint = "Send the `secret` that opening it answered, choose another name, or wait until it has run out."


class SessionBusy(Conflict):
    """The session is a lane, and it has a task in flight."""

    code = "session_busy"
    hint = "Finish the task in flight first."


class ContextConflict(Conflict):
    """The context has another version than the caller read."""

    code = "context_conflict"
    hint = "Read the session's context again, then write."


class InvalidTransition(Conflict):
    """The task's state does not allow that."""

    code = "invalid_transition"
    hint = "Look at the task's present state."


class LeaseExpired(Conflict):
    """The task's lease ran out before this call."""

    code = "lease_expired"
    hint = "Stop work on it and look at its state; somebody else may have it by now."


class LeaseSuperseded(Conflict):
    """The lease shown is over: the task is another worker's now, or finished."""

    code = "lease_superseded"
    hint = "Stop work on it. What you did after losing the lease must not be published."


class TaskClaimed(Conflict):
    """Somebody holds the task."""

    code = "task_currently_claimed"
    hint = "Wait for the lease to end, or take other work."


class NotYetClaimable(Conflict):
    """The task is scheduled for later."""

    code = "not_yet_claimable"
    hint = "Come back when it is due."

    def __init__(self, message: str, retry_after: int, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after


class CursorTooOld(Conflict):
    """Events after this cursor are gone, by retention or by a restore: following from it would skip them."""

    code = "cursor_too_old"
    hint = "Start again from `oldest`, knowing that something was missed."


class AclConflict(Conflict):
    """The name already has another access list."""

    code = "acl_conflict"
    hint = "Leave `acl` out, or change the list with PUT."


class NameTaken(Conflict):
    """Somebody else has this name."""

    hint = "Choose another name."


class ConfiguredKey(Conflict):
    """The key is part of the server's settings."""

    code = "configured_key"
    hint = "Change the server's settings and restart it."


class LastAdmin(Conflict):
    """Without this key nobody could administer the account."""

    code = "last_admin_key"
    hint = "Make another key with the scope `admin` first."


class TooManyWebhooks(Conflict):
    """The account has as many webhooks as it may."""

    code = "too_many_webhooks"
    hint = "Delete a webhook that nobody needs any more."


class IdempotencyConflict(Conflict):
    """This Idempotency-Key was used for a different request."""

    code = "idempotency_conflict"
    hint = "Use a fresh Idempotency-Key for a different request."


class Limited(Refused):
    """Too much at once. `retry_after` is in seconds, where waiting helps."""

    code = "rate_limited"
    hint = "Wait, then send the same request again."

    def __init__(self, message: str, retry_after: int | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after


class LockLimit(Limited):
    """The caller holds as many locks as it may."""

    code = "lock_limit_exceeded"
    hint = "Release locks you no longer need."


class TooManyElections(Limited):
    """As many elections are live as this server allows."""

    code = "capacity_exceeded"


class TooManyWaiters(Limited):
    """The line for this name is as long as it may get."""

    code = "too_many_waiters"


class MaxWorkersReached(Limited):
    """As many tasks are held as the plan allows."""

    code = "max_workers_reached"
    hint = "Finish a task that is held, wait for a lease to end, or take a larger plan."
    billing: dict[str, Any] | None = None
    """The plan, and how much of it is in use."""

    def __init__(self, message: str, retry_after: int | None = 30, **facts: Any) -> None:
        super().__init__(message, retry_after, **facts)


class RateLimited(Limited):
    """The budget of this window is spent."""


class Trouble(HoldfastError):
    """The store could not do it. `applied` is "no" or "unknown"; "no" is a promise."""

    code = "store_unavailable"
    hint = "Nothing was changed. Wait, then send the same request again."
    applied: ClassVar[str] = "no"
    retry_after: ClassVar[int] = 1


class Overloaded(Trouble):
    """The queue in front of the store is full; the request was never started."""

    code = "overloaded"


class Draining(Trouble):
    """This server is shutting down; another one, or its successor, will answer."""

    code = "draining"


class InFlight(Trouble):
    """Another request under the same Idempotency-Key has not been answered yet."""

    code = "idempotency_in_flight"
    hint = "Wait, then send the same request with the same key again."
    retry_after = 2


class StoreUnavailable(Trouble):
    """The store cannot be reached or written just now."""


class StoreFull(Trouble):
    """The disk under the store is full."""

    code = "storage_full"
    hint = "Nothing was changed. The operator must free disk space; then send the same request again."
    retry_after = 10


class ValueRefused(Trouble):
    """The database would not take a value of this request."""

    code = "value_refused"
    hint = "Nothing was changed. Send plain text without control characters."


class PaymentUnavailable(Trouble):
    """The payment provider did not answer: money may or may not have moved."""

    code = "payment_unavailable"
    hint = "The payment provider did not answer. Nothing is lost and nobody pays twice: send the same request again."
    applied = "unknown"
    retry_after = 5


class OutcomeUnknown(Trouble):
    """The connection broke while committing: it may or may not have happened."""

    code = "outcome_unknown"
    hint = "It may have happened. Look at the present state, or repeat with the same Idempotency-Key."
    applied = "unknown"
