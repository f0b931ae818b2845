"""The official conformance suite, the Inspector and ten clients against our endpoint: `make conformance`.

    python -m tests.mcp.run_conformance FOLDER

FOLDER has the suite, the Inspector, the clients and a Node. Exit status 1 if a client fails, if a scenario that a
revision requires fails, or if an optional one has another result than expected here.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.compat.octostore.server import free_port
from tests.compat.octostore.wire import Caller
from tests.mcp import inspector
from tests.mcp.real_clients import run as real_clients
from tests.support import wait_until

REVISIONS = ("2026-07-28", "2025-11-25")
SUITE = "@modelcontextprotocol/conformance"

WORDS = "passed|failed|skipped|absent"
"""What a scenario of a revision can be: skipped if it found nothing to check, absent if the revision has it not."""

NOT_IMPLEMENTED = {
    "tasks-lifecycle": "the tasks extension: our tasks are tools of their own, and outlive any client",
    "tasks-capability-negotiation": "the tasks extension",
    "tasks-wire-fields": "the tasks extension",
    "tasks-request-state-removal": "the tasks extension",
    "tasks-mrtr-input": "the tasks extension",
    "tasks-request-headers": "the tasks extension",
    "tasks-dispatch-and-envelope": "the tasks extension",
    "tasks-required-task-error": "the tasks extension",
    "tasks-mrtr-composition": "the tasks extension",
}
"""Optional scenarios that are expected to fail, with the reason."""

NEEDS_SESSIONS = {
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "server-sse-multiple-streams",
}
"""Scenarios that need a session: in the old protocol a tool may send requests to its client during a call. Holdfast's
tools never do, and its endpoint has no sessions, so the endpoint as shipped cannot pass them."""


@contextmanager
def conformance_server(*flags):
    """Run the endpoint with the tools that the suite needs, on a free port."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.mcp.conformance_server", str(port), *flags])
    try:
        wait_until(lambda: _is_ready(port), 30)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()


def _is_ready(port):
    try:
        return Caller(port).get("/health").status == 200
    except OSError:
        return False


def run_suite(folder, url, revision):
    """Counts of check results by scenario: {"SUCCESS": 3, "FAILURE": 0 ...}."""
    with tempfile.TemporaryDirectory() as out:
        program = folder / "node_modules" / SUITE / "dist/index.js"
        command = [find_node(folder), program, "server", "--url", url, "--requirements", revision, "-o", out]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        results = {}
        for checks in Path(out).glob("server-*/checks.json"):
            name = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\d-]+Z$", "", checks.parent.name)
            statuses = [check["status"] for check in json.loads(checks.read_text())]
            results[name] = {status: statuses.count(status) for status in statuses}
    return results, done.returncode


def find_node(folder):
    (node,) = (folder / "node_modules").glob("node-*-*/bin/node")
    return node


def has_passed(checks):
    """Whether a scenario has successful checks and no failed ones."""
    return bool(checks) and checks.get("SUCCESS", 0) > 0 and not checks.get("FAILURE")


def run_revision(folder, revision, url, *, absent=frozenset()):
    """Print the results of a revision; returns the names of scenarios with an unexpected result."""
    expected = yaml.safe_load((folder / "node_modules" / SUITE / f"requirements/{revision}.yaml").read_text())
    required = set(expected["server"])
    optional = {row["scenario"]: row["reason"] for row in expected["not_scored"] if row["leg"] == "server"}
    results, status = run_suite(folder, url, revision)
    good = {name for name in required if has_passed(results.get(name))}
    wrong = (required - absent - good) | (absent & good)
    count = count_checks(results, required)
    write_line(f"\n{revision}: {len(good)} of {len(required)} required scenarios passed, {count}")
    for name in sorted(required - good):
        write_line(f"  required   {name}: {results.get(name, 'did not run')}")
    for name, reason in optional.items():
        failed = bool(results.get(name, {"FAILURE": 1}).get("FAILURE"))
        word = "failed," if failed else "passed" if has_passed(results[name]) else "found nothing to check"
        write_line(f"  {reason:<10} {name}: {word} {NOT_IMPLEMENTED.get(name, '')}".rstrip())
        wrong |= {name} if failed != (name in NOT_IMPLEMENTED) else set()
    if (status == 0) != (not any(results.get(name, {}).get("FAILURE") for name in required)):
        wrong.add(f"exit status {status}")
    return wrong


def score_plain_server(folder, url):
    """What the suite finds without its own tools: print it, and return the scenarios that the guide has otherwise."""
    scores = {}
    for revision in REVISIONS:
        results, _ = run_suite(folder, url, revision)
        for name, checks in results.items():
            word = "failed" if checks.get("FAILURE") else "passed" if has_passed(checks) else "skipped"
            scores.setdefault(name, {})[revision] = word
    page = (Path(__file__).parents[2] / "docs/guides/mcp.md").read_text()
    rows = re.findall(rf"^\| `([\w-]+)` \| ({WORDS}) \| ({WORDS}) \|", page, re.MULTILINE)
    written = {name: dict(zip(REVISIONS, found, strict=True)) for name, *found in rows}
    wrong = set()
    for name in sorted(scores.keys() | written.keys()):
        found = {revision: scores.get(name, {}).get(revision, "absent") for revision in REVISIONS}
        write_line(f"| `{name}` | {' | '.join(found.values())} |")
        wrong |= {name} if written.get(name) != found else set()
    return wrong


def count_checks(results, names):
    checks = [results[name] for name in names if name in results]
    return f"{sum(found.get('SUCCESS', 0) for found in checks)} checks"


def write_line(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(folder):
    os.environ["NO_COLOR"] = "1"
    with conformance_server("sessions") as url:
        wrong = {revision: run_revision(folder, revision, url) for revision in REVISIONS}
    write_line("\nAs shipped, without sessions:")
    with conformance_server() as url:
        wrong["as shipped"] = run_revision(folder, "2025-11-25", url, absent=NEEDS_SESSIONS)
    write_line("\nA plain server, without what the suite needs:")
    with conformance_server("plain") as url:
        wrong["plain"] = score_plain_server(folder, url)
    wrong["inspector"] = set()
    for target, problems in inspector.find_problems(find_node(folder), folder).items():
        write_line(f"\nThe Inspector over {target}: {problems or 'every tool is listed and called'}")
        wrong["inspector"] |= problems
    write_line("")
    problems = real_clients.find_problems(folder, find_node(folder))
    for name, problem in problems.items():
        write_line(f"{name}: {problem or 'connects, lists, claims and completes'}")
    wrong["clients"] = {name for name, problem in problems.items() if problem}
    write_line("")
    for part, names in wrong.items():
        write_line(f"{part}: {'; '.join(sorted(names)) if names else 'as expected'}")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
