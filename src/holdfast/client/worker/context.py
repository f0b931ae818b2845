"""Contexts: what a handler knows of its task, and what it can do with it while it runs.

A plain handler gets a `TaskContext`. An `async` one gets an `AsyncTaskContext`, whose methods that call the server are
awaited.
"""

from __future__ import annotations

import asyncio
from typing import Any, Generic, TypeVar

from holdfast.client.errors import Document
from holdfast.client.leases.types import TaskLease
from holdfast.client.worker.errors import Asked

Payload = TypeVar("Payload")


class ContextBase(Generic[Payload]):
    """What both contexts have: nothing here calls the server."""

    payload: Payload
    """The task's payload: a dict, or an object of the type that the handler asked for."""

    def __init__(self, lease: TaskLease, payload: Payload) -> None:
        self._lease = lease
        self.payload = payload

    def check(self) -> None:
        """Raise LeaseLost unless the task is surely still ours, CancelRequested if it is to be cancelled."""
        self._lease.check()

    @property
    def id(self) -> str:
        """The task's id."""
        return self._lease.id

    @property
    def document(self) -> Document:
        """The task, as the claim returned it."""
        return self._lease.document

    @property
    def previous(self) -> Document | None:
        """How the last attempt ended, with its `note` and `checkpoint`; None for the first attempt."""
        return self._lease.previous

    @property
    def answer(self) -> str | None:
        """The last answer of a person to a question about this task, if any; `document["answered"]` has the rest."""
        return None if self._answered is None else str(self._answered["answer"])

    @property
    def _answered(self) -> Document | None:
        answered: Document | None = self._lease.document.get("answered")
        return answered

    def _answer_to(self, question: str) -> str | None:
        """The answer, if it is one to this question."""
        return self.answer if self._answered is not None and self._answered["question"] == question else None

    @property
    def token(self) -> int:
        """Fencing token: larger than that of every earlier holder."""
        return self._lease.token

    @property
    def note(self) -> str | None:
        """A note for the next attempt."""
        return self._lease.note

    @note.setter
    def note(self, text: str) -> None:
        self._lease.note = text


class TaskContext(ContextBase[Payload]):
    """Context of a plain handler."""

    @property
    def lease(self) -> TaskLease:
        """The lease of the task, for what the context does not have, such as `release(delay_seconds)`."""
        return self._lease

    def checkpoint(self, data: Any) -> None:
        """Save data for the next attempt. It is stored when this returns."""
        self._lease.checkpoint(data)

    def progress(self, fraction: float, message: str | None = None) -> None:
        """Show which part of the work is done, from 0 to 1, and what is done now: a bar in the dashboard.

        Nothing is sent if neither the whole percent nor the message has changed.
        """
        self._lease.progress(fraction, message)

    def ask(self, question: str, **fields: Any) -> str:
        """Ask a person, unless the last answer is one to this question: then that is returned.

        Otherwise this ends the attempt, uncounted, by raising `Asked`. When a person has answered, a worker runs the
        handler again from its beginning. `fields`: `choices`, `deadline`, `on_timeout` and `checkpoint`.
        """
        if (answer := self._answer_to(question)) is not None:
            return answer
        self._lease.ask(question, **fields)
        raise Asked(question)

    def offer(self, **fields: Any) -> str:
        """Offer the task to another worker; returns the code. What the handler returns after that is not recorded."""
        return self._lease.offer(**fields)

    def withdraw(self) -> None:
        """Withdraw the offer and go on. Raises LeaseLost if another worker has taken over."""
        self._lease.withdraw()


class AsyncTaskContext(ContextBase[Payload]):
    """Context of an `async` handler, which is cancelled when the lease is lost or cancellation is requested."""

    async def checkpoint(self, data: Any) -> None:
        """Save data for the next attempt. It is stored when this returns."""
        await asyncio.to_thread(self._lease.checkpoint, data)

    async def progress(self, fraction: float, message: str | None = None) -> None:
        """Show which part of the work is done, from 0 to 1, and what is done now: a bar in the dashboard.

        Nothing is sent if neither the whole percent nor the message has changed.
        """
        await asyncio.to_thread(self._lease.progress, fraction, message)

    async def ask(self, question: str, **fields: Any) -> str:
        """Ask a person, unless the last answer is one to this question: then that is returned.

        Otherwise this ends the attempt, uncounted, by raising `Asked`. When a person has answered, a worker runs the
        handler again from its beginning. `fields`: `choices`, `deadline`, `on_timeout` and `checkpoint`.
        """
        if (answer := self._answer_to(question)) is not None:
            return answer
        await asyncio.to_thread(self._lease.ask, question, **fields)
        raise Asked(question)

    async def offer(self, **fields: Any) -> str:
        """Offer the task to another worker; returns the code. What the handler returns after that is not recorded."""
        return await asyncio.to_thread(self._lease.offer, **fields)

    async def withdraw(self) -> None:
        """Withdraw the offer and go on. Raises LeaseLost if another worker has taken over."""
        await asyncio.to_thread(self._lease.withdraw)
