"""Tasks whose holders stop renewing, observed from threads.

The shortest lease lasts thirty seconds. Threads record what they see on both stores at the same time, so that these
seconds are spent once; the tests read the record.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tests.compat.octostore.wire import Answer, Caller
from tests.compat.orchestrion.account import Account, register
from tests.compat.orchestrion.expect import claimed, created, instant, task

LEASE_SECONDS = 30
HEARTBEAT_AFTER_SECONDS = 15
RACERS = 20
PAIRS = 3
EARLY_SECONDS = 0.25
TIMEOUT_SECONDS = 8.0


@dataclass(frozen=True)
class Observation:
    """An answer, and how long after the lapse the request was sent and answered."""

    sent_after: float
    answered_after: float
    answer: Answer


class Lapses:
    """`start` claims the tasks; `results` waits until their leases have ended and returns the observations."""

    def __init__(self, anyone: Caller) -> None:
        self.anyone = anyone
        self.observed = SimpleNamespace()
        self.closing = threading.Event()
        self.pool = ThreadPoolExecutor(3 + 2 * PAIRS)

    def start(self) -> "Lapses":
        self.running = self.pool.submit(self.run)
        return self

    def results(self) -> SimpleNamespace:
        self.running.result()
        return self.observed

    def close(self) -> None:
        self.closing.set()
        self.pool.shutdown()

    def run(self) -> None:
        observed, account = self.observed, register(self.anyone)
        observed.account = account
        observed.kept = held(account, "kept")
        observed.racers = [held(account, "racer") for _ in range(RACERS)]
        observed.pairs = [(held(account, "taken"), held(account, "watched")) for _ in range(PAIRS)]
        observed.exhausted = held(account, "exhausted", maxAttempts=1)
        observed.reasoned = failed_then_held(account, "reasoned", maxAttempts=2)
        observed.left = {name: held(account, name) for name in ("idle", "any", "again", "cancelled", "failed")}
        heartbeat, finishes = self.pool.submit(self.heartbeat), self.pool.submit(self.race)
        takeovers = [
            self.pool.submit(self.observe_until_changed, taken, "POST", "/claim") for taken, _ in observed.pairs
        ]
        reads = [self.pool.submit(self.observe_until_changed, watched, "GET", "") for _, watched in observed.pairs]
        observed.heartbeat, observed.finishes = heartbeat.result(), finishes.result()
        observed.takeovers = [observe_until_changed.result() for observe_until_changed in takeovers]
        observed.reads = [observe_until_changed.result() for observe_until_changed in reads]
        self.closing.wait(max(0.0, instant(observed.left["failed"]["leaseExpiresAt"]) + 1 - time.time()))
        observed.kept_afterwards = account.read_task(observed.kept["id"])

    def heartbeat(self) -> Answer:
        self.closing.wait(HEARTBEAT_AFTER_SECONDS)
        return self.observed.account.do("heartbeat", self.observed.kept["id"])

    def race(self) -> list[Observation]:
        """Finish each racer around the moment its lease ends: some a little before, some a little after."""
        middle = RACERS // 2
        return [self.observe(racer, 0.0015 * (place - middle)) for place, racer in enumerate(self.observed.racers)]

    def observe_until_changed(self, watched: dict[str, Any], method: str, verb: str) -> list[Observation]:
        """Send requests from shortly before the lapse until the answer changes."""
        observed = [self.observe(watched, -EARLY_SECONDS, method, verb)]
        while outcome(observed[-1]) == outcome(observed[0]) and not self.closing.is_set():
            last = self.observe(watched, -EARLY_SECONDS, method, verb)
            assert last.answered_after < TIMEOUT_SECONDS, (
                f"still {last.answer} {last.answered_after:.1f} s after the lapse"
            )
            observed.append(last)
        return observed

    def observe(
        self, watched: dict[str, Any], offset: float, method: str = "POST", verb: str = "/complete"
    ) -> Observation:
        """Send one request, not before `offset` from the end of the lease."""
        end = instant(watched["leaseExpiresAt"])
        self.closing.wait(max(0.0, end + offset - time.time()))
        sent_after = time.time() - end
        answer = self.observed.account.send(method, f"/v1/tasks/{watched['id']}{verb}")
        return Observation(sent_after, time.time() - end, answer)


def outcome(observed: Observation) -> tuple[int, str | None]:
    """Status code and state of an answer."""
    return observed.answer.status, observed.answer.json.get("status")


def held(account: Account, type: str, **fields: object) -> dict[str, Any]:
    made = created(account.create(type=type, leaseDurationSeconds=LEASE_SECONDS, **fields))
    return claimed(account.do("claim", made["id"], worker_id="silent"))


def failed_then_held(account: Account, type: str, **fields: object) -> dict[str, Any]:
    """A task whose first attempt failed with a reason and whose second attempt is claimed."""
    first = held(account, type, **fields)
    task(account.fail(first["id"], reason="it broke"))
    return claimed(account.do("claim", first["id"]))
