"""Schemas of `/v1/events` and of the events of one task."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core import errors
from holdfast.operations import bounds
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import OperationSchema, QueryText, Time, within
from holdfast.transport.http.streams import frames

Cursor = Annotated[int, within(bounds.EVENT_CURSOR)]
Pattern = Annotated[QueryText, Meta(description="A value, or a prefix followed by `*`.")]


class Event(Struct):
    """One change of one row, with the fields that changed."""

    seq: Annotated[int, Meta(ge=1)]
    subject: str
    version: Annotated[int, Meta(ge=1)]
    kind: str
    at: Time
    actor: str
    request_id: str
    data: dict[str, Any]
    traceparent: str | UnsetType = UNSET


class EventPage(Struct, rename={"next_cursor": "nextCursor", "has_more": "hasMore"}):
    """Events, oldest first; send `nextCursor` as `after` to continue."""

    events: list[Event]
    next_cursor: Cursor
    has_more: bool
    agent_contract: AgentContract


class EventFilter(Struct):
    """Filter, page and wait."""

    after: Annotated[Cursor, Meta(description="The `seq` of the last event you have.")] | UnsetType = UNSET
    limit: Annotated[int, within(bounds.EVENT_PAGE)] = bounds.EVENT_PAGE.default
    wait_seconds: Annotated[float, within(bounds.WAIT)] = bounds.WAIT.default
    subject: Pattern | UnsetType = UNSET
    kind: Pattern | UnsetType = UNSET
    request_id: QueryText | UnsetType = UNSET


class HistoryFilter(Struct):
    """Page of one task's events."""

    after: Annotated[Cursor, Meta(description="The `version` of the last event you have.")] = 0
    limit: Annotated[int, within(bounds.TASK_EVENT_PAGE)] = bounds.TASK_EVENT_PAGE.default


OPERATION_SCHEMAS = {
    "list_events": OperationSchema(
        {200: EventPage},
        query=EventFilter,
        refusals=(errors.CursorTooOld, errors.CursorAhead, errors.RateLimited),
        text_media=(frames.MEDIA.decode(),),
    )
}
