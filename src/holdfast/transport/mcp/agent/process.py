"""One process is one agent: what is claimed through it is bound to a session that it renews while it runs.

A model thinks for minutes between two tool calls and cannot renew what it holds; the process that its host started can.
It is killed with the host, and then the session ends and frees everything. A model that has lost its lease ids, because
its conversation was shortened, names the job, the task or the reservation, and the process adds the lease id.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from holdfast.client.lease_memory import LeaseMemory
from holdfast.core.errors import Invalid
from holdfast.transport.mcp.agent.calls import AgentCalls
from holdfast.transport.mcp.agent.session import AgentSession, OtherSessions
from holdfast.transport.mcp.in_process import Sender, ToolRequest, ToolResponse
from holdfast.transport.mcp.results import refusal_response, with_warnings

log = logging.getLogger("holdfast.mcp")

SHORTEST_RETRY = 0.5
NAMED = 10
"""How many of the things that the agent holds or has lost are named."""


class AgentProcess:
    """Sends the tool calls of one agent, and renews its session between them."""

    def __init__(
        self,
        sender: Sender,
        memory: LeaseMemory,
        seconds: int,
        idle_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sender = sender
        self._memory = memory
        self._seconds = seconds
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._session = AgentSession(sender, memory, seconds)
        self._others = OtherSessions(sender, seconds)
        self._calls = AgentCalls(sender, memory, self._session, self._note_loss)
        self._last_call = clock()
        self._is_resumed = False
        self._was_open = False
        """Whether the session was open after the last call."""
        self._has_stopped = False
        """Whether renewal has stopped because there was no tool call."""
        self._reported_lost: set[tuple[str, str, str]] = set()
        self._notices: list[str] = []
        """What the next answer reports."""

    async def keep_alive(self) -> None:
        """Resume the session of the agent's last process, then renew it until this task is cancelled."""
        while True:
            try:
                answered = await self.renew()
            except Exception:  # whatever went wrong once must not end the renewal for good
                log.exception("what was claimed could not be renewed")
                answered = False
            await asyncio.sleep(self._seconds / 3 if answered else max(self._seconds / 12, SHORTEST_RETRY))

    async def renew(self) -> bool:
        """Renew the session once, unless no tool was called for long; False if the server did not answer."""
        if not self._is_resumed:
            return await self._resume()
        if self._clock() - self._last_call >= self._idle_seconds:
            self._has_stopped = True
        if self._has_stopped:
            return True
        await self._others.renew()
        return await self._session.renew()

    async def send(self, request: ToolRequest) -> ToolResponse:
        """Send a tool call, and report in its answer what happened to the session. Reads of resources pass."""
        if not request.operation:
            return await self._sender.send(request)
        self._last_call = self._clock()
        await self._wake()
        request = self._others.completed(request)
        try:
            response = await self._calls.send(request)
        except Invalid as error:
            response = refusal_response(error)
        self._others.learn(request, response)
        self._was_open = self._session.proof is not None
        notices, self._notices = self._notices, []
        return with_warnings(response, notices)

    async def _resume(self) -> bool:
        """Resume the session of the agent's last process; False if the server did not answer."""
        self._is_resumed = await self._session.resume()
        held, self._session.held = self._session.held, []
        if held:
            self._notices.append(f"You were restarted and still hold {_listed(held)}. See my_work.")
        return self._is_resumed

    async def _wake(self) -> None:
        """Prepare for a tool call: go on renewing, and take note of what was lost meanwhile."""
        if not self._is_resumed:
            await self._resume()
        if self._has_stopped:
            self._has_stopped = False
            stopped = f"Renewal had stopped after {self._idle_seconds / 60:g} min without a tool call."
            await self._session.renew()
            if self._session.proof is not None:
                self._notices.append(f"{stopped} You still hold what you held; it is renewed again.")
            elif self._was_open:
                self._note_loss(stopped)
        elif self._was_open and self._session.proof is None:
            self._note_loss(f"Your session ended: it could not be renewed for {self._seconds} s.")

    def _note_loss(self, reason: str) -> None:
        known = {(*key, entry.lease_id): key for key, entry in self._memory.all().items()}
        held = [key for each, key in known.items() if each not in self._reported_lost]
        self._reported_lost.update(known)
        what = f"What you had claimed was released: {_listed(held)}. Others may work on it now: claim it again first."
        self._notices.append(f"{reason} {what if held else 'You held nothing.'}")


def _listed(held: list[tuple[str, str]]) -> str:
    names = [f"{kind} {row_id}" for kind, row_id in held[:NAMED]]
    return ", ".join([*names, "…"] if len(held) > NAMED else names)
