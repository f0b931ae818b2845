"""One process is one agent: it renews what was claimed through it, remembers lease ids, and resumes after a restart."""

import asyncio
import json
from contextlib import suppress

import mcp_types as types
import pytest

from holdfast.client.lease_memory import LeaseMemory
from holdfast.settings import load
from holdfast.store.memory.store import MemoryStore
from holdfast.transport.mcp.agent.process import AgentProcess
from holdfast.transport.mcp.agent.session import AgentSession, OtherSessions, Proof
from holdfast.transport.mcp.in_process import InProcessSender, ToolRequest, ToolResponse
from holdfast.transport.mcp.server import McpHandlers
from tests.compat.octostore.server import TOKENS
from tests.http.in_process_app import VARIABLES, InProcessApp
from tests.http.job_client import ROOT_KEY
from tests.support import DrivenClock

SECONDS, IDLE_SECONDS = 60, 3600
URL = "http://127.0.0.1:7700"


class World:
    """A server in this process, whose clock the test moves, and the agents that use it."""

    def __init__(self, folder):
        self.clock = DrivenClock()
        settings, _ = load({"store": "memory:"}, VARIABLES)
        self._app = InProcessApp(settings, MemoryStore(self.clock))
        self._app.runner.run(self._open())
        self.folder = folder
        self.is_down = False

    async def _open(self):
        self._app.ctx.open()

    def agent(self, owner="ann"):
        return Agent(self, owner)

    async def send(self, request: ToolRequest, key: str) -> ToolResponse:
        if self.is_down:
            return ToolResponse(503, b'{"error":"unreachable","message":"down","agent_contract":{"next_actions":[]}}')
        sender = InProcessSender(self._app.app, [(b"authorization", f"Bearer {key}".encode())])
        return await sender.send(request)

    def run(self, coroutine):
        return self._app.runner.run(coroutine)

    def pass_time(self, seconds, *living):
        """Let time pass, in which these agents renew every 20 s, and end what has expired."""
        for _ in range(seconds // 20):
            self.clock.advance(20)
            for agent in living:
                self.run(agent.process.renew())
        self.clock.advance(seconds % 20)
        recover = ToolRequest("POST", "/v1/recover", headers=((b"content-type", b"application/json"),), body=b"{}")
        assert self.run(self.send(recover, ROOT_KEY)).status == 200

    def owner_of(self, job):
        answer = self.run(self.send(ToolRequest("GET", f"/v1/jobs/{job}"), TOKENS["alice-1"]))
        return json.loads(answer.body)["owner"]

    def answer(self, question, text):
        headers = ((b"content-type", b"application/json"),)
        body = json.dumps({"answer": text}).encode()
        request = ToolRequest("POST", f"/v1/questions/{question}/answer", headers=headers, body=body)
        assert self.run(self.send(request, ROOT_KEY)).status == 200

    def close(self):
        self._app.close()


class Agent:
    """A process of an agent: `kill` ends it as its host's end would."""

    def __init__(self, world, owner):
        self.world = world
        self.memory = LeaseMemory.of_process(URL, owner, print, world.folder)
        seconds = lambda: world.clock.now / 1_000_000
        self.process = AgentProcess(self, self.memory, SECONDS, IDLE_SECONDS, seconds)
        self._handlers = McpHandlers(lambda _: self.process, is_agent=True)

    async def send(self, request):
        return await self.world.send(request, TOKENS["alice-1"])

    def ask(self, tool, **arguments):
        call = types.CallToolRequestParams(name=tool, arguments=arguments)
        return self.world.run(self._handlers.call_tool(None, call))

    def do(self, tool, **arguments):
        result = self.ask(tool, **arguments)
        assert not result.is_error, result.structured_content
        return result.structured_content

    def refused(self, tool, **arguments):
        result = self.ask(tool, **arguments)
        assert result.is_error, result.structured_content
        return result.structured_content

    def claim_all(self):
        """Claim a job for an instant, a short task and some files; nothing of it has a lease id in the calls."""
        self.do("create_task", type="work", payload={}, leaseDurationMs=30_000)
        job = self.do("claim_job", jobId="deploy/web", ttlMs=1000)
        task = self.do("claim_task", type="work")
        files = self.do("reserve_files", space="acme/shop", paths=["src/"], ttlMs=1000)
        return job, task, files

    def finish_all(self, task, files):
        """Renew and finish it all by its ids alone."""
        self.do("heartbeat_job", jobId="deploy/web", note="half", checkpoint={"step": 2}, ttlMs=1000)
        self.do("heartbeat", id=task["id"])
        self.do("heartbeat", id=files["reservation_id"])
        assert self.do("who_owns", space="acme/shop", paths=["src/a.py"])["all_allowed"] is True
        assert self.do("complete_task", id=task["id"], result={"n": 1})["status"] == "completed"
        assert self.do("release_files", reservationId=files["reservation_id"])["status"] == "released"
        assert self.do("release_job", jobId="deploy/web")["status"] == "released"

    def kill(self):
        self.memory.close()


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path / "agents")
    yield world
    world.close()


def held_by(agent):
    return {(held["kind"], held["id"]) for held in agent.do("my_work")["held"] if held["kind"] != "session"}


def test_ten_minutes_without_a_tool_call_keep_everything_and_it_is_finished_by_its_ids_alone(world):
    ann = world.agent()
    job, task, files = ann.claim_all()
    assert (job["owner"], task["claimedBy"], files["owner"]) == ("ann", "ann", "ann")
    assert job["expires_in_seconds"] == SECONDS
    assert "renews it every 20 s" in job["renewal"]
    world.pass_time(600, ann)
    assert world.owner_of("deploy%2Fweb") == "ann"
    work = {held["kind"]: held for held in ann.do("my_work")["held"]}
    assert work.keys() == {"session", "job", "task", "reservation"}
    assert (work["job"]["lease_id"], work["task"]["lease_id"]) == (job["lease_id"], task["leaseId"])
    ann.finish_all(task, files)
    assert held_by(ann) == set()
    ann.kill()


def test_a_question_ends_the_lease_that_the_process_remembers_and_the_task_comes_back_with_the_answer(world):
    ann = world.agent()
    _, task, _ = ann.claim_all()
    asked = ann.do("ask_human", id=task["id"], question="Which?", choices=["a", "b"], checkpoint={"step": 2})
    assert (asked["status"], asked["waitingFor"]) == ("pending", "answer")
    assert ("task", task["id"]) not in held_by(ann)
    assert "you have not claimed the task" in ann.refused("complete_task", id=task["id"])["message"]
    assert ann.do("claim_task", type="work")["task"] is None
    world.answer(asked["questionId"], "b")
    again = ann.do("claim_task", type="work")
    assert (again["id"], again["answered"]["answer"]) == (task["id"], "b")
    assert (again["previousAttempt"]["checkpoint"], again["attemptCount"]) == ({"step": 2}, 1)
    ann.kill()


def test_what_a_killed_process_held_is_free_when_its_session_is_over(world):
    ann = world.agent()
    ann.claim_all()
    world.pass_time(40, ann)
    ann.kill()
    world.pass_time(59)
    assert world.owner_of("deploy%2Fweb") == "ann"
    world.pass_time(1)
    assert world.owner_of("deploy%2Fweb") is None
    bob = world.agent("bob")
    assert (bob.do("claim_job", jobId="deploy/web")["status"], bob.do("claim_task")["attemptCount"]) == ("claimed", 2)
    bob.kill()


def test_a_restarted_process_has_everything_back_also_under_the_old_lease_ids(world):
    ann = world.agent()
    job, task, files = ann.claim_all()
    ann.kill()
    for _ in range(2):
        ann = world.agent()
        world.is_down = True  # the server may be unreachable for a while
        assert world.run(ann.process.renew()) is False
        world.is_down = False
        world.pass_time(20, ann)
        ann.kill()
    assert world.owner_of("deploy%2Fweb") == "ann"
    ann = world.agent()
    first = ann.do("heartbeat_job", jobId="deploy/web", leaseId=job["lease_id"], token=job["token"])
    (warning,) = first["warnings"]
    assert warning.startswith("You were restarted and still hold job deploy/web, task")
    assert ann.refused("heartbeat_job", jobId="deploy/web", leaseId=files["lease_id"])["error"] == "lease_lost"
    ann.finish_all(task, files)
    ann.kill()


def test_a_second_process_of_the_same_name_is_another_agent_and_takes_nothing(world):
    ann = world.agent()
    ann.claim_all()
    second = world.agent()
    world.run(second.process.renew())
    theirs = second.do("claim_job", jobId="deploy/web")
    assert (theirs["status"], theirs["owner"]) == ("held", "ann")
    assert held_by(second) == set()
    assert "you have not claimed the job 'deploy/web'" in second.refused("release_job", jobId="deploy/web")["message"]
    assert second.do("claim_job", jobId="own")["owner"] == "ann-2"
    assert len(held_by(ann)) == 3
    for agent in (second, ann):
        agent.kill()


def test_an_hour_without_a_tool_call_ends_the_renewal_and_the_next_answer_says_so(world):
    ann = world.agent()
    ann.claim_all()
    world.pass_time(IDLE_SECONDS - 20, ann)
    assert world.owner_of("deploy%2Fweb") == "ann"
    world.pass_time(40, ann)
    (warning,) = ann.do("my_work")["warnings"]
    assert (
        warning
        == "Renewal had stopped after 60 min without a tool call. You still hold what you held; it is renewed again."
    )
    world.pass_time(IDLE_SECONDS + SECONDS, ann)
    assert world.owner_of("deploy%2Fweb") is None
    (warning,) = ann.do("get_job_owner", jobId="deploy/web")["warnings"]
    assert warning.startswith(
        "Renewal had stopped after 60 min without a tool call. What you had claimed was released: job"
    )
    assert "warnings" not in ann.do("my_work")
    assert ann.refused("heartbeat_job", jobId="deploy/web")["error"] == "lease_lost"
    assert ann.do("claim_job", jobId="deploy/web")["status"] == "claimed"
    ann.kill()


def test_a_session_that_ended_is_opened_again_by_the_next_claim(world):
    ann = world.agent()
    ann.claim_all()
    world.pass_time(SECONDS)  # as if the machine had slept
    again = ann.do("claim_job", jobId="deploy/web")
    assert (again["status"], again["warnings"][0][:23]) == ("claimed", "Your session had ended.")
    world.is_down = True
    assert ann.refused("claim_job", jobId="other")["error"] == "unreachable"
    world.is_down = False
    assert ann.do("claim_job", jobId="other")["status"] == "claimed"
    ann.kill()


def test_a_session_that_the_model_opens_is_renewed_as_well(world):
    ann = world.agent()
    own = ann.do("session", action="open", name="ann-s-own", ttlMs=3_600_000)
    assert own["ttl_seconds"] == SECONDS
    ann.do("claim_job", jobId="own", owner="ann", sessionId=own["session_id"], sessionLeaseId=own["lease_id"])
    world.pass_time(600, ann)
    assert world.owner_of("own") == "ann"
    assert ann.do("release_job", jobId="own")["status"] == "released"
    for action in ("context", "heartbeat", "close"):  # by its id alone
        assert ann.do("session", action=action, sessionId=own["session_id"])["session_id"] == own["session_id"]
    assert ann.refused("session", action="heartbeat", sessionId=own["session_id"])["error"] == "invalid_request"
    ann.kill()


def test_the_name_of_a_session_on_another_machine_keeps_no_agent_from_working(world, tmp_path):
    ann = world.agent()
    ann.do("claim_job", jobId="one")
    world.folder = tmp_path / "another machine"
    other = world.agent()
    assert (other.memory.owner, other.do("claim_job", jobId="two")["status"]) == ("ann", "claimed")
    assert other.do("claim_job", jobId="one")["status"] == "held"
    world.pass_time(200, ann, other)
    assert (world.owner_of("one"), world.owner_of("two")) == ("ann", "ann")
    for agent in (other, ann):
        agent.kill()


def test_the_loop_renews_and_tries_again_soon_after_a_failure(monkeypatch):
    slept = []

    class Failing(AgentProcess):
        def __init__(self):
            self._seconds = SECONDS
            self._answers = [True, False, True]

        async def renew(self):
            if not self._answers:
                raise RuntimeError("for once")
            return self._answers.pop(0)

    async def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 4:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with suppress(asyncio.CancelledError):
        asyncio.run(Failing().keep_alive())
    assert slept == [20, 5, 20, 5]


def test_a_renewal_without_an_answer_is_given_up_before_the_session_is_over(tmp_path):
    """Such as over a connection that broke without a sign: the next renewal makes a new one."""

    class Silent:
        async def send(self, request):
            await asyncio.get_running_loop().create_future()

    async def scenario():
        session, others = AgentSession(Silent(), memory, 3), OtherSessions(Silent(), 3)
        session.proof, others._open = Proof("s-1", "l-1"), {"s-2": "l-2"}
        async with asyncio.timeout(2):
            await others.renew()
            assert await session.renew() is False
        assert (session.proof, others._open) == (Proof("s-1", "l-1"), {"s-2": "l-2"})

    memory = LeaseMemory(URL, "ann", print, tmp_path)
    asyncio.run(scenario())
