"""Runs the command line of the MCP Inspector, which lists and calls every tool, over HTTP and over stdio."""

import json
import os
import subprocess
import sys
import tempfile

from tests.compat.octostore.server import Server
from tests.http.job_client import ROOT_KEY

PROGRAM = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
JOB, WORK = "inspected/job", "inspected"


class Refused(Exception):
    """The Inspector failed, or a tool refused."""


class Inspector:
    """One server and transport; every request starts the Inspector again."""

    def __init__(self, node, folder, *target, **variables):
        self._command = [node, folder / PROGRAM, "--cli", "--quiet"]
        self._way = target
        self._variables = variables
        self.called = set()

    def ask(self, *question):
        done = subprocess.run(
            [*self._command, *self._way, *question],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=os.environ | self._variables,
        )
        if done.returncode:
            raise Refused(f"{question}: exit {done.returncode}: {(done.stderr or done.stdout)[:300]}")
        return json.loads(done.stdout)

    def tools(self):
        return {tool["name"] for tool in self.ask("--method", "tools/list")["tools"]}

    def call(self, tool, **arguments):
        found = self.ask("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        if found.get("isError"):
            raise Refused(f"{tool}: {found['structuredContent']}")
        self.called.add(tool)
        return found["structuredContent"]


def use_every_tool(inspector):
    """Call every tool at least once, with the results of earlier calls."""
    job = {"jobId": JOB, "leaseId": inspector.call("claim_job", jobId=JOB, owner="inspector")["lease_id"]}
    inspector.call("heartbeat_job", **job, checkpoint={"page": 1})
    inspector.call("get_job_owner", jobId=JOB)
    inspector.call("list_claimed_jobs")
    inspector.call("my_work")
    inspector.call("release_job", **job, note="done")
    mine = inspector.call("claim_job", jobId=JOB, alternatives=[f"{JOB}-2"], owner="inspector")
    inspector.call("release_job", jobId=mine["job_id"], leaseId=mine["lease_id"])
    files = inspector.call("reserve_files", space=WORK, owner="inspector", paths=["src/"])
    reservation = {"reservationId": files["reservation_id"], "leaseId": files["lease_id"]}
    inspector.call("heartbeat", id=files["reservation_id"], leaseId=files["lease_id"])
    inspector.call("who_owns", space=WORK, paths=["src/a.py"])
    inspector.call("release_files", **reservation)
    inspector.call("create_task", type=WORK, payload={"n": 1})
    inspector.call("list_tasks", type=WORK)
    proof = claim(inspector)
    inspector.call("heartbeat", **proof)
    inspector.call("release_task", **proof)
    inspector.call("fail_task", **claim(inspector), reason="not today", retryAfterMs=0)
    proof = claim(inspector)
    inspector.call("complete_task", **proof, result={"ok": True})
    inspector.call("check_task_status", id=proof["id"])
    inspector.call("fail_task", **made_and_claimed(inspector), reason="never", permanent=True)
    (dead,) = inspector.call("list_tasks", type=WORK, status="dead_letter")["tasks"]
    inspector.call("requeue_task", id=dead["id"])
    inspector.call("ask_human", **made_and_claimed(inspector), question="Which of the two?")
    mine = inspector.call("session", action="open", name="inspector")
    inspector.call("session", action="close", sessionId=mine["session_id"], leaseId=mine["lease_id"])


def made_and_claimed(inspector):
    inspector.call("create_task", type=WORK, payload={"n": 2})
    return claim(inspector)


def claim(inspector):
    task = inspector.call("claim_task", type=WORK, waitMs=5000)
    return {"id": task["id"], "leaseId": task["leaseId"]}


def find_problems(node, programs):
    """Problems by transport."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(f"sqlite:///{folder}/served.db", ROOT_KEY=ROOT_KEY).start()
        try:
            url, key = f"http://127.0.0.1:{server.port}/mcp", f"Authorization: Bearer {ROOT_KEY}"
            own = {"HOLDFAST_STORE": f"sqlite:///{folder}/own.db"}
            return {
                "http": problems_with(Inspector(node, programs, url, "--transport", "http", "--header", key)),
                "stdio": problems_with(Inspector(node, programs, sys.executable, "-m", "holdfast", "mcp", **own)),
            }
        finally:
            server.close()


def problems_with(inspector):
    try:
        listed = inspector.tools()
        use_every_tool(inspector)
    except Refused as refusal:
        return {str(refusal)}
    return {f"{name} was not called" for name in listed ^ inspector.called}
