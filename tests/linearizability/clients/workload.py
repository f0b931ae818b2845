"""Workers that choose their next call at random, and remember leases and sessions from the answers.

Like real agents they forget what they hold, pause for longer than their lease lasts, and go on with a stale lease id.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.linearizability.history import Call, proof_of
from tests.linearizability.model.patterns import PATTERNS

Asked = tuple[str, dict[str, Any]]

JOBS = 2
MAX_ATTEMPTS = 3
OFFERABLE = ("job", "task", "reservation")
CLAIMS = ("claim_", "reserve", "take_")
KEPT = {"renewed", "withdrawn", "reduced", "extended", "held", "not_reserved", "unavailable"}
"""Answers after which a worker goes on with its lease."""


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
    reservations: list[str] = field(default_factory=list)
    offers: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: {noun: [] for noun in OFFERABLE})
    """By noun: (name, code) of every offer that was answered."""
    made: int = 0

    def __post_init__(self) -> None:
        self.session = self.session or f"{self.group}-session"

    @property
    def jobs(self) -> list[str]:
        return [f"{self.group}-job-{number}" for number in range(JOBS)]

    @property
    def space(self) -> str:
        return f"{self.group}-space"

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
        self.reservations: list[tuple[str, str]] = []
        """(reservation, lease id)"""
        self.session: str | None = None
        """The lease id of the session."""
        self.made = 0

    def next_call(self) -> Asked:
        """A verb with its arguments."""
        self.made += 1
        draw = self.rng.random()
        if draw < 0.14:
            return self._read()
        if draw < 0.50:
            return self._about_a_job()
        if draw < 0.72:
            return self._about_a_task()
        if draw < 0.88:
            return self._about_files()
        return self._about_the_session()

    def wants_pause(self) -> bool:
        """Whether it now pauses for about as long as a lease lasts."""
        return self.rng.random() < 0.02

    def forget(self) -> None:
        """Start again with empty memory, as after a crash."""
        self.jobs, self.tasks, self.reservations, self.session = {}, [], [], None

    # -- choosing ------------------------------------------------------------------------------------------------

    def _read(self) -> Asked:
        draw = self.rng.random()
        if draw < 0.3 and self.names.tasks:
            return "read_task", {"task": self.rng.choice(self.names.tasks[-6:])}
        if draw < 0.45:
            return "read_session", {"session": self.names.session}
        if draw < 0.65 and self.names.reservations:
            return "read_reservation", {"reservation": self.rng.choice(self.names.reservations[-6:])}
        return "read_job", {"job": self.rng.choice(self.names.jobs)}

    def _about_a_job(self) -> Asked:
        job = self.rng.choice(self.names.jobs)
        lease_id, draw = self.jobs.get(job), self.rng.random()
        if lease_id is None or draw < 0.1:
            asked = {"job": job, "owner": self.name, "ttl": self._ttl(), "lease_id": None, "proof": None}
            asked["again"] = self.rng.random() < 0.5
            if self.names.offers["job"] and self.rng.random() < 0.3:
                return "claim_job", asked | self._code("job") | self._for_session()
            if self.names.wait_seconds:
                asked["wait_seconds"] = self.rng.choice([0.0, self.names.wait_seconds])
            return "claim_job", asked | self._for_session()
        if draw < 0.15:
            del self.jobs[job]
            return "read_job", {"job": job}
        if draw < 0.28:
            return self._offer_or_withdraw("job", job, lease_id)
        verb = "heartbeat_job" if draw < 0.65 else "release_job"
        is_done = verb == "release_job" and self.rng.random() < 0.5
        result = {"result": f'"{proof_of(lease_id)}"'} if is_done else {}
        return verb, {"job": job, "lease_id": lease_id, "proof": proof_of(lease_id)} | result

    def _about_a_task(self) -> Asked:
        asked: dict[str, Any]
        if not self.tasks:
            if self.rng.random() < 0.35 or not self.names.tasks:
                self.names.made += 1
                task = f"{self.names.group}-{self.names.prefix}-{self.names.made}"
                more = {"queue": self.names.queue, "max_attempts": self.rng.randint(1, MAX_ATTEMPTS)}
                return "create_task", {"task": task, **more, "ttl": self.names.ttl}
            asked = {"queue": self.names.queue, "owner": self.name, "seed": None, **self._for_session()}
            takes_over = self.names.offers["task"] and self.rng.random() < 0.3
            return "claim_task", asked | (self._code("task") if takes_over else {})
        task, lease_id = self.rng.choice(self.tasks)
        draw = self.rng.random()
        if draw < 0.15:
            return self._offer_or_withdraw("task", task, lease_id)
        asked = {"task": task, "lease_id": lease_id, "proof": proof_of(lease_id)}
        if 0.40 <= draw < 0.70:
            return "complete_task", asked | {"result": f'{{"by":"{lease_id}"}}'}
        return ("heartbeat_task" if draw < 0.40 else "fail_task" if draw < 0.90 else "release_task"), asked

    def _about_files(self) -> Asked:
        draw = self.rng.random()
        if not self.reservations or draw < 0.25:
            asked: dict[str, Any] = {"owner": self.name, "ttl": self._ttl(), "lease_id": None, "proof": None}
            if self.names.offers["reservation"] and self.rng.random() < 0.3:
                return "take_reservation", asked | self._code("reservation") | self._for_session()
            asked |= {"space": self.names.space, "paths": self._paths(self.rng.randint(1, 2)), "reservation": None}
            return "reserve", asked | {"mode": self.rng.choice(["exclusive", "shared"])} | self._for_session()
        reservation, lease_id = self.rng.choice(self.reservations)
        asked = {"reservation": reservation, "lease_id": lease_id, "proof": proof_of(lease_id)}
        if draw < 0.40:
            return self._offer_or_withdraw("reservation", reservation, lease_id)
        if draw < 0.65:
            return "heartbeat_reservation", asked
        if draw < 0.80:
            return "extend_reservation", asked | {"space": self.names.space, "paths": self._paths(1)}
        return "release_reservation", asked | ({"paths": self._paths(1)} if self.rng.random() < 0.3 else {})

    def _paths(self, count: int) -> list[str]:
        return self.rng.sample(PATTERNS, count)

    def _code(self, noun: str) -> dict[str, str]:
        """The name and the code of one of the last offers."""
        name, code = self.rng.choice(self.names.offers[noun][-2:])
        return {noun: name, "code": code, "offer": proof_of(code)}

    def _offer_or_withdraw(self, noun: str, name: str, lease_id: str) -> Asked:
        asked: dict[str, Any] = {noun: name, "lease_id": lease_id, "proof": proof_of(lease_id)}
        if self.rng.random() < 0.3:
            return f"withdraw_{noun}", asked
        lasts = self.rng.choice([self.names.ttl, 2 * self.names.ttl])
        return f"offer_{noun}", asked | {"lasts": lasts, "code": None, "code_proof": None}

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
        noun = call.verb.partition("_")[2]
        if call.verb in {"reserve", "take_reservation"}:
            noun = "reservation"
        if kind == "granted":
            self._learn_lease(noun, args.get(noun) or answer[noun], answer["lease_id"])
        elif kind == "offered":
            self.names.offers[noun].append((args[noun], answer["code"]))
        elif kind == "opened":
            self._learn_session(answer)
        elif call.verb.startswith(CLAIMS) or "lease_id" not in args or kind in KEPT or keeps_stale:
            return
        elif noun == "session":
            self.session = None
        elif noun == "job":
            self.jobs.pop(args["job"], None)
        else:
            self._forget_lease(noun, args[noun])

    def _learn_lease(self, noun: str, name: str, lease_id: str) -> None:
        if noun == "job":
            self.jobs[name] = lease_id
        elif noun == "task":
            self.tasks.append((name, lease_id))
        else:
            self.reservations.append((name, lease_id))
            self.names.reservations.append(name)

    def _forget_lease(self, noun: str, name: str | None) -> None:
        held = self.tasks if noun == "task" else self.reservations
        held[:] = [each for each in held if each[0] != name]

    def _learn_session(self, answer: dict[str, Any]) -> None:
        self.session = answer["lease_id"]
        self.names.secret = answer["secret"] or self.names.secret
        for place, lease_id in answer["lease_ids"].items():
            noun, _, name = place.partition(":")
            self._learn_lease(noun, name, lease_id)
