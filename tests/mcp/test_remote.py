"""Calls to a remote server that does not respond, or that is not a Holdfast server."""

import asyncio
import socket
import threading
from contextlib import contextmanager

import pytest

from holdfast.transport.mcp.listed_tools import ListedTools
from holdfast.transport.mcp.operator_tools import DEFAULT, OPERATOR, TOOL_SETS
from holdfast.transport.mcp.remote import RemoteSender

WRITE, READ = ("claim_job", {"jobId": "x", "owner": "me"}), ("get_job_owner", {"jobId": "x"})
TOOLS = {name: ListedTools(tools) for name, tools in TOOL_SETS.items()}


@contextmanager
def broken_server(text):
    """A server that sends these bytes to its first client, then closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(text)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def ask(url, what, tools=DEFAULT):
    async def run():
        remote = RemoteSender(url, "some-key")
        try:
            return await TOOLS[tools].call(*what, remote)
        finally:
            await remote.close()

    result = asyncio.run(run())
    assert result.is_error
    assert "some-key" not in result.content[0].text
    return result.structured_content


@pytest.mark.parametrize("tools", [DEFAULT, OPERATOR])
@pytest.mark.parametrize(("what", "applied"), [(WRITE, "unknown"), (READ, "no")])
def test_a_lost_response_advises_to_retry_only_a_read(what, applied, tools):
    with broken_server(b"") as url:
        found = ask(url, what, tools)
    assert (found["error"], found["applied"]) == ("unreachable", applied)
    assert found["agent_contract"]["retryable"] is (applied == "no")
    (step,) = (step for step in found["agent_contract"]["next_actions"] if step["recommended"])
    if applied == "unknown" and tools == OPERATOR:
        assert (step["tool"], step["arguments"]) == ("list_events", {"requestId": found["request_id"]})
    elif applied == "unknown":
        assert (step["tool"], step["arguments"]) == ("get_job_owner", {"jobId": "x"})


@pytest.mark.parametrize("status", ["200 OK", "302 Found", "502 Bad Gateway"])
@pytest.mark.parametrize("body", [b"<html>hello</html>", b"[]", b"\xff\xfe"])
def test_a_response_that_is_not_a_json_object_is_refused(status, body):
    head = f"HTTP/1.1 {status}\r\nLocation: /\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    with broken_server(head.encode() + body) as url:
        found = ask(url, WRITE)
    assert "without a JSON object" in found["message"]
    assert found["agent_contract"]["next_actions"][0]["action"] == "fix_request"
