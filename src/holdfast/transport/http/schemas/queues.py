"""Schemas of the operations of `/v1/queues`."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core import errors
from holdfast.operations import bounds
from holdfast.transport.http.api import queues
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import OperationSchema, QueryText, Time, request_body, within
from holdfast.transport.http.schemas.tasks import Count


class Queue(Struct, kw_only=True):
    """The settings of a queue, and how many of its tasks run and wait."""

    type: str
    paused: bool
    max_running: int | None
    max_running_per_key: int | None
    running: Count
    pending: Count
    changed_at: Time | None


class QueueAnswer(Queue, kw_only=True):
    """One queue."""

    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class QueuePage(Struct, rename={"next_cursor": "nextCursor", "has_more": "hasMore"}):
    """Queues that have settings."""

    queues: list[Queue]
    next_cursor: str | None
    has_more: bool
    agent_contract: AgentContract


class QueueFilter(Struct):
    """Page."""

    limit: Annotated[int, within(bounds.SESSION_PAGE)] = bounds.SESSION_PAGE.default
    cursor: Annotated[QueryText, Meta(description="`nextCursor` of the previous page.")] | UnsetType = UNSET


OPERATION_SCHEMAS = {
    "list_queues": OperationSchema({200: QueuePage}, query=QueueFilter),
    "read_queue": OperationSchema({200: QueueAnswer}, refusals=(errors.Invalid,)),
    "set_queue": OperationSchema(
        {200: QueueAnswer},
        body=request_body("SetQueueBody", queues.SetBody, bounds.FIELDS["set_queue"]),
        refusals=(errors.Invalid,),
    ),
}
