"""`/v1/webhooks`, and OctoStore's `/webhooks`."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core import errors
from holdfast.core.webhooks.destination import MAX_URL
from holdfast.transport.http.api import deliveries, webhooks
from holdfast.transport.http.bodies import query
from holdfast.transport.http.octostore import webhooks as lock_webhooks
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import Shape, Time, described, number, text

State = Literal["active", "paused", "disabled"]
DeliveryState = Literal["pending", "delivered", "dead"]
_KIND = Annotated[str, Meta(pattern=f"^({webhooks.EVENT_PATTERN})$")]
_KINDS = Annotated[list[_KIND], Meta(max_length=webhooks.MAX_EVENTS)] | None


class Webhook(Struct, kw_only=True):
    """A webhook, without its secret."""

    webhook_id: str
    family: Literal["standard", "octostore"]
    url: str
    events: list[str]
    subject: str | None
    state: State
    reason: str | None
    old_secret_until: Time | None
    created_by: str
    created_at: Time


class WebhookAnswer(Webhook, kw_only=True):
    """One webhook."""

    deliveries: dict[DeliveryState, int] | UnsetType = UNSET
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class NewWebhook(Webhook, kw_only=True):
    """A webhook with its secret, which is shown this once."""

    secret: str
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class Webhooks(Struct):
    """All of an account's."""

    webhooks: list[Webhook]
    agent_contract: AgentContract


class DeletedWebhook(Struct):
    """It is gone."""

    webhook_id: str
    deleted: Literal[True]
    agent_contract: AgentContract


class Delivery(Struct):
    """One message, on its way or settled."""

    seq: int
    message_id: str
    kind: str
    subject: str
    state: DeliveryState
    attempts: int
    next_at: Time | None
    status: int | None
    error: str | None
    created_at: Time
    settled_at: Time | None


class DeliveryPage(Struct, rename={"next_cursor": "nextCursor", "has_more": "hasMore"}):
    """Deliveries, the newest first."""

    deliveries: list[Delivery]
    next_cursor: str | None
    has_more: bool
    agent_contract: AgentContract


class DeliveryFilter(Struct):
    """Which deliveries."""

    state: DeliveryState | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=deliveries.MAX_PAGE)] = deliveries.PAGE
    cursor: Annotated[str, Meta(pattern="^(-?[0-9]{1,16})?$")] | UnsetType = UNSET


class Tested(Struct):
    """What was sent."""

    delivery: Delivery
    agent_contract: AgentContract


class Replayed(Struct, rename={"has_more": "hasMore", "next_after": "nextAfter"}):
    """How many are sent again."""

    replayed: int
    has_more: bool
    next_after: int | None
    agent_contract: AgentContract


class LockWebhook(Struct, kw_only=True):
    """A webhook as OctoStore shows it."""

    id: UUID
    user_id: str
    url: str
    secret: Literal["****"] | None
    events: list[str]
    lock_pattern: str | None
    created_at: Time
    active: bool


class NewLockWebhook(LockWebhook, kw_only=True):
    """The same, just made."""

    agent_contract: AgentContract


_FILTERS = {"events": _KINDS, "subject": text(query.MAX_TEXT), "url": text(MAX_URL)}
_MISSING = (errors.WebhookMissing,)
_NUMBER = number(-deliveries.FROM_THE_NEWEST, deliveries.FROM_THE_NEWEST)

SHAPES = {
    "create_webhook": Shape(
        {201: NewWebhook},
        body=described("CreateWebhookBody", webhooks.CreateBody, **_FILTERS),
        refusals=(errors.TooManyWebhooks,),
    ),
    "list_webhooks": Shape({200: Webhooks}),
    "read_webhook": Shape({200: WebhookAnswer}, refusals=_MISSING),
    "update_webhook": Shape(
        {200: WebhookAnswer},
        body=described(
            "UpdateWebhookBody", webhooks.UpdateBody, **_FILTERS, state={"enum": ["active", "paused", None]}
        ),
        refusals=_MISSING,
    ),
    "delete_webhook": Shape({200: DeletedWebhook}, refusals=_MISSING),
    "rotate_webhook_secret": Shape(
        {200: NewWebhook},
        body=described("RotateWebhookSecretBody", webhooks.RotateBody, grace_seconds=number(0, webhooks.MAX_GRACE)),
        refusals=_MISSING,
    ),
    "test_webhook": Shape({200: Tested}, refusals=_MISSING),
    "list_deliveries": Shape({200: DeliveryPage}, query=DeliveryFilter, refusals=(*_MISSING, errors.Invalid)),
    "replay_deliveries": Shape(
        {200: Replayed},
        body=described("ReplayDeliveriesBody", deliveries.ReplayBody, seq=_NUMBER, after=_NUMBER),
        refusals=_MISSING,
    ),
    "create_lock_webhook": Shape(
        {201: NewLockWebhook},
        body=described(
            "CreateLockWebhookBody",
            lock_webhooks.LockWebhookBody,
            events=list[Literal["acquired", "released", "renewed", "expired", "*"]] | None,
            url=text(MAX_URL),
            secret=text(lock_webhooks.MAX_SECRET),
            lock_pattern=text(lock_webhooks.MAX_PATTERN),
        ),
        refusals=(errors.Invalid, errors.TooManyWebhooks),
    ),
    "list_lock_webhooks": Shape({200: list[LockWebhook]}),
    "delete_lock_webhook": Shape({204: None}, refusals=_MISSING),
}
