"""A session and an election left alone until they expire, observed from a thread.

A session lives at least ten seconds and is remembered five more. One thread per store records what it sees, so that
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

PATIENCE_SECONDS = 12.0


class Lifetimes:
    """Opens everything on `start`; `story` waits for the end and tells what was seen."""

    def __init__(self, server: Server) -> None:
        self.sleeper = server.user("sleeper")
        self.successor = server.user("lapser")
        self.anyone = server.anyone
        self.seen = SimpleNamespace()
        self.error: Exception | None = None
        self.closing = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def start(self) -> "Lifetimes":
        seen, sleeper = self.seen, self.sleeper
        seen.session = success(sleeper.open_session(ttl_seconds=10), 201)
        seen.second_session = success(sleeper.open_session(ttl_seconds=10), 201)
        self.session_id = seen.session["session_id"]
        self.second_id = seen.second_session["session_id"]
        seen.ephemeral, seen.durable, seen.cooling, seen.untaken = (f"life-{uuid.uuid4().hex}" for _ in range(4))
        bound: dict[str, Any] = {"session_id": self.session_id, "ttl_seconds": 3600}
        seen.lease = acquired(sleeper.acquire(seen.ephemeral, ephemeral=True, **bound))
        seen.durable_lease = acquired(sleeper.acquire(seen.durable, **bound))
        acquired(sleeper.acquire(seen.cooling, ephemeral=True, lock_delay_seconds=30, **bound))
        seen.room = f"life-{uuid.uuid4().hex}"
        seen.leadership = success(self.anyone.campaign(seen.room, ttl_seconds=5))
        self.thread.start()
        return self

    def story(self) -> SimpleNamespace:
        self.thread.join()
        if self.error is not None:
            raise self.error
        return self.seen

    def close(self) -> None:
        self.closing.set()
        self.thread.join()

    def watch(self) -> None:
        try:
            self.watch_the_room()
            self.watch_the_session_expire()
            self.watch_the_session_be_forgotten()
        except Exception as error:
            self.error = error

    def watch_the_room(self) -> None:
        seen = self.seen
        token = seen.leadership["leader_token"]
        end = instant(seen.leadership["leader"]["expires_at"])
        seen.room_vacant_after, seen.vacant_room = self.first(
            lambda: self.anyone.get(f"/elections/{seen.room}"),
            lambda answer: answer.json["status"] == "vacant",
            since=end,
        )
        seen.late_renewal = self.anyone.renew_leadership(seen.room, token)
        seen.late_resignation = self.anyone.resign(seen.room, token)

    def watch_the_session_expire(self) -> None:
        seen, sleeper, lease_id = self.seen, self.sleeper, self.seen.lease["lease_id"]
        end = instant(seen.session["expires_at"])
        seen.inactive_after, seen.inactive = self.first(
            lambda: sleeper.get(f"/sessions/{self.session_id}"),
            lambda answer: not answer.json["active"],
            since=end,
        )
        seen.expired = {
            "keepalive": sleeper.keep_alive(self.session_id),
            "ephemeral acquire": sleeper.acquire(seen.untaken, session_id=self.session_id, ephemeral=True),
            "durable acquire": sleeper.acquire(seen.untaken, session_id=self.session_id),
            "renew": sleeper.renew(seen.ephemeral, lease_id),
            "release": sleeper.release(seen.ephemeral, lease_id),
        }
        seen.free_after, _ = self.first(
            lambda: sleeper.look(seen.ephemeral),
            lambda answer: answer.json["status"] == "free",
            since=end,
        )
        seen.cooling_lock = delayed(self.successor.acquire(seen.cooling))  # it rests for 30 s: looked at while it does
        _, seen.second_inactive = self.first(
            lambda: sleeper.get(f"/sessions/{self.second_id}"),
            lambda answer: not answer.json["active"],
            since=instant(seen.second_session["expires_at"]),
        )
        seen.late_delete = sleeper.delete(f"/sessions/{self.second_id}")
        seen.after_late_delete = sleeper.get(f"/sessions/{self.second_id}")

    def watch_the_session_be_forgotten(self) -> None:
        seen, sleeper = self.seen, self.sleeper
        seen.forgotten_after, answer = self.first(
            lambda: sleeper.keep_alive(self.session_id),
            lambda answer: answer.status != 410,
            since=instant(seen.session["expires_at"]),
        )
        seen.forgotten = {
            "keepalive": answer,
            "get": sleeper.get(f"/sessions/{self.session_id}"),
            "delete": sleeper.delete(f"/sessions/{self.session_id}"),
            "acquire": sleeper.acquire(seen.untaken, session_id=self.session_id),
        }
        seen.late_renew = sleeper.renew(seen.ephemeral, seen.lease["lease_id"])

    def first(
        self, look: Callable[[], Answer], good: Callable[[Answer], bool], *, since: float
    ) -> tuple[float, Answer]:
        """Look from shortly before `since` on; the first good answer and how long after `since` it came."""
        self.closing.wait(max(0.0, since - time.time() - 0.3))
        while not self.closing.is_set():
            answer = look()
            after = time.time() - since
            if good(answer):
                return after, answer
            assert after < PATIENCE_SECONDS, f"still {answer} after {after:.1f} s"
            self.closing.wait(0.05)
        raise AssertionError("the run ended before the story did")
