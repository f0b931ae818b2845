"""Smoke test of an installed Holdfast: command line, server, client, MCP, dashboard, embedded mode.

    python -I smoke_test.py VERSION

It runs in the environment that it tests, and needs nothing else there: no test library, no checkout. Everything it
writes is in a temporary folder. `scripts/dist` calls it.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path

import holdfast

KEY = "a-key-for-the-smoke-test-0123456789"
PROGRAM = Path(sys.prefix, "bin", "holdfast")
START_SECONDS = 60
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "smoke", "version": "1"}}


def main(version: str) -> None:
    """Run every check; the first that fails ends the program with a traceback."""
    with tempfile.TemporaryDirectory(prefix="holdfast-smoke-") as scratch:
        folder = Path(scratch)
        os.chdir(folder)
        for name in [name for name in os.environ if name.startswith(("HOLDFAST_", "XDG_"))]:
            del os.environ[name]
        os.environ |= {"HOME": scratch, "HOLDFAST_API_KEY": KEY, "HOLDFAST_ROOT_KEY": KEY}
        check_install(version)
        with serving(folder) as url:
            os.environ["HOLDFAST_URL"] = url
            for check in (check_client, check_command_line, check_documents, check_mcp_over_http, check_dashboard):
                check(url)
            check_mcp_over_stdio()
        run("verify", "--store", f"sqlite:///{folder}/smoke.db")
        check_embedded(folder)
    print(f"  holdfast {version} works on Python {sys.version.split()[0]}")


def check_install(version: str) -> None:
    """The package of this environment is tested, not a checkout."""
    assert Path(holdfast.__file__).is_relative_to(sys.prefix), holdfast.__file__
    assert holdfast.__version__ == version
    assert version in run("--version")


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a server, which must end with status 0."""
    log = folder / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [PROGRAM, "serve", "--port", "0", "--store", f"sqlite:///{folder}/smoke.db"], stdout=output, stderr=output
        )
    try:
        yield wait_until_ready(server, log)
        server.send_signal(signal.SIGTERM)
        assert server.wait(START_SECONDS) == 0, log.read_text()
    finally:
        server.kill()
        server.wait()


def wait_until_ready(server: "subprocess.Popen[bytes]", log: Path) -> str:
    """The address that the server printed, once `/readyz` answers 200."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        found = re.search(r"listening on (\S+)", log.read_text())
        try:
            if found and get(f"{found[1]}/readyz"):
                return found[1]
        except urllib.error.URLError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"no server:\n{log.read_text()}")


def check_client(url: str) -> None:
    """A job has one owner; a task is created, claimed and completed."""
    with holdfast.Client(url, KEY) as client:
        with client.job("smoke/job", owner="agent-1") as job:
            job.checkpoint({"step": 1})
            job.check()
            refused = client.claim_job("smoke/job", owner="agent-2")
            assert (refused["status"], refused["owner"]) == ("held", "agent-1")
        made = client.create_task("smoke", {"n": 1})
        with client.task("smoke", worker="agent-1") as task:
            task.result = {"n": task.payload["n"] + 1}
        assert client.check_task_status(made["id"])["result"] == {"n": 2}


def check_command_line(_url: str) -> None:
    """A command owns a job while it runs."""
    script = 'holdfast owner smoke/command -o json && echo "$HOLDFAST_TOKEN"'
    shown = run("run", "smoke/command", "--", "sh", "-c", script)
    document, _, token = shown.strip().rpartition("\n")
    assert json.loads(document)["status"] == "claimed", shown
    assert int(token) > 0


def check_documents(url: str) -> None:
    """Files and generated documents that are part of the package."""
    for path, part in {
        "/openapi.json": "claimJob",
        "/openapi.yaml": "openapi: 3.1",
        "/llms.txt": "# Holdfast",
        "/skill/SKILL.md": "name: holdfast",
        "/docs": "<html",
        "/metrics/prometheus": "holdfast_build_info",
    }.items():
        assert part in get(f"{url}{path}", key=KEY), path


def check_mcp_over_http(url: str) -> None:
    """A tool call over `/mcp`."""
    answers = get(f"{url}/mcp", key=KEY, body=call_tool(1, "http"), accept="application/json, text/event-stream")
    assert '"claimed"' in answers.replace('\\"', '"'), answers


def check_mcp_over_stdio() -> None:
    """A tool call to `holdfast mcp`."""
    command = [PROGRAM, "mcp"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        for message in (
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            call_tool(2, "stdio"),
        ):
            print(json.dumps(message), file=agent.stdin, flush=True)
        for line in agent.stdout:
            answer = json.loads(line)
            if answer.get("id") == 2:  # noqa: PLR2004 - the id of the call
                break
        agent.stdin.close()
        assert agent.wait(START_SECONDS) == 0
    assert answer["result"]["structuredContent"]["status"] == "claimed", answer


def call_tool(number: int, name: str) -> dict[str, object]:
    """A request that claims a job."""
    arguments = {"jobId": f"smoke/mcp-{name}", "owner": "agent-1"}
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": "claim_job", "arguments": arguments},
    }


def check_dashboard(url: str) -> None:
    """A link signs a browser in; the page shows what is held and all its files are there."""
    with holdfast.Client(url, KEY) as client, client.job("smoke/dashboard", owner="agent-1"):
        link = re.search(r"https?://\S+", run("dashboard"))
        assert link
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        browser.addheaders = [("Accept", "text/html"), ("Origin", url)]
        sign_in = open_page(browser, link[0])
        form = re.search(r'<form[^>]*action="([^"]+)"', sign_in)
        if form:  # the link is used by the form behind it, so that a preview does not use it up
            fields = dict(re.findall(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"', sign_in))
            open_page(browser, url + form[1], fields)
        page = open_page(browser, f"{url}/ui/jobs")
        assert "smoke/dashboard" in page, page
        files = set(re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css|svg)[^"]*)"', page))
        assert len(files) > 1, page
        for file in files:
            assert open_page(browser, url + file), file


def open_page(browser: urllib.request.OpenerDirector, address: str, fields: dict[str, str] | None = None) -> str:
    """The text of a page; `fields` are sent as a form."""
    body = None if fields is None else urllib.parse.urlencode(fields).encode()
    with browser.open(address, body, timeout=START_SECONDS) as answer:
        return answer.read().decode()


def check_embedded(folder: Path) -> None:
    """A file is used without a server."""
    with holdfast.open(str(folder / "embedded.db")) as client, client.job("smoke/job", owner="agent-1") as job:
        assert job.token > 0


def run(*words: str) -> str:
    """What a command prints; it must end with status 0."""
    environment = os.environ | {"PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    done = subprocess.run([PROGRAM, *words], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def get(address: str, *, key: str | None = None, body: object = None, accept: str = "*/*") -> str:
    """The answer to a request, which must be a success."""
    head = {"Accept": accept, "Content-Type": "application/json"}
    if key is not None:
        head["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(address, None if body is None else json.dumps(body).encode(), head)
    with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:
        return answer.read().decode()


if __name__ == "__main__":
    main(sys.argv[1])
