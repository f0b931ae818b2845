"""A session and an election left alone until they expire, observed from a thread.

A session lasts at least ten seconds and is kept for five more. One thread per store records what it sees, so that
both stores spend these seconds at the same time; the tests read the record.
"""

import threading
import time
import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tests.compat.octostore.expect import acquired, delayed, instant, success
from tests.compat.octostore.server import Server
from tests.compat.octostore.wire import Answer

TIMEOUT_SECONDS = 12.0


class Lifetimes:
    """`start` opens sessions and an election; `results` waits until they have expired and returns observations."""

    def __init__(self, server: Server) -> None:
        self.sleeper = server.user("sleeper")
        self.successor = server.user("lapser")
        self.anyone = server.anyone
        self.observed = SimpleNamespace()
        self.error: Exception | None = None
        self.closing = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def start(self) -> "Lifetimes":
        observed, sleeper = self.observed, self.sleeper
        observed.session = success(sleeper.open_session(ttl_seconds=10), 201)
        observed.second_session = success(sleeper.open_session(ttl_seconds=10), 201)
        self.session_id = observed.session["session_id"]
        self.second_id = observed.second_session["session_id"]
        names = (f"lock-{uuid.uuid4().hex}" for _ in range(4))
        observed.ephemeral, observed.durable, observed.delayed_name, observed.untaken = names
        bound: dict[str, Any] = {"session_id": self.session_id, "ttl_seconds": 3600}
        observed.lease = acquired(sleeper.acquire(observed.ephemeral, ephemeral=True, **bound))
        observed.durable_lease = acquired(sleeper.acquire(observed.durable, **bound))
        acquired(sleeper.acquire(observed.delayed_name, ephemeral=True, lock_delay_seconds=30, **bound))
        observed.election = f"election-{uuid.uuid4().hex}"
        observed.leadership = success(self.anyone.campaign(observed.election, ttl_seconds=5))
        self.thread.start()
        return self

    def results(self) -> SimpleNamespace:
        self.thread.join()
        if self.error is not None:
            raise self.error
        return self.observed

    def close(self) -> None:
        self.closing.set()
        self.thread.join()

    def watch(self) -> None:
        try:
            self.watch_the_election()
            self.watch_the_session_expire()
            self.watch_the_session_be_forgotten()
        except Exception as error:
            self.error = error

    def watch_the_election(self) -> None:
        observed = self.observed
        token = observed.leadership["leader_token"]
        end = instant(observed.leadership["leader"]["expires_at"])
        observed.vacant_after, observed.vacant_election = self.first(
            lambda: self.anyone.get(f"/elections/{observed.election}"),
            lambda answer: answer.json["status"] == "vacant",
            since=end,
        )
        observed.late_renewal = self.anyone.renew_leadership(observed.election, token)
        observed.late_resignation = self.anyone.resign(observed.election, token)

    def watch_the_session_expire(self) -> None:
        observed, sleeper, lease_id = self.observed, self.sleeper, self.observed.lease["lease_id"]
        end = instant(observed.session["expires_at"])
        observed.inactive_after, observed.inactive = self.first(
            lambda: sleeper.get(f"/sessions/{self.session_id}"),
            lambda answer: not answer.json["active"],
            since=end,
        )
        observed.expired = {
            "keepalive": sleeper.keep_alive(self.session_id),
            "ephemeral acquire": sleeper.acquire(observed.untaken, session_id=self.session_id, ephemeral=True),
            "durable acquire": sleeper.acquire(observed.untaken, session_id=self.session_id),
            "renew": sleeper.renew(observed.ephemeral, lease_id),
            "release": sleeper.release(observed.ephemeral, lease_id),
        }
        observed.free_after, _ = self.first(
            lambda: sleeper.read_lock(observed.ephemeral),
            lambda answer: answer.json["status"] == "free",
            since=end,
        )
        observed.delayed_lock = delayed(self.successor.acquire(observed.delayed_name))  # its delay is 30 s
        _, observed.second_inactive = self.first(
            lambda: sleeper.get(f"/sessions/{self.second_id}"),
            lambda answer: not answer.json["active"],
            since=instant(observed.second_session["expires_at"]),
        )
        observed.late_delete = sleeper.delete(f"/sessions/{self.second_id}")
        observed.after_late_delete = sleeper.get(f"/sessions/{self.second_id}")

    def watch_the_session_be_forgotten(self) -> None:
        observed, sleeper = self.observed, self.sleeper
        observed.forgotten_after, answer = self.first(
            lambda: sleeper.keep_alive(self.session_id),
            lambda answer: answer.status != 410,
            since=instant(observed.session["expires_at"]),
        )
        observed.forgotten = {
            "keepalive": answer,
            "get": sleeper.get(f"/sessions/{self.session_id}"),
            "delete": sleeper.delete(f"/sessions/{self.session_id}"),
            "acquire": sleeper.acquire(observed.untaken, session_id=self.session_id),
        }
        observed.late_renew = sleeper.renew(observed.ephemeral, observed.lease["lease_id"])

    def first(
        self, read_lock: Callable[[], Answer], good: Callable[[Answer], bool], *, since: float
    ) -> tuple[float, Answer]:
        """Read from shortly before `since` until an answer is good: (seconds after `since`, the answer)."""
        self.closing.wait(max(0.0, since - time.time() - 0.3))
        while not self.closing.is_set():
            answer = read_lock()
            after = time.time() - since
            if good(answer):
                return after, answer
            assert after < TIMEOUT_SECONDS, f"still {answer} after {after:.1f} s"
            self.closing.wait(0.05)
        raise AssertionError("the tests ended before the observations")
