"""Sends tool requests to a server over HTTP.

A separate module because importing an HTTP client is slow and the server itself never needs this one.
"""

from __future__ import annotations

import httpx2

from holdfast.transport.advice.contract import retry_after
from holdfast.transport.advice.refusals import Refusal, for_refusal
from holdfast.transport.http.request import encode
from holdfast.transport.ids import ids
from holdfast.transport.mcp.in_process import ToolRequest, ToolResponse

TIMEOUT_SECONDS = 90.0
"""Longer than any handler waits."""


class RemoteSender:
    """Sends requests to a server over HTTP, with one API key or without any."""

    def __init__(self, url: str, key: str | None) -> None:
        self._url = url.rstrip("/")
        self._client = httpx2.AsyncClient(
            headers={} if key is None else {"Authorization": f"Bearer {key}"},
            timeout=httpx2.Timeout(TIMEOUT_SECONDS, connect=10.0),
        )

    async def send(self, request: ToolRequest) -> ToolResponse:
        """Send a request; an unreachable server becomes a 503 response with an agent_contract."""
        request_id = ids.request_id()
        address = f"{self._url}{request.path}" + (f"?{request.query}" if request.query else "")
        headers = [*request.headers, (b"x-request-id", request_id.encode())]
        try:
            response = await self._client.request(request.method, address, headers=headers, content=request.body)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            return _unreachable(self._url, request, request_id, applied="no")
        except httpx2.HTTPError:
            applied = "no" if request.method == "GET" else "unknown"
            return _unreachable(self._url, request, request_id, applied)
        return ToolResponse(response.status_code, response.content)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _unreachable(url: str, request: ToolRequest, request_id: str, applied: str) -> ToolResponse:
    """A 503 response for an unreachable server. It advises to retry only if the request cannot have had an effect."""
    unknown = Refusal("outcome_unknown", request.operation, request.subject, request_id)
    document = {
        "error": "unreachable",
        "message": f"{url} does not respond",
        "request_id": request_id,
        "applied": applied,
        "agent_contract": retry_after(5) if applied == "no" else for_refusal(unknown),
    }
    return ToolResponse(503, encode(document))
