"""Workers that choose their next call at random, and remember leases, tasks and sessions from the answers.

Like real agents they forget what they hold, pause for longer than their lease lasts, and go on with a stale lease id.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.linearizability.history import Call, proof_of

Asked = tuple[str, dict[str, Any]]

JOBS = 2
MAX_ATTEMPTS = 3


@dataclass
class Names:
    """The names of one group, and what its workers know of each other: the session's secret."""

    group: str
    ttl: int
    wait_seconds: float = 0.0
    """How long half of the claims of jobs wait."""
    prefix: str = ""
    """Of the tasks that this program creates: other programs create others in the same group."""
    session: str = ""
    """The id of its session."""
    secret: str | None = None
    tasks: list[str] = field(default_factory=list)
    offers: list[tuple[str, str]] = field(default_factory=list)
    """(job, code) of every offer that was answered."""
    made: int = 0

    def __post_init__(self) -> None:
        self.session = self.session or f"{self.group}-session"

    @property
    def jobs(self) -> list[str]:
        return [f"{self.group}-job-{number}" for number in range(JOBS)]

    @property
    def queue(self) -> str:
        return f"{self.group}-queue"


class Worker:
    """One client. It makes one call at a time; `next_call` gives it and `learn` takes its answer."""

    def __init__(self, name: str, names: Names, rng: random.Random) -> None:
        self.name = name
        self.names = names
        self.rng = rng
        self.jobs: dict[str, str] = {}
        """Job: lease id, perhaps of a lease that is over."""
        self.tasks: list[tuple[str, str]] = []
        """(task, lease id)"""
        self.session: str | None = None
        """The lease id of the session."""
        self.made = 0

    def next_call(self) -> Asked:
        """A verb with its arguments."""
        self.made += 1
        draw = self.rng.random()
        if draw < 0.14:
            return self._read()
        if draw < 0.56:
            return self._about_a_job()
        if draw < 0.86:
            return self._about_a_task()
        return self._about_the_session()

    def wants_pause(self) -> bool:
        """Whether it now pauses for about as long as a lease lasts."""
        return self.rng.random() < 0.02

    def forget(self) -> None:
        """Start again with empty memory, as after a crash."""
        self.jobs, self.tasks, self.session = {}, [], None

    # -- choosing ------------------------------------------------------------------------------------------------

    def _read(self) -> Asked:
        draw = self.rng.random()
        if draw < 0.3 and self.names.tasks:
            return "read_task", {"task": self.rng.choice(self.names.tasks[-6:])}
        if draw < 0.45:
            return "read_session", {"session": self.names.session}
        return "read_job", {"job": self.rng.choice(self.names.jobs)}

    def _about_a_job(self) -> Asked:
        job = self.rng.choice(self.names.jobs)
        lease_id, draw = self.jobs.get(job), self.rng.random()
        if lease_id is None or draw < 0.1:
            asked = {"job": job, "owner": self.name, "ttl": self._ttl(), "lease_id": None, "proof": None}
            asked["again"] = self.rng.random() < 0.5
            if self.names.offers and self.rng.random() < 0.3:
                asked["job"], code = self.rng.choice(self.names.offers[-2:])
                return "claim_job", asked | {"code": code, "offer": proof_of(code)} | self._for_session()
            if self.names.wait_seconds:
                asked["wait_seconds"] = self.rng.choice([0.0, self.names.wait_seconds])
            return "claim_job", asked | self._for_session()
        if draw < 0.15:
            del self.jobs[job]
            return "read_job", {"job": job}
        if draw < 0.25:
            lasts = self.rng.choice([self.names.ttl, 2 * self.names.ttl])
            mine = {"job": job, "lease_id": lease_id, "proof": proof_of(lease_id)}
            return "offer_job", mine | {"lasts": lasts, "code": None, "code_proof": None}
        verb = "heartbeat_job" if draw < 0.65 else "release_job"
        is_done = verb == "release_job" and self.rng.random() < 0.5
        result = {"result": f'"{proof_of(lease_id)}"'} if is_done else {}
        return verb, {"job": job, "lease_id": lease_id, "proof": proof_of(lease_id)} | result

    def _about_a_task(self) -> Asked:
        if not self.tasks:
            if self.rng.random() < 0.35 or not self.names.tasks:
                self.names.made += 1
                task = f"{self.names.group}-{self.names.prefix}-{self.names.made}"
                more = {"queue": self.names.queue, "max_attempts": self.rng.randint(1, MAX_ATTEMPTS)}
                return "create_task", {"task": task, **more, "ttl": self.names.ttl}
            return "claim_task", {"queue": self.names.queue, "owner": self.name, "seed": None, **self._for_session()}
        task, lease_id = self.rng.choice(self.tasks)
        draw = self.rng.random()
        asked: dict[str, Any] = {"task": task, "lease_id": lease_id, "proof": proof_of(lease_id)}
        if draw < 0.35:
            return "heartbeat_task", asked
        if draw < 0.70:
            return "complete_task", asked | {"result": f'{{"by":"{lease_id}"}}'}
        if draw < 0.90:
            return "fail_task", asked
        return "release_task", asked

    def _about_the_session(self) -> Asked:
        session, draw = self.names.session, self.rng.random()
        if self.session is None or draw < 0.15:
            secret = self.names.secret if self.rng.random() < 0.6 else None
            given = None if secret is None else proof_of(secret)
            fresh = {"fresh_secret": None}
            return "open_session", {"session": session, "ttl": self._ttl(), "secret": given, "given": secret, **fresh}
        asked = {"session": session, "lease_id": self.session, "proof": proof_of(self.session)}
        return ("heartbeat_session" if draw < 0.75 else "end_session"), asked

    def _for_session(self) -> dict[str, Any]:
        if self.session is None or self.rng.random() < 0.3:
            return {}
        return {
            "session": self.names.session,
            "session_lease_id": self.session,
            "session_proof": proof_of(self.session),
        }

    def _ttl(self) -> int:
        return self.rng.choice([self.names.ttl, self.names.ttl // 2, 2 * self.names.ttl])

    # -- learning ------------------------------------------------------------------------------------------------

    def learn(self, call: Call) -> None:
        """Remember the ids in an answer."""
        args, answer = call.args, call.answer
        kind = None if answer is None else answer["is"]
        if call.verb == "create_task" and kind != "unavailable":
            self.names.tasks.append(args["task"])
        if answer is None:
            return
        keeps_stale = self.rng.random() < 0.3
        if call.verb == "claim_job" and kind == "granted":
            self.jobs[args["job"]] = answer["lease_id"]
        elif call.verb == "claim_task" and kind == "granted":
            self.tasks.append((answer["task"], answer["lease_id"]))
        elif call.verb == "open_session" and kind == "opened":
            self._learn_session(answer)
        elif call.verb == "offer_job" and kind == "offered":
            self.names.offers.append((args["job"], answer["code"]))
        elif call.verb in {"release_job", "heartbeat_job", "offer_job"} and kind != "renewed" and not keeps_stale:
            self.jobs.pop(args["job"], None)
        elif call.verb.endswith("_task") and kind != "renewed" and "lease_id" in args and not keeps_stale:
            self.tasks = [each for each in self.tasks if each[0] != args["task"]]
        elif call.verb in {"heartbeat_session", "end_session"} and kind != "renewed" and not keeps_stale:
            self.session = None

    def _learn_session(self, answer: dict[str, Any]) -> None:
        self.session = answer["lease_id"]
        self.names.secret = answer["secret"] or self.names.secret
        for place, lease_id in answer["lease_ids"].items():
            noun, _, name = place.partition(":")
            if noun == "job":
                self.jobs[name] = lease_id
            else:
                self.tasks.append((name, lease_id))
