"""`kill -9` of giver, taker or server at every step of a handover: there is exactly one owner before and after."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from tests.faults.caller_process import CallerProcess
from tests.http.job_client import ROOT_KEY, Agent, fresh, job_path, root
from tests.proof_size import sized
from tests.store_inspection import assert_store_is_consistent, events_of

pytestmark = pytest.mark.waits(10)

ROUNDS = sized(1, 40)
OFFER, CLAIM = "offer", "claim"
KILLS = [("giver", OFFER), ("server", OFFER), ("giver", CLAIM), ("taker", CLAIM), ("server", CLAIM)]
LATEST_KILL = 0.012
"""Seconds after the request was sent: about as long as its answer takes, or a little longer."""


class Thing:
    """A job, a task or a reservation, and its owner as far as was acknowledged."""

    def __init__(self, path: str, subject: str, names: dict[str, str]) -> None:
        self.path, self.subject, self.names = path, subject, names
        self.owner, self.lease_id, self.token = "", "", 0

    def claimed(self, body: dict[str, Any]) -> None:
        """Record a grant: its token is larger than all before."""
        assert body[self.names["token"]] > self.token, body
        self.owner, self.lease_id, self.token = (
            self.owner_in(body),
            body[self.names["lease"]],
            body[self.names["token"]],
        )

    def owner_in(self, body: dict[str, Any]) -> str:
        assert body["status"] in {"claimed", "reserved"}, body
        return str(body[self.names["owner"]])

    def heartbeat(self, agent: Agent) -> tuple[int, dict[str, Any]]:
        answer = agent.post(f"{self.path}/heartbeat", {"lease_id": self.lease_id})
        return answer.status, answer.json


def a_job(agent: Agent) -> Thing:
    name = fresh("handover")
    thing = Thing(
        job_path(name), f"lease:{name}", {"owner": "owner", "lease": "lease_id", "token": "token", "who": "owner"}
    )
    thing.claimed(agent.post(f"{thing.path}/claim", {"owner": "first", "ttl_seconds": 3600}).json)
    return thing


def a_task(agent: Agent) -> Thing:
    task = agent.post("/v1/tasks", {"type": "handover", "payload": {}, "leaseDurationSeconds": 3600}).json["id"]
    names = {"owner": "claimedBy", "lease": "leaseId", "token": "fencingToken", "who": "worker_id"}
    thing = Thing(f"/v1/tasks/{task}", f"task:{task}", names)
    thing.claimed(agent.post(f"{thing.path}/claim", {"worker_id": "first"}).json)
    return thing


def a_reservation(agent: Agent) -> Thing:
    asked = {"space": fresh("space"), "paths": ["src/", "README.md"], "owner": "first", "ttl_seconds": 3600}
    reserved = agent.post("/v1/reservations", asked).json
    reservation = reserved["reservation_id"]
    names = {"owner": "owner", "lease": "lease_id", "token": "token", "who": "owner"}
    thing = Thing(f"/v1/reservations/{reservation}", f"reservation:{reservation}", names)
    thing.claimed(reserved)
    return thing


class Handovers:
    """A server, a giver and a taker, each of which may be killed at any moment."""

    def __init__(self, server: Any, seed: int) -> None:
        self.server = server
        self.random = random.Random(seed)
        self.agent = root(server)
        self.callers: dict[str, CallerProcess] = {}

    def hand_over(self, thing: Thing, victim: str, step: str) -> None:
        """Hand the thing from its owner to the next one, while the victim is killed at this step."""
        offer = {"lease_id": thing.lease_id, "note": f"from {thing.owner}"}
        answer = self.ask("giver", f"{thing.path}/offer", offer, victim if step == OFFER else None)
        assert self.seen_owner(thing) == thing.owner, "an offer changes no owner"
        assert thing.heartbeat(self.agent)[0] == 200
        taker, key = fresh("taker"), fresh("key")
        if answer is None:  # the giver never learned its code: started again, it makes another offer
            claim, granted = self.offer_until_granted(thing, offer, taker, key)
        else:
            claim = {thing.names["who"]: taker, "offer": answer[1]["offer"]}
            granted = self.ask("taker", f"{thing.path}/claim", claim, victim if step == CLAIM else None, key)
        self.check_one_owner(thing, taker, granted)
        again = self.agent.under_key(key).post(f"{thing.path}/claim", claim)
        assert again.status == 200, again.json
        assert granted is None or granted[1][thing.names["lease"]] == again.json[thing.names["lease"]]
        giver = Thing(thing.path, thing.subject, thing.names)
        giver.lease_id = thing.lease_id
        thing.claimed(again.json)
        assert self.seen_owner(thing) == thing.owner == taker
        assert thing.heartbeat(self.agent)[0] == 200
        status, body = giver.heartbeat(self.agent)
        assert (status, taker in body["message"]) == (409, True), body

    def offer_until_granted(self, thing: Thing, offer: dict[str, Any], taker: str, key: str) -> tuple[Any, Any]:
        """Offer and claim again; the request of a killed giver may have been under way, and replace one more offer."""
        for _ in range(2):
            code = self.agent.post(f"{thing.path}/offer", offer).json["offer"]
            claim = {thing.names["who"]: taker, "offer": code}
            answer = self.agent.under_key(key).post(f"{thing.path}/claim", claim)
            if answer.status != 409:
                break
        assert answer.status == 200, answer.json
        return claim, (answer.status, answer.json)

    def check_one_owner(self, thing: Thing, taker: str, granted: tuple[int, dict[str, Any]] | None) -> None:
        """Whatever was killed, either the giver or the taker is the owner, and the other one is not."""
        owner = self.seen_owner(thing)
        assert owner in {thing.owner, taker}
        assert granted is None or owner == taker, "an acknowledged handover is durable"
        status = thing.heartbeat(self.agent)[0]
        if owner == thing.owner and status == 409:  # the claim of a killed caller was still under way
            owner = self.seen_owner(thing)
            assert owner == taker
        assert status == (200 if owner == thing.owner else 409)

    def seen_owner(self, thing: Thing) -> str:
        return thing.owner_in(self.agent.get(thing.path).json)

    def ask(
        self, who: str, path: str, body: dict[str, Any], victim: str | None, key: str = ""
    ) -> tuple[int, dict[str, Any]] | None:
        """Send a request from a process of its own, and kill the victim meanwhile; what dies is started again."""
        for name in ("giver", "taker"):
            if name not in self.callers or not self.callers[name].is_alive:
                self.callers[name] = CallerProcess(self.server.port, ROOT_KEY)
        self.callers[who].send(path, key or fresh("key"), body)
        if victim is not None:
            time.sleep(self.random.random() * LATEST_KILL)
            (self.server if victim == "server" else self.callers[victim]).kill()
        answer = self.callers[who].answer()
        if victim == "server":
            self.server.start()
        elif victim is not None:
            self.callers.pop(victim).close()
        assert answer is None or answer[0] == 200, answer
        return answer

    def close(self) -> None:
        for caller in self.callers.values():
            caller.close()


def test_a_handover_leaves_exactly_one_owner_whatever_is_killed(new_store_url, new_server, covered):
    url = new_store_url()
    handovers = Handovers(new_server(url).start(), 4127)
    things = [a_job(handovers.agent), a_task(handovers.agent), a_reservation(handovers.agent)]
    try:
        for _ in range(ROUNDS):
            for victim, step in KILLS:
                for thing in things:
                    handovers.hand_over(thing, victim, step)
    finally:
        handovers.close()
    handovers.server.kill()
    assert_store_is_consistent(url)
    for thing in things:
        check_no_gap([event for event in events_of(url) if event.subject == thing.subject])
    covered("handovers under kill -9", ROUNDS * len(KILLS) * len(things))


def check_no_gap(events: list[Any]) -> None:
    """Each handover is one transaction: it ends the giver's lease and grants the taker's.

    Jobs and tasks have an event for each of both, a reservation has one for both.
    """
    verbs = [event.kind.partition(".")[2] for event in events]
    ends = [number for number, verb in enumerate(verbs) if verb == "handed_over"]
    assert len(ends) == ROUNDS * len(KILLS)
    for number in ends:
        ended = events[number]
        if ended.kind != "reservation.handed_over":
            granted = events[number + 1]
            assert granted.kind.endswith(".claimed")
            assert (ended.at, ended.request_id) == (granted.at, granted.request_id)
    grants = verbs.count("claimed") + verbs.count("reserved")
    assert grants == 1 + (ROUNDS * len(KILLS) if verbs[0] != "reserved" else 0)
    assert not {"expired", "released", "undelivered"} & {*verbs}
