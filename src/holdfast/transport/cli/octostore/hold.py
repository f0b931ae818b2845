"""`lock hold` and `election hold`: take it, tell it, keep it, and stop in time when it is no longer surely ours."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, TypeVar

from holdfast.client.errors import HoldfastError, Unreachable
from holdfast.transport.cli.hold.renewal import clock
from holdfast.transport.cli.http_sender import BadAddress
from holdfast.transport.cli.octostore import failures as faults
from holdfast.transport.cli.octostore.reports import Reports
from holdfast.transport.cli.octostore.requests import Asker, check_secrecy
from holdfast.transport.cli.octostore.targets import Election, Lock, Lost, Wait
from holdfast.transport.cli.output import say
from holdfast.transport.cli.verbs.verb import Verb

T = TypeVar("T")

TIMED_OUT, LOST, USAGE, FAILED = 11, 20, 64, 70
_STEP = 0.1
"""How often deadlines are looked at, in seconds."""
_SHUTDOWN = 2.0
_LOCK_TTL, _ELECTION_TTL = 120, 30


class Signalled(Exception):
    """Somebody wants us to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.status = 128 + number


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Hold until a signal comes; the exit status tells how it ended."""
    is_lock = verb.name == "lock hold"
    try:
        asker = Asker(arguments, with_token=is_lock)
        check_secrecy(asker.server, careless=bool(arguments["careless"]))
    except BadAddress as error:
        say(f"holdfast: {error}")
        return USAGE
    name, candidate = arguments["name"], arguments.get("candidate")
    contest: Lock | Election
    if is_lock:
        contest = Lock(asker, name, arguments["ttl"] or _LOCK_TTL)
    else:
        contest = Election(asker, name, arguments["ttl"] or _ELECTION_TTL, str(candidate))
    reports = Reports(contest.kind, name, asker.server, as_json=bool(arguments["json"]), candidate=candidate)
    shutdown = min(arguments["shutdown_timeout"] or _SHUTDOWN, _SHUTDOWN)
    return Hold(contest, reports, asker.request_timeout, shutdown).run(arguments["acquire_timeout"])


class Hold:
    """One try to hold something, from the first request to the last event. It never takes a thing twice."""

    def __init__(self, contest: Lock | Election, reports: Reports, request_timeout: float, shutdown: float) -> None:
        self._contest, self._reports = contest, reports
        self._request_timeout, self._shutdown = request_timeout, shutdown
        self._announced = False

    def run(self, acquire_timeout: float | None) -> int:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _stop)
        over = float("inf") if acquire_timeout is None else clock() + acquire_timeout
        try:
            status = self._acquire(over)
            return self._keep() if status is None else status
        except Signalled as signalled:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            self._give_back()
            return signalled.status

    def _acquire(self, over: float) -> int | None:
        """None once it is ours and told; else the exit status."""
        failures = 0
        while True:
            if clock() >= over:
                return self._end("error", TIMED_OUT, reason_code="acquire_timeout")
            try:
                wait = _understood(self._contest.contend, min(self._request_timeout, over - clock()))
                failures = 0
            except Lost as lost:
                return self._abandon(str(lost))
            except HoldfastError as error:
                if not faults.is_passing(error):
                    return self._end("error", self._fatal(error), reason_code=faults.reason_of(error))
                wait = Wait(faults.reason_of(error), error.retry_after)
                failures += 1
            if wait is None:
                if clock() >= self._contest.deadline:
                    return self._abandon("initial_authority_deadline_exceeded")
                self._announced = True  # before the word is out: whoever hears it may answer with a signal at once
                self._tell(self._contest.granted)
                return None
            pause = faults.pause(wait.seconds, failures)
            self._reports.tell("waiting", retry_after_ms=int(pause * 1000), reason_code=wait.reason)
            unsure = self._rest(min(clock() + pause, over))
            if unsure is not None:
                return self._end("uncertain", LOST, reason_code=unsure)

    def _rest(self, until: float) -> str | None:
        """Sleep, and keep alive what must live; why that is no longer sure, if it is not."""
        while clock() < until:
            time.sleep(min(_STEP, max(until - clock(), 0.0)))
            try:
                self._contest.tend()
            except Lost as lost:
                return str(lost)
            except HoldfastError as error:
                if faults.proves_loss(faults.reason_of(error)):
                    return faults.reason_of(error)
        return None

    def _keep(self) -> int:
        """Renew until it is lost or uncertain; signals end this from outside."""
        contest, failures = self._contest, 0
        due = contest.due
        while True:
            while clock() < min(due, contest.deadline):
                time.sleep(min(_STEP, max(min(due, contest.deadline) - clock(), 0.0)))
            if clock() >= contest.deadline:
                facts = {"term": contest.term, "expires_at": contest.expires_at}
                return self._told("uncertain", LOST, **facts, reason_code=contest.deadline_reason)
            reason = None
            try:
                _understood(contest.confirm, min(self._request_timeout, contest.deadline - clock()))
            except Lost as lost:
                reason = str(lost)
            except HoldfastError as error:
                failures += 1
                due = clock() + faults.pause(error.retry_after, failures)
                reason = faults.reason_of(error)
                if not faults.proves_loss(reason):
                    continue
            if reason is not None:
                facts = {"term": contest.term, "expires_at": contest.expires_at}
                return self._told("lost", LOST, **facts, reason_code=reason)
            failures, due = 0, contest.due
            if clock() < contest.deadline:
                self._tell("renewed")

    def _give_back(self) -> None:
        """Release within one short budget, and say whether that is certain. What was not told is not told now."""
        term, over = self._contest.term, clock() + self._shutdown
        released = False
        if term:
            over = min(over, self._contest.deadline)
            with suppress(HoldfastError):
                released = self._contest.release(over - clock())
        if clock() < over:
            self._contest.leave(over - clock())
        if not self._announced:
            return
        if released:
            self._reports.tell("released", term=term, reason_code="signal")
        else:
            self._reports.tell("uncertain", term=term, reason_code="release_unconfirmed")

    def _abandon(self, reason: str) -> int:
        """A grant that came too late, or to another, is given back unannounced."""
        with suppress(HoldfastError):
            self._contest.release(self._shutdown)
        return self._end("uncertain", LOST, reason_code=reason)

    def _fatal(self, error: HoldfastError) -> int:
        """A refused request is wrong usage; a redirect, or a session that we may not have, is the server's failure."""
        refused = error.status is not None and 400 <= error.status < 500  # noqa: PLR2004 - HTTP's own numbers
        return USAGE if refused and self._contest.is_open else FAILED

    def _tell(self, event: str) -> None:
        contest = self._contest
        self._reports.tell(event, term=contest.term, expires_at=contest.expires_at, deadline=contest.deadline)

    def _told(self, event: str, status: int, **facts: Any) -> int:
        self._reports.tell(event, **facts)
        return status

    def _end(self, event: str, status: int, **facts: Any) -> int:
        """The last word, and the session goes."""
        self._reports.tell(event, **facts)
        self._contest.leave(self._shutdown)
        return status


def _understood(ask: Callable[[float], T], limit: float) -> T:
    """What it answers; a document without the fields we need is no answer."""
    try:
        return ask(limit)
    except (KeyError, TypeError) as error:
        raise Unreachable(f"the answer lacks {error}", code="invalid_response") from error


def _stop(number: int, _: FrameType | None) -> None:
    raise Signalled(number)
