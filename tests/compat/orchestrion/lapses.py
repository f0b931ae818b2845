"""Tasks whose holders stop renewing, observed from threads.

The shortest lease lives thirty seconds. Threads record what they see on both stores at the same time, so that these
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
LOOK_AHEAD_SECONDS = 0.25
PATIENCE_SECONDS = 8.0


@dataclass(frozen=True)
class Glimpse:
    """An answer, and how long after the lapse the question left and the answer came."""

    asked: float
    told: float
    answer: Answer


class Lapses:
    """Claims everything on `start`; `story` waits for the end and tells what was seen."""

    def __init__(self, anyone: Caller) -> None:
        self.anyone = anyone
        self.seen = SimpleNamespace()
        self.closing = threading.Event()
        self.crowd = ThreadPoolExecutor(3 + 2 * PAIRS)

    def start(self) -> "Lapses":
        self.told = self.crowd.submit(self.live)
        return self

    def story(self) -> SimpleNamespace:
        self.told.result()
        return self.seen

    def close(self) -> None:
        self.closing.set()
        self.crowd.shutdown()

    def live(self) -> None:
        seen, account = self.seen, register(self.anyone)
        seen.account = account
        seen.kept = held(account, "kept")
        seen.racers = [held(account, "racer") for _ in range(RACERS)]
        seen.pairs = [(held(account, "taken"), held(account, "watched")) for _ in range(PAIRS)]
        seen.exhausted = held(account, "exhausted", maxAttempts=1)
        seen.reasoned = failed_then_held(account, "reasoned", maxAttempts=2)
        seen.left = {name: held(account, name) for name in ("idle", "any", "again", "cancelled", "failed")}
        heartbeat, finishes = self.crowd.submit(self.heartbeat), self.crowd.submit(self.race)
        takeovers = [self.crowd.submit(self.glimpses, taken, "POST", "/claim") for taken, _ in seen.pairs]
        looks = [self.crowd.submit(self.glimpses, watched, "GET", "") for _, watched in seen.pairs]
        seen.heartbeat, seen.finishes = heartbeat.result(), finishes.result()
        seen.takeovers = [glimpses.result() for glimpses in takeovers]
        seen.looks = [glimpses.result() for glimpses in looks]
        self.closing.wait(max(0.0, instant(seen.left["failed"]["leaseExpiresAt"]) + 1 - time.time()))
        seen.kept_afterwards = account.see(seen.kept["id"])

    def heartbeat(self) -> Answer:
        self.closing.wait(HEARTBEAT_AFTER_SECONDS)
        return self.seen.account.do("heartbeat", self.seen.kept["id"])

    def race(self) -> list[Glimpse]:
        """Finish each racer around the moment its lease ends: some a little before, some a little after."""
        middle = RACERS // 2
        return [self.glimpse(racer, 0.0015 * (place - middle)) for place, racer in enumerate(self.seen.racers)]

    def glimpses(self, watched: dict[str, Any], method: str, verb: str) -> list[Glimpse]:
        """Ask from shortly before the lapse on, until the answer changes."""
        seen = [self.glimpse(watched, -LOOK_AHEAD_SECONDS, method, verb)]
        while outcome(seen[-1]) == outcome(seen[0]) and not self.closing.is_set():
            last = self.glimpse(watched, -LOOK_AHEAD_SECONDS, method, verb)
            assert last.told < PATIENCE_SECONDS, f"still {last.answer} {last.told:.1f} s after the lapse"
            seen.append(last)
        return seen

    def glimpse(self, watched: dict[str, Any], offset: float, method: str = "POST", verb: str = "/complete") -> Glimpse:
        """Ask once, not before `offset` from the end of the lease."""
        end = instant(watched["leaseExpiresAt"])
        self.closing.wait(max(0.0, end + offset - time.time()))
        asked = time.time() - end
        answer = self.seen.account.send(method, f"/v1/tasks/{watched['id']}{verb}")
        return Glimpse(asked, time.time() - end, answer)


def outcome(seen: Glimpse) -> tuple[int, str | None]:
    """Status code and state: what tells one answer from another while the lease counts down."""
    return seen.answer.status, seen.answer.json.get("status")


def held(account: Account, type: str, **fields: object) -> dict[str, Any]:
    made = created(account.create(type=type, leaseDurationSeconds=LEASE_SECONDS, **fields))
    return claimed(account.do("claim", made["id"], worker_id="silent"))


def failed_then_held(account: Account, type: str, **fields: object) -> dict[str, Any]:
    """Its first attempt failed with a reason; nobody ends the second."""
    first = held(account, type, **fields)
    task(account.fail(first["id"], reason="it broke"))
    return claimed(account.do("claim", first["id"]))
