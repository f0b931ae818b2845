"""The official conformance suite and the Inspector against our endpoint: `make conformance`.

    python -m tests.mcp.judge FOLDER

FOLDER has the suite, the Inspector and a Node for them. Exit status 1 if a scenario that a revision requires fails,
or if what is optional fares otherwise than is written down here.
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
from tests.support import wait_until

REVISIONS = ("2026-07-28", "2025-11-25")
SUITE = "@modelcontextprotocol/conformance"

OPTIONAL = {
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
"""What the suite calls optional and we do not have, with the reason."""

NEEDS_SESSIONS = {
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "server-sse-multiple-streams",
}
"""In the old era a tool asks its client in the midst of a call through a session. Holdfast's tools never ask and its
endpoint keeps no sessions, so these say nothing about it as it is shipped; the last one then only warns."""


@contextmanager
def stage(*flags):
    """The endpoint with the suite's props, on a port of its own."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.mcp.stage", str(port), *flags])
    try:
        wait_until(lambda: _answers(port), 30)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()


def _answers(port):
    try:
        return Caller(port).get("/health").status == 200
    except OSError:
        return False


def run_suite(place, url, revision):
    """What each scenario's checks came to, by its name: {"SUCCESS": 3, "FAILURE": 0 ...}."""
    with tempfile.TemporaryDirectory() as out:
        program = place / "node_modules" / SUITE / "dist/index.js"
        command = [node_of(place), program, "server", "--url", url, "--requirements", revision, "-o", out]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        told = {}
        for checks in Path(out).glob("server-*/checks.json"):
            name = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\d-]+Z$", "", checks.parent.name)
            statuses = [check["status"] for check in json.loads(checks.read_text())]
            told[name] = {status: statuses.count(status) for status in statuses}
    return told, done.returncode


def node_of(place):
    (node,) = (place / "node_modules").glob("node-*-*/bin/node")
    return node


def is_good(checks):
    """A scenario in which nothing was checked proves nothing."""
    return bool(checks) and checks.get("SUCCESS", 0) > 0 and not checks.get("FAILURE")


def judge(place, revision, url, *, absent=frozenset()):
    """Print how the revision's scenarios went; the names of those that went otherwise than they should."""
    wanted = yaml.safe_load((place / "node_modules" / SUITE / f"requirements/{revision}.yaml").read_text())
    required = set(wanted["server"])
    optional = {row["scenario"]: row["reason"] for row in wanted["not_scored"] if row["leg"] == "server"}
    told, status = run_suite(place, url, revision)
    good = {name for name in required if is_good(told.get(name))}
    wrong = (required - absent - good) | (absent & good)
    say(f"\n{revision}: {len(good)} of {len(required)} required scenarios passed, {sum_of(told, required)}")
    for name in sorted(required - good):
        say(f"  required   {name}: {told.get(name, 'did not run')}")
    for name, reason in optional.items():
        failed = bool(told.get(name, {"FAILURE": 1}).get("FAILURE"))
        word = "failed," if failed else "passed" if is_good(told[name]) else "found nothing to check"
        say(f"  {reason:<10} {name}: {word} {OPTIONAL.get(name, '')}".rstrip())
        wrong |= {name} if failed != (name in OPTIONAL) else set()
    if (status == 0) != (not any(told.get(name, {}).get("FAILURE") for name in required)):
        wrong.add(f"exit status {status}")
    return wrong


def sum_of(told, names):
    checks = [told[name] for name in names if name in told]
    return f"{sum(found.get('SUCCESS', 0) for found in checks)} checks"


def say(words):
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main(place):
    os.environ["NO_COLOR"] = "1"
    with stage("sessions") as url:
        wrong = {revision: judge(place, revision, url) for revision in REVISIONS}
    say("\nAs shipped, without sessions:")
    with stage() as url:
        wrong["as shipped"] = judge(place, "2025-11-25", url, absent=NEEDS_SESSIONS)
    wrong["inspector"] = set()
    for way, trouble in inspector.call_everything(node_of(place), place).items():
        say(f"\nThe Inspector over {way}: {trouble or 'every tool is listed and called'}")
        wrong["inspector"] |= trouble
    say("")
    for part, names in wrong.items():
        say(f"{part}: {'; '.join(sorted(names)) if names else 'as it should be'}")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
