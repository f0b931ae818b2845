"""The pages, in the order of the rail. The first one is also `/`."""

from __future__ import annotations

from holdfast.transport.dashboard.page import Page
from holdfast.transport.dashboard.pages import agents, elections, jobs, now

PAGES: tuple[Page, ...] = (now.PAGE, jobs.PAGE, agents.PAGE, elections.PAGE)
