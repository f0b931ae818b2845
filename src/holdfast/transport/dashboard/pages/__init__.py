"""The pages, in the order of the navigation. The first one is also `/`."""

from __future__ import annotations

from holdfast.transport.dashboard.page import Page
from holdfast.transport.dashboard.pages import (
    agents,
    bulk,
    charts,
    dead_letters,
    elections,
    events,
    files,
    held,
    jobs,
    keys,
    now,
    questions,
    queues,
    tasks,
    timeline,
    webhooks,
)

PAGES: tuple[Page, ...] = (
    now.PAGE,
    charts.PAGE,
    held.PAGE,
    jobs.PAGE,
    files.PAGE,
    tasks.PAGE,
    queues.PAGE,
    questions.PAGE,
    dead_letters.PAGE,
    bulk.PAGE,
    agents.PAGE,
    timeline.PAGE,
    elections.PAGE,
    events.PAGE,
    webhooks.PAGE,
    keys.PAGE,
)
