"""Runs every MCP client of `make conformance` against a server: it connects, lists the tools, claims and completes.

    python -m tests.mcp.real_clients.run FOLDER

FOLDER has a virtual environment `clients`, another one `old-clients`, `node_modules` and a Node.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from holdfast.transport.mcp.tools import DEFAULT_TOOLS
from tests.compat.octostore.server import Server
from tests.http.job_client import ROOT_KEY

HERE = Path(__file__).parent
CLIENTS = {
    "python-sdk": "clients",
    "fastmcp": "clients",
    "pydantic-ai": "clients",
    "openai-agents": "clients",
    "python-sdk-1": "old-clients",
    "crewai": "old-clients",
    "langchain-mcp-adapters": "old-clients",
    "mcp-use": "old-clients",
    "typescript-sdk": None,
    "typescript-sdk-1": None,
}
"""The virtual environment of each client; None if it runs in Node."""

QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "MCP_USE_ANONYMIZED_TELEMETRY": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "true", "OPENAI_API_KEY": "unused", "FASTMCP_CHECK_FOR_UPDATES": "off",
}  # fmt: skip
"""None of the clients may call home."""


def problem_of(answer):
    """What is wrong with what a client printed; empty if nothing is."""
    expected = {
        "tools": sorted(tool.name for tool in DEFAULT_TOOLS),
        "job": ["claimed", "claimed", "released"],
        "task": ["pending", "claimed", "completed"],
    }
    return "; ".join(f"{name}: {answer.get(name)}" for name, value in expected.items() if answer.get(name) != value)


def run_client(name, folder, node, url):
    """Run one client; returns its problem, empty if it has none."""
    where = CLIENTS[name]
    if where is None:
        command = [node, HERE / "typescript_clients.mjs", name, url, ROOT_KEY, folder.resolve()]
    else:
        command = [folder / where / "bin/python", HERE / "python_clients.py", name, url, ROOT_KEY]
    return run_command(command)


def run_command(command):
    """Run the program of a client; returns its problem."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, check=False, env=os.environ | QUIET | {"HOME": home}
        )
    if done.returncode:
        return (done.stderr or done.stdout).strip()[-500:]
    return problem_of(json.loads(done.stdout.strip().splitlines()[-1]))


def find_problems(folder, node):
    """The problem of each client."""
    with tempfile.TemporaryDirectory() as data:
        server = Server(f"sqlite:///{data}/served.db", ROOT_KEY=ROOT_KEY).start()
        try:
            url = f"http://127.0.0.1:{server.port}/mcp"
            return {name: run_client(name, folder, node, url) for name in CLIENTS}
        finally:
            server.close()


def main(folder):
    (node,) = (folder / "node_modules").glob("node-*-*/bin/node")
    problems = find_problems(folder, node)
    for name, problem in problems.items():
        sys.stdout.write(f"{name}: {problem or 'connects, lists, claims and completes'}\n")
    return 1 if any(problems.values()) else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
