"""How a tool's request reaches a server elsewhere.

A room of its own, for a server asks only itself, and an HTTP client takes a tenth of its start to import.
"""

from __future__ import annotations

import httpx2

from holdfast.transport.advice.contract import check_state, retry_after
from holdfast.transport.http.request import encode
from holdfast.transport.ids import ids
from holdfast.transport.mcp.in_process import Ask, Reply

PATIENCE_SECONDS = 90.0
"""Longer than a handler ever waits."""


class Remote:
    """Asks a server elsewhere."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url.rstrip("/")
        self._client = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {key}"}, timeout=httpx2.Timeout(PATIENCE_SECONDS, connect=10.0)
        )

    async def ask(self, ask: Ask) -> Reply:
        """Send it; a server that cannot be reached is told as a refusal, like everything else."""
        request_id = ids.request_id()
        address = f"{self._url}{ask.path}" + (f"?{ask.query}" if ask.query else "")
        headers = [*ask.headers, (b"x-request-id", request_id.encode())]
        try:
            answer = await self._client.request(ask.method, address, headers=headers, content=ask.body)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            return _unreachable(self._url, request_id, applied="no")
        except httpx2.HTTPError:
            return _unreachable(self._url, request_id, applied="no" if ask.method == "GET" else "unknown")
        return Reply(answer.status_code, answer.content)

    async def close(self) -> None:
        """Hang up."""
        await self._client.aclose()


def _unreachable(url: str, request_id: str, applied: str) -> Reply:
    """Nobody answered. Advise a repetition only if the first try cannot have had an effect."""
    retry = retry_after(5)
    look = check_state("list_events", query=f"request_id={request_id}")
    document = {
        "error": "unreachable",
        "message": f"{url} does not answer",
        "request_id": request_id,
        "applied": applied,
        "agent_contract": retry if applied == "no" else look,
    }
    return Reply(503, encode(document))
