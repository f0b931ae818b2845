"""Jinja templates: autoescaping, and the filters and functions that pages share."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from urllib.parse import quote, urlencode

import jinja2

from holdfast.core.limits import COUNTED_READY
from holdfast.core.row import SECOND, Instant
from holdfast.transport.dashboard import labels, safe_text
from holdfast.transport.dashboard.held import renewal_health
from holdfast.transport.dashboard.static_files import StaticFiles
from holdfast.transport.times import rfc3339, wall_clock


class Templates:
    """Renders templates."""

    def __init__(self, static_files: StaticFiles, pages: Collection[str]) -> None:
        loader = jinja2.PackageLoader("holdfast.transport.dashboard", "templates")
        environment = jinja2.Environment(
            loader=loader,
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        environment.filters.update(
            safe_line=safe_text.safe_line,
            safe_label=safe_text.safe_label,
            safe_block=safe_text.safe_block,
            safe_json=safe_text.safe_json,
            pretty=safe_text.pretty,
            web_link=safe_text.web_link,
            duration=labels.duration,
            event_label=labels.event_label,
            rfc3339=rfc3339,
            clock=labels.clock,
            segment=segment,
            merged=lambda values, more: {**values, **more},
            query=lambda values: urlencode({name: value for name, value in values.items() if value}),
        )
        environment.globals.update(static=static_files.url, milliseconds=milliseconds, pages=pages)
        environment.globals.update(moment_ago=moment_ago, renewal_health=renewal_health, counted_ready=COUNTED_READY)
        self._environment = environment

    def render(self, template: str, variables: dict[str, Any]) -> bytes:
        """Render a template."""
        return self._environment.get_template(template).render(variables).encode()


def segment(text: object) -> str:
    """Escape an id for an address; slashes stay."""
    return quote(str(text), safe="/:@")


def milliseconds(duration: Instant) -> int:
    """A duration for the countdowns in the browser."""
    return max(duration, 0) * 1000 // SECOND


def moment_ago(span: Instant) -> str:
    """The time of the day, on this machine's clock and in whole seconds, that was `span` ago."""
    return rfc3339((wall_clock() - span) // SECOND * SECOND)
