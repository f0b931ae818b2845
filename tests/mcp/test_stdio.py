"""`holdfast mcp` as a child process: its output, its exit status, and refusals by an unreachable server."""

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from tempfile import TemporaryFile

import pytest

from holdfast.transport.mcp.tools import DEFAULT_TOOLS
from tests.compat.octostore.server import free_port
from tests.http.job_client import agent
from tests.mcp.clients import KEY, NEW, over_stdio
from tests.mcp.raw_requests import new, old
from tests.proof_size import FULL


def program(*flags, text="", until=0, **settings):
    """Run `holdfast mcp`. Its stdin stays open until it has written `until` lines: after that it answers nothing."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    variables = {f"HOLDFAST_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "holdfast", "mcp", *flags]
    pipe = subprocess.PIPE
    with (
        TemporaryFile("w+") as errors,
        subprocess.Popen(command, env=ours | variables, text=True, stdin=pipe, stdout=pipe, stderr=errors) as running,
    ):
        with suppress(BrokenPipeError):  # it may have ended because of its flags
            running.stdin.write(text)
            running.stdin.flush()
        response = "".join(running.stdout.readline() for _ in range(until))
        with suppress(BrokenPipeError):
            running.stdin.close()
        response += running.stdout.read()
        status = running.wait(60)
        errors.seek(0)
        return subprocess.CompletedProcess(command, status, response, errors.read())


def test_stdout_has_only_protocol_messages(tmp_path):
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages = [
        old("initialize", **hello),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {**old("tools/call", name="claim_job", arguments={"jobId": "x", "owner": "me"}), "id": 2},
    ]
    text = "\n".join(map(json.dumps, messages)) + "\nnot even JSON\n"
    done = program("--store", f"sqlite:///{tmp_path}/quiet.db", text=text, until=2, LOUD="unknown")
    assert done.returncode == 0, done.stderr
    response = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(message["jsonrpc"] == "2.0" for message in response)
    assert {1, 2} <= {message.get("id") for message in response}
    assert (tmp_path / "quiet.db").exists()


@pytest.mark.parametrize(
    ("flags", "settings", "message"),
    [
        ([], {"URL": "http://far.example:7700", "API_KEY": KEY}, "HOLDFAST_URL: must be https"),
        (["--store", "mysql://x"], {}, "--store: expected"),
    ],
)
def test_a_configuration_error_is_on_stderr_with_exit_status_2(flags, settings, message):
    done = program(*flags, **settings)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert KEY not in done.stderr


def test_an_unreachable_server_and_a_wrong_or_missing_key_are_refusals(server):
    async def ask():
        nowhere = {"URL": f"http://127.0.0.1:{free_port()}", "API_KEY": KEY}
        async with over_stdio(**nowhere) as me:
            found = await me.refused("claim_job", jobId="x", owner="me")
            assert (found["error"], found["applied"]) == ("unreachable", "no")
            assert found["agent_contract"]["retryable"] is True
        wrong_key = {"URL": f"http://127.0.0.1:{server.port}", "API_KEY": "nobody-knows-this-token-at-all"}
        async with over_stdio(**wrong_key) as me:
            found = await me.refused("claim_job", jobId="x", owner="me")
            assert (found["status"], found["agent_contract"]["next_actions"][0]["action"]) == (401, "authenticate")
        async with over_stdio(URL=f"http://127.0.0.1:{server.port}") as me:
            found = await me.refused("claim_job", jobId="x", owner="me")
            (advice,) = found["agent_contract"]["next_actions"]
            assert (found["error"], advice["action"]) == ("missing_api_key", "authenticate")
            assert advice["description"].startswith("Set `HOLDFAST_API_KEY`")

    asyncio.run(ask())


def test_the_new_protocol_needs_no_handshake_on_stdio(tmp_path):
    done = program("--store", f"sqlite:///{tmp_path}/new.db", text=json.dumps(new("tools/list")) + "\n", until=1)
    (response,) = (json.loads(line) for line in done.stdout.splitlines())
    assert len(response["result"]["tools"]) == len(DEFAULT_TOOLS)


def running_in(folder, **settings):
    """A program that runs in a folder."""
    return over_stdio(NEW, "--store", f"sqlite:///{folder}/own.db", folder=folder, **settings)


async def call_reserve(me):
    """The result of `reserve_files` without a space."""
    return await me.ask("reserve_files", owner="me", paths=["src/"])


def test_the_space_is_that_of_the_folder_or_the_environment(tmp_path):
    file = tmp_path / ".holdfast.toml"

    async def ask():
        async with running_in(tmp_path) as me:
            refused, is_error = await call_reserve(me)
            assert (is_error, refused["error"], refused["errors"][0]["pointer"]) == (True, "invalid_request", "/space")
            assert "holdfast init" in refused["message"]
            file.write_text('space = "acme/shop"\n')
            assert (await call_reserve(me))[0]["space"] == "acme/shop"
            file.write_text("space = 1\n")
            refused, is_error = await call_reserve(me)
            assert (is_error, ".holdfast.toml must name the space" in refused["message"]) == (True, True)
        file.write_text('space = "acme/shop"\n')
        async with running_in(tmp_path, SPACE="acme/other") as me:
            assert (await call_reserve(me))[0]["space"] == "acme/other"

    asyncio.run(ask())


class Host:
    """A host that has started `holdfast mcp` for an agent, and can be killed with it."""

    def __init__(self, server, state, owner="ann", **settings):
        ours = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        given = {"URL": f"http://127.0.0.1:{server.port}", "API_KEY": KEY, "OWNER": owner} | settings
        variables = {f"HOLDFAST_{name}": value for name, value in given.items()}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "mcp"],
            env=ours | variables | {"XDG_STATE_HOME": str(state)}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def do(self, tool, **arguments):
        self._process.stdin.write(json.dumps(new("tools/call", name=tool, arguments=arguments)) + "\n")
        self._process.stdin.flush()
        result = json.loads(self._process.stdout.readline())["result"]
        assert not result.get("isError"), result
        return result["structuredContent"]

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


def test_a_host_that_is_killed_and_started_again_goes_on_by_the_ids_alone(server, tmp_path):
    host = Host(server, tmp_path)
    task = host.do("create_task", type="killed-host", payload={})["id"]
    assert host.do("claim_job", jobId="killed-host", ttlMs=1000)["expires_in_seconds"] in range(58, 61)
    assert host.do("claim_task", type="killed-host")["leaseId"]
    host.kill()
    host = Host(server, tmp_path)
    held = {each["kind"]: each for each in host.do("my_work")["held"]}
    assert (held["job"]["id"], held["task"]["id"]) == ("killed-host", task)
    assert host.do("complete_task", id=task, result={})["status"] == "completed"
    assert host.do("release_job", jobId="killed-host")["status"] == "released"
    host.kill()
    files = list((tmp_path / "holdfast" / "agents").glob("*.json"))
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600]


@pytest.mark.skipif(not FULL, reason="takes eleven minutes")
def test_a_tool_call_of_ten_minutes_keeps_the_job_and_a_killed_host_frees_it_within_a_minute(server, tmp_path):
    host, other = Host(server, tmp_path), agent(server, "bob-1")
    host.do("claim_job", jobId="long-call", ttlMs=1000)
    ends = time.monotonic() + 600
    while time.monotonic() < ends:
        assert other.owner_of("long-call")["owner"] == "ann"
        time.sleep(5)
    assert host.do("release_job", jobId="long-call")["status"] == "released"
    host.do("claim_job", jobId="long-call")
    time.sleep(50)
    host.kill()
    killed = time.monotonic()
    while other.owner_of("long-call")["owner"] is not None:
        assert time.monotonic() - killed < 65
        time.sleep(0.2)
    assert time.monotonic() - killed > 40 - 1
