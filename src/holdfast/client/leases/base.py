"""Base of the lease classes: attributes and checks that threads and asyncio tasks share."""

from __future__ import annotations

import logging
import os
from typing import Any

import msgspec

from holdfast.client.errors import Document, LeaseLost
from holdfast.client.forks import lease_of_parent
from holdfast.client.leases.claims import Claim
from holdfast.client.leases.state import LeaseState, Terms
from holdfast.client.worker.errors import failure, is_failure

log = logging.getLogger("holdfast.client")


class LeaseBase:
    """A held lease. Call `check()` before every step that must not be done twice."""

    is_settled = False
    """Whether it was done, completed, failed, released or offered before the end of its block."""

    def __init__(self) -> None:
        self._granted: LeaseState | None = None
        self._process = os.getpid()
        """The process that claims and renews it: a child after a fork may do neither."""
        self.handover: dict[str, Any] = {}
        """Fields for the next holder, sent with every renewal and with the release."""

    def check(self) -> None:
        """Raise LeaseLost unless it is certain at this moment that no other holder can have the lease."""
        self._check_process()
        self.state.check()

    @property
    def token(self) -> int:
        """Fencing token: grows with every grant of this name. Let what you write to refuse smaller tokens."""
        return self.terms.token

    @property
    def remaining(self) -> float:
        """Seconds for which the lease is surely yours, if no further renewal succeeds."""
        return self.state.remaining if self._is_own else 0.0

    @property
    def document(self) -> Document:
        """The server's answer to the claim."""
        return self.terms.document

    @property
    def terms(self) -> Terms:
        """The granted lease."""
        return self.state.terms

    @property
    def state(self) -> LeaseState:
        """Whether the lease is still surely ours, and when to renew it."""
        if self._granted is None:
            raise RuntimeError("the lease is not held before its `with` block")
        return self._granted

    @property
    def _is_own(self) -> bool:
        return os.getpid() == self._process

    def _check_process(self) -> None:
        if not self._is_own:
            raise lease_of_parent(self.terms.what)


class JobLeaseBase(LeaseBase):
    """A held job."""

    kind = "job"
    is_offered = False
    """Whether another worker may take it over."""
    shown_progress: Document | None = None
    """The progress that others see."""

    @property
    def id(self) -> str:
        """The job's name."""
        return str(self.document["job_id"])

    @property
    def previous(self) -> Document | None:
        """How the last ownership ended, with its `note` and `checkpoint`; None if there was none."""
        previous: Document | None = self.document.get("previous")
        return previous

    def _offered(self) -> None:
        """Nothing is certain any more: whoever has the code may have taken over."""
        self.is_offered = True
        self.state.refused(LeaseLost(f"{self.terms.what} is offered: another worker may have it"))

    def _kept(self, claim: Claim, document: Document, sent: float) -> None:
        """The offer was withdrawn with this answer: the lease is surely ours again."""
        if document.get("status") in {"released", "pending"}:
            raise LeaseLost(f"the session that held {self.terms.what} is over", document=document)
        terms = msgspec.structs.replace(self.terms, **claim.duration(document)._asdict())
        self._granted, self.is_settled, self.is_offered = LeaseState(terms, sent), False, False

    @property
    def note(self) -> str | None:
        """A note for the next holder, sent with every renewal and with the release."""
        return self.handover.get("note")

    @note.setter
    def note(self, text: str) -> None:
        str.encode(text)  # a value that cannot be sent is refused here, where it is given
        self.handover = self.handover | {"note": text}


class TaskLeaseBase(JobLeaseBase):
    """A held task."""

    kind = "task"
    result: Document | None = None
    """The result with which the task is completed at the end of the block."""

    @property
    def id(self) -> str:
        """The task's id."""
        return str(self.document["id"])

    def outcome(self, error: BaseException | None) -> tuple[str, dict[str, Any]]:
        """How the attempt ends, as an operation's name without `_task` and its fields."""
        if error is None:
            return "complete", {"result": self.result}
        return ("fail", failure(error)) if is_failure(error) else ("release", {})

    @property
    def payload(self) -> Document:
        """The task's payload."""
        payload: Document = self.document["payload"]
        return payload

    @property
    def previous(self) -> Document | None:
        """How the last attempt ended, with its `note` and `checkpoint`; None for the first attempt."""
        previous: Document | None = self.document.get("previousAttempt")
        return previous
