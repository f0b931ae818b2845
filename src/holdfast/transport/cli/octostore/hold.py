"""Verbs `lock hold` and `election hold`: acquire, report, renew, and stop in time when the lease is not certain."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, TypeVar

from holdfast.client.errors import HoldfastError, Unreachable
from holdfast.client.leases.clock import now
from holdfast.operations.bounds import ELECTION_TTL
from holdfast.transport.cli.credentials import BadAddress
from holdfast.transport.cli.octostore import failures
from holdfast.transport.cli.octostore.reports import Reports
from holdfast.transport.cli.octostore.requests import Requester, check_encryption
from holdfast.transport.cli.octostore.targets import Election, Lock, Lost, Wait
from holdfast.transport.cli.output import print_message
from holdfast.transport.cli.verbs.verb import Invocation

T = TypeVar("T")

TIMED_OUT, LOST, USAGE, FAILED = 11, 20, 64, 70
_POLL_SECONDS = 0.1
"""How often deadlines are checked."""
_SHUTDOWN_SECONDS = 2.0
_LOCK_TTL = 120
"""Twice the server's default, as in OctoStore's own program."""
_CLIENT_ERRORS = 4
"""First digit of the HTTP statuses for which the client is to blame."""


class Signalled(Exception):
    """A signal asked us to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.status = 128 + number


def run(invocation: Invocation) -> int:
    """Hold until a signal; the exit status says how it ended."""
    arguments = invocation.arguments
    is_lock = invocation.verb.name == "lock hold"
    try:
        requester = Requester(arguments, with_token=is_lock)
        check_encryption(requester.server, allow_http=bool(arguments["allow_insecure_http"]))
    except BadAddress as error:
        print_message(f"holdfast: {error}")
        return USAGE
    name, candidate = arguments["name"], arguments.get("candidate")
    target: Lock | Election
    if is_lock:
        target = Lock(requester, name, arguments["ttl"] or _LOCK_TTL)
    else:
        target = Election(requester, name, arguments["ttl"] or ELECTION_TTL.default, str(candidate))
    reports = Reports(target.kind, name, requester.server, as_json=bool(arguments["json"]), candidate=candidate)
    shutdown = min(arguments["shutdown_timeout"] or _SHUTDOWN_SECONDS, _SHUTDOWN_SECONDS)
    return Hold(target, reports, requester.request_timeout, shutdown).run(arguments["acquire_timeout"])


class Hold:
    """One hold, from the first request to the last event. It never acquires twice."""

    def __init__(self, target: Lock | Election, reports: Reports, request_timeout: float, shutdown: float) -> None:
        self._target, self._reports = target, reports
        self._request_timeout, self._shutdown = request_timeout, shutdown
        self._announced = False

    def run(self, acquire_timeout: float | None) -> int:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _stop)
        end = float("inf") if acquire_timeout is None else now() + acquire_timeout
        try:
            status = self._acquire(end)
            return self._renew_until_lost() if status is None else status
        except Signalled as signalled:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            self._release()
            return signalled.status

    def _acquire(self, end: float) -> int | None:
        """None once it is acquired and reported; else the exit status."""
        attempts = 0
        while True:
            if now() >= end:
                return self._end("error", TIMED_OUT, reason_code="acquire_timeout")
            try:
                wait = _require_fields(self._target.contend, min(self._request_timeout, end - now()))
                attempts = 0
            except Lost as lost:
                return self._abandon(str(lost))
            except HoldfastError as error:
                if not failures.is_transient(error):
                    return self._end("error", self._status_of(error), reason_code=failures.reason_of(error))
                wait = Wait(failures.reason_of(error), error.retry_after)
                attempts += 1
            if wait is None:
                if now() >= self._target.deadline:
                    return self._abandon("initial_authority_deadline_exceeded")
                self._announced = True  # before it is printed: a supervisor may send a signal as soon as it reads it
                self._report(self._target.granted)
                return None
            pause = failures.pause(wait.seconds, attempts)
            self._reports.event("waiting", retry_after_ms=int(pause * 1000), reason_code=wait.reason)
            reason = self._sleep(min(now() + pause, end))
            if reason is not None:
                return self._end("uncertain", LOST, reason_code=reason)

    def _sleep(self, until: float) -> str | None:
        """Sleep while the session is kept alive; the reason if it no longer is, else None."""
        while now() < until:
            time.sleep(min(_POLL_SECONDS, max(until - now(), 0.0)))
            try:
                self._target.keep_alive()
            except Lost as lost:
                return str(lost)
            except HoldfastError as error:
                if failures.proves_loss(failures.reason_of(error)):
                    return failures.reason_of(error)
        return None

    def _renew_until_lost(self) -> int:
        """Renew until the lease is lost or uncertain; a signal ends this with Signalled."""
        target, attempts = self._target, 0
        due = target.due
        while True:
            while now() < min(due, target.deadline):
                time.sleep(min(_POLL_SECONDS, max(min(due, target.deadline) - now(), 0.0)))
            if now() >= target.deadline:
                facts = {"term": target.term, "expires_at": target.expires_at}
                return self._report_end("uncertain", LOST, **facts, reason_code=target.deadline_reason)
            reason = None
            try:
                _require_fields(target.confirm, min(self._request_timeout, target.deadline - now()))
            except Lost as lost:
                reason = str(lost)
            except HoldfastError as error:
                attempts += 1
                due = now() + failures.pause(error.retry_after, attempts)
                reason = failures.reason_of(error)
                if not failures.proves_loss(reason):
                    continue
            if reason is not None:
                facts = {"term": target.term, "expires_at": target.expires_at}
                return self._report_end("lost", LOST, **facts, reason_code=reason)
            attempts, due = 0, target.due
            if now() < target.deadline:
                self._report("renewed")

    def _release(self) -> None:
        """Release within the shutdown timeout. If the acquisition was reported, report whether that is certain."""
        term, end = self._target.term, now() + self._shutdown
        released = False
        if term:
            end = min(end, self._target.deadline)
            with suppress(HoldfastError):
                released = self._target.release(end - now())
        if now() < end:
            self._target.leave(end - now())
        if not self._announced:
            return
        if released:
            self._reports.event("released", term=term, reason_code="signal")
        else:
            self._reports.event("uncertain", term=term, reason_code="release_unconfirmed")

    def _abandon(self, reason: str) -> int:
        """Release a grant that came too late, or for another identity, without reporting it."""
        with suppress(HoldfastError):
            self._target.release(self._shutdown)
        return self._end("uncertain", LOST, reason_code=reason)

    def _status_of(self, error: HoldfastError) -> int:
        """Exit status: a refused request is wrong usage; a redirect or a refused session is the server's failure."""
        is_refused = error.status is not None and error.status // 100 == _CLIENT_ERRORS
        return USAGE if is_refused and self._target.is_open else FAILED

    def _report(self, event: str) -> None:
        target = self._target
        self._reports.event(event, term=target.term, expires_at=target.expires_at, deadline=target.deadline)

    def _report_end(self, event: str, status: int, **facts: Any) -> int:
        self._reports.event(event, **facts)
        return status

    def _end(self, event: str, status: int, **facts: Any) -> int:
        """Report the last event and end the session."""
        self._reports.event(event, **facts)
        self._target.leave(self._shutdown)
        return status


def _require_fields(request: Callable[[float], T], limit: float) -> T:
    """Result of a request; an answer without the fields we need counts as no answer."""
    try:
        return request(limit)
    except (KeyError, TypeError) as error:
        raise Unreachable(f"the answer lacks {error}", code="invalid_response") from error


def _stop(number: int, _: FrameType | None) -> None:
    raise Signalled(number)
