"""An agent that knows only the server's address and follows `next_actions`, also after refusals and lost answers.

It reads `/v1/tool` for what requests look like, and follows `next_actions`: the first recommended one, else the first.
"""

import json
import random
import time
import uuid

import pytest

from tests.compat.octostore.wire import send
from tests.proof_size import sized

TASKS = 20
STEPS = 600
LONGEST_WAIT = 0.2
KILLS = sized(1, 3)
FAULTS = ("lost before", "lost after", "garbage", "no key", "wrong key", "wrong method", "thief", "kill")


class DeadEnd(AssertionError):
    """The answer had no next action."""


class Bot:
    """Knows the address, its key and the last answer."""

    def __init__(self, server, seed):
        self.server = server
        self.rng = random.Random(seed)
        self.key = None
        self.tools = {}
        self.done = set()
        self.met = dict.fromkeys(FAULTS, 0)

    def run(self):
        answer = self.ask("GET", "/", None)
        manifest = self.ask("GET", "/v1/tool", None)
        self.tools = {tool["name"]: tool for tool in manifest["tools"]}
        for _ in range(STEPS):
            if len(self.done) >= TASKS:
                return
            answer = self.follow(answer)
        raise DeadEnd(f"{len(self.done)} tasks after {STEPS} steps; the last answer was {answer}")

    def follow(self, answer):
        step = self.choose(answer)
        wait = step.get("retry_after_seconds", 0)
        time.sleep(min(wait, LONGEST_WAIT))
        code = step["action"]
        if code in {"fix_request", "retry_after_wait"} and "endpoint" not in step:
            return self.call(*self.last)  # as it should have been the first time
        if code == "authenticate":
            return self.call(*self.last) if self.key and answer["error"] != "invalid_api_key" else self.register()
        if code == "register":
            return self.register()
        if code == "stop_work":  # its task was cancelled: it brings other work, as after registering
            return self.call("POST", "/v1/tasks", {"type": "bot", "payload": {}})
        return self.call(step["method"], step["endpoint"], self.body_of(step))

    def choose(self, answer):
        steps = answer["agent_contract"]["next_actions"]
        if not steps:
            raise DeadEnd(answer)
        return next((step for step in steps if step["recommended"]), steps[0])

    def register(self):
        answer = self.ask("POST", "/v1/keys/register", {})
        self.key = answer["apiKey"]
        return answer

    def body_of(self, step):
        """Sample values for the fields that the tool's schema requires, without path parameters."""
        if step["method"] == "GET":
            return None
        name = "claim_task" if step["endpoint"] == "/v1/tasks/claim" else step["action"]
        schema = self.tools[name]["inputSchema"]
        in_path = {part.strip("{}") for part in self.tools[name]["endpoint"].split("/") if part.startswith("{")}
        made = {"string": "bot", "object": {}, "integer": 1}
        wanted = [field for field in schema["required"] if field not in in_path]
        return {field: made.get(schema["properties"][field].get("type"), {}) for field in wanted}

    def call(self, method, path, body):
        """One request with simulated network errors, repeated until there is an answer."""
        self.last = method, path, body
        key = str(uuid.uuid4())
        while True:
            fault = self.rng.choice(FAULTS) if self.rng.random() < 0.5 else None
            answer = self.attempt(fault, method, path, body, key)
            if answer is not None:
                self.note(path, answer)
                return answer

    def attempt(self, fault, method, path, body, key):
        if fault is not None:
            self.met[fault] += 1
        if fault == "lost before":
            return None
        if fault == "garbage" and body is not None:
            return self.ask(method, path, b"{")
        if fault == "wrong method":
            return self.ask("PUT", path, {})
        if fault == "no key":
            return self.ask(method, path, body, credential=None)
        if fault == "wrong key":
            return self.ask(method, path, body, credential="hf_live_nobody")
        if fault == "thief" and path.endswith(("/complete", "/fail")):
            self.ask("POST", path.rsplit("/", 1)[0] + "/cancel", {"mode": "force"})
        if fault == "kill" and self.met["kill"] <= KILLS:
            self.server.kill()
            self.server.start()
        answer = self.ask(method, path, body, key)
        return None if fault == "lost after" else answer

    def ask(self, method, path, body, key=None, credential=""):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if key is not None:
            headers["Idempotency-Key"] = key
        credential = self.key if credential == "" else credential
        if credential is not None:
            headers["Authorization"] = f"Bearer {credential}"
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        answer = json.loads(send(self.server.port, method, path, raw, headers).raw)
        if path.startswith("/v1/t") and path != "/v1/tool":
            assert answer["agent_contract"]["next_actions"], answer
        return answer

    def note(self, path, answer):
        if path.endswith("/complete") and answer.get("status") == "completed":
            self.done.add(answer["id"])


@pytest.mark.parametrize("seed", range(1, sized(1, 10) + 1))
def test_a_bot_that_follows_next_actions_finishes_its_tasks(new_server, new_store_url, seed):
    bot = Bot(new_server(new_store_url()).start(), seed)
    bot.run()
    assert len(bot.done) == TASKS
    assert all(bot.met[fault] for fault in FAULTS), f"a run without some fault proves little: {bot.met}"


def test_a_bot_on_a_small_plan_continues_after_each_refusal(new_server, new_store_url, tmp_path):
    plans = tmp_path / "plans.toml"
    plans.write_text("[tiny]\nmax_workers = 1\ntasks_per_month = 60\n")
    bot = Bot(new_server(new_store_url(), PLANS=str(plans), PLAN="tiny").start(), 3)
    bot.run()
    assert len(bot.done) == TASKS
