"""Asking the resolver, on threads of its own.

The system's resolver cannot be interrupted: one that hangs holds its thread for longer than any attempt lasts. So every
question has a thread, no webhook and no account has more than a few of them, and nobody waits for them at the end.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from contextvars import ContextVar
from typing import Any
from weakref import WeakValueDictionary

from holdfast.core.webhooks.delivery import WebhookKey

PER_HOOK, PER_ACCOUNT, IN_ALL = 2, 16, 256
"""How many questions are open at once: for one webhook, for one account, and in one server."""

ASKED_FOR: ContextVar[WebhookKey] = ContextVar("ASKED_FOR", default=("", ""))
"""For whom an attempt is made: the HTTP library asks for an address, and does not know whose it is."""


class NoSuchHost(Exception):
    """A name leads nowhere."""


class Lookups:
    """The questions that are open."""

    def __init__(self) -> None:
        self._gates: WeakValueDictionary[tuple[str, ...], asyncio.Semaphore] = WeakValueDictionary()

    async def resolve(self, host: str, port: int) -> list[str]:
        """Every address of a name, as this machine's resolver knows it."""
        account, _ = hook = ASKED_FOR.get()
        gates = [self._gate(hook, PER_HOOK), self._gate((account,), PER_ACCOUNT), self._gate((), IN_ALL)]
        entered: list[asyncio.Semaphore] = []
        try:
            for gate in gates:
                await gate.acquire()
                entered.append(gate)
            answer = _ask(host, port)
        except BaseException:
            _leave(entered)
            raise
        answer.add_done_callback(lambda _: _leave(entered))
        # Whoever has no more time goes; the question stays open, and its place taken, until it is answered.
        found = await asyncio.shield(answer)
        if isinstance(found, OSError):
            raise NoSuchHost
        return found

    def _gate(self, key: tuple[str, ...], places: int) -> asyncio.Semaphore:
        gate = self._gates.get(key)
        if gate is None:
            self._gates[key] = gate = asyncio.Semaphore(places)
        return gate


def _leave(gates: list[asyncio.Semaphore]) -> None:
    for gate in gates:
        gate.release()


def _ask(host: str, port: int) -> asyncio.Future[list[str] | OSError]:
    """Ask on a new thread, which nobody waits for when the program ends."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str] | OSError] = loop.create_future()

    def ask() -> None:
        found: list[str] | OSError
        try:
            found = _addresses(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found = error if isinstance(error, OSError) else OSError()
        try:
            loop.call_soon_threadsafe(_settle, answer, found)
        except RuntimeError:  # the loop has ended meanwhile: nobody wants to know any more
            return

    threading.Thread(target=ask, name="holdfast-webhook-lookup", daemon=True).start()
    return answer


def _settle(answer: asyncio.Future[list[str] | OSError], found: list[str] | OSError) -> None:
    if not answer.done():
        answer.set_result(found)


def _addresses(found: list[Any]) -> list[str]:
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
