"""Runs workers against servers over HTTP, each in a thread of its own, and records every call with its answer."""

from __future__ import annotations

import random
import threading
import time

from tests.linearizability.clients.http_calls import CREATIONS, HttpSender, session_of
from tests.linearizability.clients.store_time import MeasuredTime
from tests.linearizability.clients.workload import Names, Worker
from tests.linearizability.history import Call, History
from tests.log_entry import LogEntry

TTL = 2_000_000
TASK_TTL = 30_000_000
SESSION_TTL = 10_000_000


class HttpRun:
    """Three groups of three workers, which go on to new groups after `period_seconds`."""

    def __init__(
        self,
        ports: list[int],
        key: str,
        store_time: MeasuredTime,
        *,
        seed: int,
        period_seconds: float,
        pause: float,
        has_log: bool,
    ) -> None:
        self.calls: list[Call] = []
        self._ports = ports
        self._key = key
        self._time = store_time
        self._seed = seed
        self._period_seconds = period_seconds
        self._has_log = has_log
        self._pause = pause
        """Seconds that a worker pauses after each call."""
        self._names: dict[str, Names] = {}
        self._lock = threading.Lock()
        self._errors: list[BaseException] = []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._guard, args=(group, worker), daemon=True)
            for group in range(3)
            for worker in range(3)
        ]

    def start(self) -> None:
        """Start all workers."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let every worker finish its call."""
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive(), "a worker has got no answer within 30 s"
        for error in self._errors:
            raise error

    def _guard(self, place: int, number: int) -> None:
        try:
            self._work(place, number)
        except BaseException as error:
            self._errors.append(error)

    def _work(self, place: int, number: int) -> None:
        rng = random.Random(f"{self._seed} {place} {number}")
        sender = HttpSender(
            self._ports[(place + number) % len(self._ports)], self._key, rng, cuts_creations=self._has_log
        )
        worker, made = self._join(place, number, rng), 0
        while not self._stop.is_set():
            if worker.names.group != self._group(place):
                worker = self._join(place, number, rng)
            made += 1
            call = self._new_call(worker, f"call-{self._seed}-{place}-{number}-{made}")
            with self._lock:
                self.calls.append(call)
            answer = sender.send(call)
            if answer is not None:
                call.returned, call.latest, call.answer = time.monotonic_ns(), self._time.latest(), answer
            worker.learn(call)
            if answer is not None and answer["is"] == "unavailable":
                self._stop.wait(0.05)
            self._stop.wait(self._pause)
            if worker.wants_pause():
                self._stop.wait(rng.uniform(0, 1.2 * TTL / 1e6))
        sender.close()

    def _new_call(self, worker: Worker, call_id: str) -> Call:
        verb, args = worker.next_call()
        if verb == "create_task":
            args |= {"task": f"created by {call_id}", "ttl": TASK_TTL}
        elif verb == "open_session":
            args |= {"ttl": SESSION_TTL, "fresh_secret": f"unknown {call_id}"}
        elif verb in {"claim_job", "reserve", "take_reservation"}:
            args["ttl"] = TTL if args["ttl"] >= TTL else TTL // 2
        if verb == "reserve":
            args["reservation"] = f"reserved by {call_id}"
        return Call(call_id, worker.name, worker.names.group, verb, args, time.monotonic_ns(), self._time.earliest())

    def _group(self, place: int) -> str:
        return f"http-{self._seed}-{place}-{int(time.monotonic() / self._period_seconds)}"

    def _join(self, place: int, number: int, rng: random.Random) -> Worker:
        with self._lock:
            group = self._group(place)
            made = Names(group, TTL, session=session_of(group))
            return Worker(f"{group}/{number}", self._names.setdefault(group, made), rng)


def with_log(calls: list[Call], log: list[LogEntry]) -> History:
    """The history, with the ids of tasks and reservations that were created in calls without an answer."""
    created = {
        entry.request_id: entry.subject for entry in log if entry.kind in {"task.created", "reservation.reserved"}
    }
    for call in calls:
        if call.verb in CREATIONS and call.answer is None and call.id in created:
            noun, _, name = created[call.id].partition(":")
            call.args[noun] = name
    return History(calls, log)
