"""What a holder can ask of its lease, whichever way it is renewed."""

from __future__ import annotations

from typing import Any

from holdfast.client.errors import Document
from holdfast.client.lease_clock import LeaseClock, Terms


class Holding:
    """Something that is ours for a while. Ask `check()` before every step that must not be done twice."""

    def __init__(self) -> None:
        self._granted: LeaseClock | None = None
        self._left: dict[str, Any] = {}

    def check(self) -> None:
        """Raise LeaseLost unless it can be proved at this moment that nobody else can have it."""
        self._clock.check()

    @property
    def token(self) -> int:
        """Grows with every grant of this name: hand it to whatever you write to, and let that refuse smaller ones."""
        return self.terms.token

    @property
    def remaining(self) -> float:
        """For how many seconds more it is surely ours, if no renewal gets through."""
        return self._clock.remaining

    @property
    def document(self) -> Document:
        """What the claim answered."""
        return self.terms.document

    @property
    def terms(self) -> Terms:
        """What was granted."""
        return self._clock.terms

    @property
    def _clock(self) -> LeaseClock:
        if self._granted is None:
            raise RuntimeError("nothing is held before the `with` block")
        return self._granted


class JobHolding(Holding):
    """What a job adds."""

    @property
    def previous(self) -> Document | None:
        """How the last ownership ended, with the `note` and `checkpoint` that were left."""
        found: Document | None = self.document.get("previous")
        return found

    @property
    def note(self) -> str | None:
        """For the next owner; sent with every renewal, and when it is given back."""
        return self._left.get("note")

    @note.setter
    def note(self, text: str) -> None:
        self._left = self._left | {"note": text}


class TaskHolding(JobHolding):
    """What a task adds."""

    result: Document | None = None
    """What it is completed with at the end of the block."""
    _settled = False

    @property
    def id(self) -> str:
        """The task's id."""
        return str(self.document["id"])

    @property
    def payload(self) -> Document:
        """What is to be done."""
        found: Document = self.document["payload"]
        return found

    @property
    def previous(self) -> Document | None:
        """How the last attempt ended, with the `note` and `checkpoint` that were left."""
        found: Document | None = self.document.get("previousAttempt")
        return found
