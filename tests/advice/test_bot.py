"""A program that knows nothing but the server's URL gets a task done by doing what each answer recommends."""

import re
from urllib.parse import urlsplit

import pytest

from tests.advice.walker import ENDS
from tests.compat.octostore.wire import Caller
from tests.http.in_process_app import VARIABLES, InProcessServer

STEPS = 10
VALUES = {"string": "bot", "object": {}, "integer": 1}


@pytest.fixture(scope="module")
def server():
    """A server on which everybody may register."""
    server = InProcessServer(variables={**VARIABLES, "HOLDFAST_REGISTRATION": "open"})
    yield server
    server.close()


class Bot:
    """Knows the last answer and its key; it reads in the manifest of tools what a request must contain."""

    def __init__(self, server):
        self.caller = Caller(server.port)
        self.tools = {}
        self.done = []

    def read_entry(self, path):
        """The entry document of agents, or the link list or index that leads to it."""
        answer = self.caller.get(path)
        if path == "/":
            return answer.json
        if path.endswith(".txt"):
            (link,) = set(re.findall(r"\((\S+agent\.json)\)", answer.raw.decode()))
            answer = self.caller.get(urlsplit(link).path)
        entry = answer.json
        manifest = self.caller.get(entry["tool_manifest_url"]).json["tools"]
        self.tools = {(tool["method"], tool["endpoint"]): tool["inputSchema"] for tool in manifest}
        return self.keep(self.caller.post(entry["registration_url"]).json)

    def follow(self, answer):
        """Do what an answer recommends first; the next answer."""
        steps = [step for step in answer["agent_contract"]["next_actions"] if step["recommended"]]
        assert steps, answer
        step = steps[0]
        self.done.append(step["action"])
        assert "endpoint" in step or step["action"] in ENDS, f"a dead end: {step}"
        assert "endpoint" in step, f"not yet done, but the walk ends: {step}"
        body = None if step["method"] == "GET" else self.body_of(step, answer)
        sent = self.caller.get(step["endpoint"]) if body is None else self.caller.post(step["endpoint"], body)
        return self.keep(sent.json)

    def body_of(self, step, answer):
        """What the schema of the request requires, and the proof that the last answer showed."""
        path = step["endpoint"].replace(answer.get("id", "{id}"), "{id}")
        schema = self.tools.get((step["method"], path), {"required": [], "properties": {}})
        in_path = re.findall(r"{(\w+)}", path)
        wanted = {name: VALUES[schema["properties"][name].get("type", "object")] for name in schema["required"]}
        proof = {"lease_id": answer["leaseId"]} if "leaseId" in answer else {}
        return {name: value for name, value in (wanted | proof).items() if name not in in_path}

    def keep(self, answer):
        if "apiKey" in answer:
            self.caller = self.caller.with_headers(Authorization=f"Bearer {answer['apiKey']}")
            if not self.tools:
                manifest = self.caller.get("/v1/tool").json["tools"]
                self.tools = {(tool["method"], tool["endpoint"]): tool["inputSchema"] for tool in manifest}
        return answer


@pytest.mark.parametrize("entry", ["/", "/.well-known/agent.json", "/llms.txt"])
def test_a_bot_that_knows_only_the_url_completes_a_task(server, entry):
    bot = Bot(server)
    answer = bot.read_entry(entry)
    for _ in range(STEPS):
        answer = bot.follow(answer)
        if answer.get("status") == "completed":
            break
    assert answer.get("status") == "completed", answer
    assert bot.done[-3:] == ["create_task", "claim_task", "complete_task"]
    assert bot.caller.get("/v1/tasks?status=completed").json["tasks"][0]["id"] == answer["id"]
