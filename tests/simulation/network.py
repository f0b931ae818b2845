"""The simulated network between clients and servers: it delays, reorders, duplicates and loses what it carries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.request import Operation, Request

if TYPE_CHECKING:
    from tests.simulation.clients import Client
    from tests.simulation.server import Server
    from tests.simulation.world import World


class Network:
    """Everything that is on its way."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = world.random.random
        self._requests: list[tuple[int, Request]] = []
        """Each with the number of the server that it is sent to."""
        self._answers: list[tuple[Request, Any]] = []

    def send(self, client: Client | None, operation: Operation) -> None:
        """Send a request to a server; it may be lost, delayed, or arrive twice."""
        world = self._world
        copies = 2 if world.faults.happens(world.faults.duplicated) else 1
        if copies > 1:
            world.count("duplicated request")
        for _ in range(copies):
            request = Request(len(world.requests) + 1, client, operation)
            world.requests[request.id] = request
            number = world.random.randrange(world.server_count)
            is_lost = world.faults.loses_message()
            if world.is_traced:
                world.note(client, f"sends {request} to {number}{', which is lost' if is_lost else ''}")
            if not is_lost:
                self._requests.append((number, request))

    def deliver_requests(self, chance: float = 0.8) -> None:
        """Some of the requests arrive, in any order."""
        world = self._world
        requests, self._requests = self._requests, []
        world.random.shuffle(requests)
        for number, request in requests:
            server = world.server(number)
            if server is None:
                request.operation.must_retry = True  # connection refused
            elif server.is_ready and world.is_running(server) and self._random() < chance:
                server.receive(request)
            else:
                self._requests.append((number, request))

    def answer(self, server: Server, request: Request, outcome: Any) -> None:
        """A server sends an answer; it may be lost."""
        world = self._world
        request.answer = outcome
        if world.is_traced:
            world.note(server, f"answers {request}: {_brief(outcome)}")
        world.checker.answered(request, outcome)
        if request.ticket is not None and request.ticket.alarm is not None and _is_grant(outcome):
            world.count("waiter served")
        if world.faults.loses_message():
            world.count("lost answer")
        else:
            self._answers.append((request, outcome))

    def deliver_answers(self, chance: float = 0.8) -> None:
        """Some of the answers arrive."""
        answers, self._answers = self._answers, []
        for request, outcome in answers:
            if self._random() > chance:
                self._answers.append((request, outcome))
            elif request.client is not None:
                request.client.receive(request, outcome)


def _is_grant(outcome: Any) -> bool:
    """Whether an answer to a claim grants something."""
    return hasattr(outcome, "lease_id") or hasattr(outcome, "taken")


def _brief(outcome: Any) -> str:
    if isinstance(outcome, Exception):
        return repr(outcome)
    lease = getattr(outcome, "lease", None)
    return type(outcome).__name__ if lease is None else f"{type(outcome).__name__} token {lease.token}"
