"""Timeline of agents: one row per agent, one bar for each time that it held something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from holdfast.core.holdings.spans import HELD, Span
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.transport.dashboard.lists.held_work import Agent
from holdfast.transport.dashboard.ownership_timeline import TimelineRow, lanes_of, place

MAX_BARS = 60
"""Bars of one agent, the newest."""


class AgentHistory(msgspec.Struct, frozen=True):
    """What one agent held in a time."""

    agent: Agent
    spans: list[Span]
    """By their ends."""

    @property
    def last(self) -> Instant:
        """When it last held something."""
        return self.spans[-1].until

    @property
    def is_holding(self) -> bool:
        """Whether it holds something now."""
        return any(span.how == HELD for span in self.spans)

    @property
    def left_out(self) -> int:
        """How many bars are not drawn."""
        return max(len(self.spans) - MAX_BARS, 0)


def histories(
    spans: Iterable[Span], names: Mapping[str, str], live: Sequence[Session], first: Instant
) -> list[AgentHistory]:
    """What each agent held after `first`, by name.

    What was claimed for a session belongs to the name of that session, everything else to the owner's name. `names`
    are those of sessions, by id; `live` are the open ones, which have a page. Agents with the same name share a row.
    """
    names = {**names, **{session.id: session.name or session.id for session in live}}
    by_name = {session.name or session.id: session for session in live}
    found: dict[str, list[Span]] = {}
    for span in spans:
        if span.until > first:
            found.setdefault(names.get(span.session or "") or span.owner or "", []).append(span)
    return [AgentHistory(Agent(name, by_name.get(name), []), found[name]) for name in sorted(found)]


def draw(history: AgentHistory, titles: Mapping[tuple[str, str], str], first: Instant, last: Instant) -> TimelineRow:
    """The row of one agent; `titles` of tasks and reservations are by (noun, id)."""
    bars = [
        place(span, first, last, lane, f"{span.kind} {titles.get((span.noun, span.id), span.id)}")
        for span, lane in lanes_of(history.spans[-MAX_BARS:])
    ]
    return TimelineRow(history.agent.name, bars, 1 + max(bar.lane for bar in bars))


def drawn_spans(shown: Sequence[AgentHistory]) -> list[Span]:
    """The spans that get bars."""
    return [span for history in shown for span in history.spans[-MAX_BARS:]]
