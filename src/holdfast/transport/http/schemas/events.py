"""`/v1/events`, and the events of one task."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core import errors
from holdfast.transport.http.api import events
from holdfast.transport.http.bodies import query
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import Shape, Time
from holdfast.transport.http.streams import frames

Cursor = Annotated[int, Meta(ge=0, le=2**53)]
Limit = Annotated[int, Meta(ge=1, le=events.MAX_PAGE)]
Pattern = Annotated[
    str, Meta(max_length=query.MAX_TEXT, pattern="^[^\\u0000]*$", description="With `*` at its end: all that begin so.")
]


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
    """Events, oldest first; `nextCursor` is what to send as `after`."""

    events: list[Event]
    next_cursor: Cursor
    has_more: bool
    agent_contract: AgentContract


class EventFilter(Struct):
    """Which events, and how long to wait for one."""

    after: Annotated[Cursor, Meta(description="The `seq` of the last event you have seen.")] | UnsetType = UNSET
    limit: Limit = events.PAGE
    wait_seconds: Annotated[float, Meta(ge=0, le=events.MAX_WAIT)] = 0
    subject: Pattern | UnsetType = UNSET
    kind: Pattern | UnsetType = UNSET
    request_id: Annotated[str, Meta(max_length=query.MAX_TEXT, pattern="^[^\\u0000]*$")] | UnsetType = UNSET


class HistoryFilter(Struct):
    """Which events of one task."""

    after: Annotated[Cursor, Meta(description="The `version` of the last event you have seen.")] = 0
    limit: Limit = events.MAX_PAGE


SHAPES = {
    "list_events": Shape(
        {200: EventPage},
        query=EventFilter,
        refusals=(errors.CursorTooOld, errors.RateLimited),
        texts=(frames.MEDIA.decode(),),
    )
}
