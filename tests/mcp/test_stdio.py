"""`holdfast mcp` as a host starts it: what it says, where, and what happens when nobody answers."""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import suppress
from tempfile import TemporaryFile

import pytest

from tests.compat.octostore.server import free_port
from tests.mcp.clients import KEY, over_stdio
from tests.mcp.raw import new, old


def program(*flags, words="", until=0, **settings):
    """Runs it to its end. Its stdin stays open until so many lines have come: a host that leaves is not answered."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    given = {f"HOLDFAST_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "holdfast", "mcp", *flags]
    pipe = subprocess.PIPE
    with (
        TemporaryFile("w+") as complaints,
        subprocess.Popen(command, env=ours | given, text=True, stdin=pipe, stdout=pipe, stderr=complaints) as running,
    ):
        with suppress(BrokenPipeError):  # it may have ended over its flags
            running.stdin.write(words)
            running.stdin.flush()
        said = "".join(running.stdout.readline() for _ in range(until))
        with suppress(BrokenPipeError):
            running.stdin.close()
        said += running.stdout.read()
        status = running.wait(60)
        complaints.seek(0)
        return subprocess.CompletedProcess(command, status, said, complaints.read())


def test_stdout_has_nothing_but_the_protocol(tmp_path):
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages = [
        old("initialize", **hello),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {**old("tools/call", name="claim_job", arguments={"jobId": "x", "owner": "me"}), "id": 2},
    ]
    words = "\n".join(map(json.dumps, messages)) + "\nnot even JSON\n"
    done = program("--store", f"sqlite:///{tmp_path}/quiet.db", words=words, until=2, LOUD="unknown")
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(message["jsonrpc"] == "2.0" for message in said)
    assert {1, 2} <= {message.get("id") for message in said}
    assert (tmp_path / "quiet.db").exists()


@pytest.mark.parametrize(
    ("flags", "settings", "told"),
    [
        ([], {"URL": "http://far.example:7700", "API_KEY": KEY}, "HOLDFAST_URL: must be https"),
        ([], {"URL": "https://far.example"}, "HOLDFAST_API_KEY"),
        (["--store", "mysql://x"], {}, "--store: expected"),
    ],
)
def test_a_mistake_is_told_on_stderr_and_in_the_status(flags, settings, told):
    done = program(*flags, **settings)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert KEY not in done.stderr


def test_a_server_that_does_not_answer_and_a_wrong_key_are_refusals(server):
    async def ask():
        nowhere = {"URL": f"http://127.0.0.1:{free_port()}", "API_KEY": KEY}
        async with over_stdio(**nowhere) as me:
            found = await me.refused("claim_job", jobId="x", owner="me")
            assert (found["error"], found["applied"]) == ("unreachable", "no")
            assert found["agent_contract"]["retryable"] is True
        stranger = {"URL": f"http://127.0.0.1:{server.port}", "API_KEY": "nobody-knows-this-token-at-all"}
        async with over_stdio(**stranger) as me:
            found = await me.refused("claim_job", jobId="x", owner="me")
            assert (found["status"], found["agent_contract"]["next_actions"][0]["action"]) == (401, "authenticate")

    asyncio.run(ask())


def test_the_new_era_needs_no_handshake_on_stdio_either(tmp_path):
    done = program("--store", f"sqlite:///{tmp_path}/new.db", words=json.dumps(new("tools/list")) + "\n", until=1)
    (said,) = (json.loads(line) for line in done.stdout.splitlines())
    assert len(said["result"]["tools"]) == 15
