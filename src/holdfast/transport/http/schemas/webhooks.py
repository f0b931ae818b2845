"""Schemas of `/v1/webhooks` and of OctoStore's `/webhooks`."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core import errors
from holdfast.operations import bounds
from holdfast.transport.http.api import deliveries, webhooks
from holdfast.transport.http.octostore import webhooks as lock_webhooks
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import OperationSchema, Time, request_body, within

State = Literal["active", "paused", "disabled"]
DeliveryState = Literal["pending", "delivered", "dead"]
_KIND = Annotated[str, Meta(pattern=f"^({webhooks.EVENT_PATTERN})$")]
_KINDS = Annotated[list[_KIND], Meta(max_length=bounds.WEBHOOK_EVENTS.most)] | None


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
    """A webhook with its secret, which is shown only once."""

    secret: str
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class Webhooks(Struct):
    """All webhooks of an account."""

    webhooks: list[Webhook]
    agent_contract: AgentContract


class DeletedWebhook(Struct):
    """The webhook was deleted."""

    webhook_id: str
    deleted: Literal[True]
    agent_contract: AgentContract


class Delivery(Struct):
    """One delivery of a message."""

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
    """Deliveries, newest first."""

    deliveries: list[Delivery]
    next_cursor: str | None
    has_more: bool
    agent_contract: AgentContract


class DeliveryFilter(Struct):
    """Filter and page."""

    state: DeliveryState | UnsetType = UNSET
    limit: Annotated[int, within(bounds.DELIVERY_PAGE)] = bounds.DELIVERY_PAGE.default
    cursor: Annotated[str, Meta(pattern="^(-?[0-9]{1,16})?$")] | UnsetType = UNSET


class Tested(Struct):
    """The test message."""

    delivery: Delivery
    agent_contract: AgentContract


class Replayed(Struct, rename={"has_more": "hasMore", "next_after": "nextAfter"}):
    """The number of deliveries that are sent again."""

    replayed: int
    has_more: bool
    next_after: int | None
    agent_contract: AgentContract


class LockWebhook(Struct, kw_only=True):
    """A webhook in OctoStore's form."""

    id: UUID
    user_id: str
    url: str
    secret: Literal["****"] | None
    events: list[str]
    lock_pattern: str | None
    created_at: Time
    active: bool


class NewLockWebhook(LockWebhook, kw_only=True):
    """A new webhook in OctoStore's form."""

    agent_contract: AgentContract


_MISSING = (errors.WebhookMissing,)

OPERATION_SCHEMAS = {
    "create_webhook": OperationSchema(
        {201: NewWebhook},
        body=request_body("CreateWebhookBody", webhooks.CreateBody, bounds.FIELDS["create_webhook"], events=_KINDS),
        refusals=(errors.TooManyWebhooks,),
    ),
    "list_webhooks": OperationSchema({200: Webhooks}),
    "read_webhook": OperationSchema({200: WebhookAnswer}, refusals=_MISSING),
    "update_webhook": OperationSchema(
        {200: WebhookAnswer},
        body=request_body(
            "UpdateWebhookBody",
            webhooks.UpdateBody,
            bounds.FIELDS["update_webhook"],
            events=_KINDS,
            state={"enum": ["active", "paused", None]},
        ),
        refusals=_MISSING,
    ),
    "delete_webhook": OperationSchema({200: DeletedWebhook}, refusals=_MISSING),
    "rotate_webhook_secret": OperationSchema(
        {200: NewWebhook},
        body=request_body("RotateWebhookSecretBody", webhooks.RotateBody, bounds.FIELDS["rotate_webhook_secret"]),
        refusals=_MISSING,
    ),
    "test_webhook": OperationSchema({200: Tested}, refusals=_MISSING),
    "list_deliveries": OperationSchema(
        {200: DeliveryPage}, query=DeliveryFilter, refusals=(*_MISSING, errors.Invalid, errors.CursorAhead)
    ),
    "replay_deliveries": OperationSchema(
        {200: Replayed},
        body=request_body("ReplayDeliveriesBody", deliveries.ReplayBody, bounds.FIELDS["replay_deliveries"]),
        refusals=(*_MISSING, errors.CursorAhead),
    ),
    "create_lock_webhook": OperationSchema(
        {201: NewLockWebhook},
        body=request_body(
            "CreateLockWebhookBody",
            lock_webhooks.LockWebhookBody,
            bounds.FIELDS["create_lock_webhook"],
            events=list[Literal["acquired", "released", "renewed", "expired", "*"]] | None,
        ),
        refusals=(errors.Invalid, errors.TooManyWebhooks),
    ),
    "list_lock_webhooks": OperationSchema({200: list[LockWebhook]}),
    "delete_lock_webhook": OperationSchema({204: None}, refusals=_MISSING),
}
