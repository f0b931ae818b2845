"""`holdfast mcp` as a child process: its output, its exit status, and refusals by an unreachable server."""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import suppress
from tempfile import TemporaryFile

import pytest

from holdfast.transport.mcp.tools import TOOLS
from tests.compat.octostore.server import free_port
from tests.mcp.clients import KEY, NEW, over_stdio
from tests.mcp.raw_requests import new, old


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
        ([], {"URL": "https://far.example"}, "HOLDFAST_API_KEY"),
        (["--store", "mysql://x"], {}, "--store: expected"),
    ],
)
def test_a_configuration_error_is_on_stderr_with_exit_status_2(flags, settings, message):
    done = program(*flags, **settings)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert KEY not in done.stderr


def test_an_unreachable_server_and_a_wrong_key_are_refusals(server):
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

    asyncio.run(ask())


def test_the_new_protocol_needs_no_handshake_on_stdio(tmp_path):
    done = program("--store", f"sqlite:///{tmp_path}/new.db", text=json.dumps(new("tools/list")) + "\n", until=1)
    (response,) = (json.loads(line) for line in done.stdout.splitlines())
    assert len(response["result"]["tools"]) == len(TOOLS)


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
