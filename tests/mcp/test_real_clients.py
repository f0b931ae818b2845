"""A client that is not the SDK's own connects, lists the tools, holds a job and completes a task.

`make conformance` does the same with ten clients; the other tests here use the SDK's.
"""

import sys

from tests.http.job_client import ROOT_KEY
from tests.mcp.real_clients.run import HERE, problem_of, run_command


def test_fastmcp_connects_lists_claims_and_completes(server):
    url = f"http://127.0.0.1:{server.port}/mcp"
    assert run_command([sys.executable, HERE / "python_clients.py", "fastmcp", url, ROOT_KEY]) == ""


def test_a_client_that_misses_a_tool_or_does_not_complete_has_a_problem():
    assert problem_of({"tools": [], "job": ["claimed", "claimed", "released"], "task": ["pending", "claimed"]})
