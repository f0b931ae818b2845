"""The pages of the reference: all operations, and one page for each group."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs

from holdfast.operations.operation import DISCOVERY
from holdfast.transport.dashboard.page import MAX_TEXT, TemplateResponse
from holdfast.transport.dashboard.reference.curl import KEY_VARIABLE, curl
from holdfast.transport.dashboard.reference.model import Entry, Group, reference
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import HttpRefusal, Request
from holdfast.transport.http.schemas.all_operations import OPERATION_SCHEMAS
from holdfast.transport.http.system.openapi import openapi

PATH = "/ui/reference"


def is_reference(path: str) -> bool:
    """Whether an address belongs to the reference."""
    return path == PATH or path.startswith(f"{PATH}/")


class Reference:
    """Answers requests for the reference, which is read from the OpenAPI document at the first one."""

    def __init__(self, ctx: HandlerContext) -> None:
        self._ctx = ctx
        self._groups: dict[str, Group] = {}

    async def answer(self, request: Request, path: str) -> TemplateResponse:
        """A page; like the documents of the API it counts against the rate limit of the client's address."""
        await self._ctx.charge_address(request, DISCOVERY)
        if not self._groups:
            # In a thread: it takes a part of a second, which the event loop cannot spare.
            groups = await asyncio.to_thread(lambda: reference(openapi()))
            self._groups = {group.name: group for group in groups}
        name = path.removeprefix(PATH).strip("/")
        shared = {"groups": self._groups.values(), "key_variable": KEY_VARIABLE}
        if not name:
            query = parse_qs(request.scope["query_string"].decode("latin-1"), errors="replace")
            wanted = query.get("q", [""])[-1][:MAX_TEXT]
            found = [
                (group, [each for each in group.entries if each.matches(wanted)]) for group in self._groups.values()
            ]
            return TemplateResponse("reference.html", shared | {"wanted": wanted, "found": found})
        group = self._groups.get(name)
        if group is None:
            raise HttpRefusal(404, "there is no such page")

        address = self._address(request)

        def command(entry: Entry) -> str:
            return curl(entry.operation, entry.example, OPERATION_SCHEMAS[entry.operation.name].media, address)

        return TemplateResponse("reference-group.html", shared | {"group": group, "command": command})

    def _address(self, request: Request) -> str:
        """The public address; else the one by which this browser has reached the server."""
        host = request.headers.get(b"host", b"").decode("latin-1").lower()
        scheme = "https" if self._ctx.network.is_encrypted(request) else "http"
        return self._ctx.settings.public_url or f"{scheme}://{host}"
