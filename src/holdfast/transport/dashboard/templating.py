"""Templates: escaped always, with the few words that pages share."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from urllib.parse import quote, urlencode

import jinja2

from holdfast.core.row import SECOND, Instant
from holdfast.transport.dashboard import labels, safe_text
from holdfast.transport.dashboard.static_files import StaticFiles
from holdfast.transport.times import rfc3339


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
            inert=safe_text.inert,
            inert_block=safe_text.inert_block,
            inert_json=safe_text.inert_json,
            pretty=safe_text.pretty,
            web_link=safe_text.web_link,
            duration=labels.duration,
            event_words=labels.event_words,
            rfc3339=rfc3339,
            segment=segment,
            merged=lambda told, more: {**told, **more},
            query=lambda told: urlencode({name: value for name, value in told.items() if value}),
        )
        environment.globals.update(static=static_files.url, milliseconds=milliseconds, pages=pages)
        self._environment = environment

    def render(self, template: str, told: dict[str, Any]) -> bytes:
        """A page."""
        return self._environment.get_template(template).render(told).encode()


def segment(text: object) -> str:
    """An id for an address: slashes stay, everything else that means something there is escaped."""
    return quote(str(text), safe="/:@")


def milliseconds(span: Instant) -> int:
    """For the clocks in the browser."""
    return max(span, 0) * 1000 // SECOND
