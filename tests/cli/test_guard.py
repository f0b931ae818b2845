"""`guard` and `hook`: another agent's file is refused in every form, one's own is allowed."""

import json
import os
import subprocess
import sys

import platformdirs
import pytest

from holdfast.client.lease_memory import JOB
from holdfast.operations import bounds
from holdfast.operations.table import OPERATIONS
from holdfast.transport.cli.hooks import claims, window
from holdfast.transport.cli.hooks.events import Hook, answer_event
from holdfast.transport.cli.hooks.payload import Payload
from holdfast.transport.cli.hooks.server import ROUTES
from holdfast.transport.cli.hooks.window import window_owner
from holdfast.transport.cli.hosts.host import END
from holdfast.transport.cli.hosts.table import CLAUDE_ANSWER, HOSTS
from holdfast.user_folders import state_folder
from tests.cli.shell import PROGRAM, Shell
from tests.cli.test_hosts import git
from tests.compat.octostore.server import free_port


@pytest.fixture
def folder(shell, job):
    """A repository with a space of its own."""
    folder = shell.home / "shared"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / ".holdfast.toml").write_text(f'space = "{job}"\n')
    return folder


@pytest.fixture
def agents(shell, folder):
    """Two agents that work in one repository."""
    return tuple(Shell(shell.port, shell.key, folder, {"HOLDFAST_OWNER": name}) for name in ("agent-a", "agent-b"))


def edit(shell, path, **more):
    """The JSON that Claude Code writes before it changes a file."""
    call = {"tool_name": "Edit", "tool_input": {"file_path": str(shell.home / path), "old_string": "a"}}
    base = {"session_id": "s-1", "cwd": str(shell.home), "hook_event_name": "PreToolUse"}
    return json.dumps(base | call | more)


def test_another_agents_file_is_refused_by_paths_hook_and_commit_and_ones_own_is_allowed(agents, folder):
    a, b = agents
    assert a("reserve", "src/", "--reason", "fix it").status == 0
    assert b("reserve", "docs/b.md").status == 0
    assert b("claim", "names/üb er.md").status == 0
    allowed = b("guard", "docs/b.md", "free.py", "names/üb er.md")
    assert (allowed.status, allowed.out, allowed.err) == (0, "", "")
    refused = b("guard", "free.py", "src/a.py")
    assert refused.status == 9
    assert 'src/a.py is reserved by "agent-a" until 20' in refused.err
    assert 'for "fix it"' in refused.err
    assert "free.py" not in refused.err
    assert b("guard", "src/a.py", "-E", 3).status == 3
    assert a("guard", "src/a.py").status == 0
    held = a("guard", "names/üb er.md")
    assert (held.status, 'is a job that is held by "agent-b"' in held.err) == (9, True)
    running = shell_of_run(b)
    assert running("guard", "c.py", "d.py", "--owner", "other").status == 0, "what `run` and `reserve` hold around it"
    many = [f"f{number}.py" for number in range(6)]
    assert a("guard", *many, "names/üb er.md").status == 9, "more than a few files"
    assert b("guard", *many, "names/üb er.md").status == 0

    by_hook = b("guard", stdin=edit(b, "src/a.py"))
    assert by_hook.status == 2
    answer = by_hook.json["hookSpecificOutput"]
    assert (answer["hookEventName"], answer["permissionDecision"]) == ("PreToolUse", "deny")
    assert '"agent-a" until' in answer["permissionDecisionReason"]
    assert '"agent-a" until' in by_hook.err
    for path in ("docs/b.md", "free.py", "../outside.py"):
        for words in (["guard"], ["hook", "claude-code", "PreToolUse"]):
            well = b(*words, stdin=edit(b, path))
            assert (well.status, well.out, well.err) == (0, "", "")
    nobody = Shell(b.port, b.key, b.home)
    assert nobody("guard", stdin=edit(b, "docs/b.md")).status == 2
    assert nobody("guard", "--owner", "agent-b", stdin=edit(b, "docs/b.md")).status == 0
    assert b("guard", stdin=edit(b, "src/a.py", tool_name="Read")).status == 0

    pre_commit = folder / ".git/hooks/pre-commit"
    pre_commit.write_text(f"#!/bin/sh\nexec {' '.join(PROGRAM)} guard --staged\n")
    pre_commit.chmod(0o755)
    (folder / "src/a.py").write_text("x")
    assert "agent-a" in committed(b, folder, "src/a.py")
    git(folder, "rm", "-q", "--cached", "src/a.py")
    (folder / "free.py").write_text("x")
    (folder / "odd\x01name").write_text("x")
    git(folder, "add", "odd\x01name")
    assert committed(b, folder, "free.py") == ""


def shell_of_run(shell):
    """The environment of a command under `holdfast reserve c.py -- holdfast run d.py --`."""
    files = shell("reserve", "c.py", "-o", "json").json
    job = shell("claim", "d.py", "-o", "json").json
    held = {"HOLDFAST_RESERVATION": files["reservation_id"], "HOLDFAST_RESERVATION_LEASE": files["lease_id"]}
    held |= {"HOLDFAST_JOB": job["job_id"], "HOLDFAST_LEASE": job["lease_id"]}
    return Shell(shell.port, shell.key, shell.home, held)


def committed(shell, folder, path):
    """What git prints about a commit that fails; empty if it succeeds."""
    git(folder, "add", path)
    command = ["git", "-C", str(folder), "-c", "user.name=b", "-c", "user.email=b@example.org", "commit", "-qm", "x"]
    ran = subprocess.run(command, env=shell.environment, capture_output=True, text=True, check=False)
    return ran.stderr if ran.returncode else ""


def test_claims_can_be_required_and_an_unreachable_server_refuses_only_if_told(agents):
    a, _ = agents
    unclaimed = a("guard", "--require-claim", "x.py")
    assert (unclaimed.status, "not claimed by you" in unclaimed.err) == (9, True)
    a("reserve", "x.py")
    a("claim", "y.py")
    assert a("guard", "--require-claim", "x.py", "y.py").status == 0
    offline = Shell(free_port(), a.key, a.home)
    for words, given in ((["x.py"], ""), ([], edit(a, "x.py"))):
        warned = offline("guard", *words, stdin=given)
        assert (warned.status, "no answer" in warned.err) == (0, True)
        refused = offline("guard", *words, "--if-unreachable", "refuse", stdin=given)
        assert (refused.status, "no answer" in refused.err) == (2 if given else 7, True)
    for given in ("", "{", "[]"):
        assert a("guard", stdin=given).status == 2
    assert a("guard", "x", "y", "--lease", "z").status == 2


# -- hooks -------------------------------------------------------------------------------------------------------


def hook(shell, event, host="claude-code", **fields):
    base = {"session_id": "s-1", "cwd": str(shell.home), "hook_event_name": event}
    return shell("hook", host, event, stdin=json.dumps(base | fields))


def granted(answer):
    """What Claude Code passes on of an MCP tool's answer."""
    return {
        "tool_name": "mcp__holdfast__reserve_files",
        "tool_response": [{"type": "text", "text": json.dumps(answer)}],
    }


def test_a_session_is_primed_guarded_renewed_and_released(agents, shell, folder, job):
    a = Shell(shell.port, shell.key, folder, {"CLAUDE_ENV_FILE": str(shell.home / "env")})
    other = Shell(shell.port, shell.key, folder, {"HOLDFAST_OWNER": "agent-b"})
    other("reserve", "theirs/")
    files = shell("reserve", "--space", job, "mine/", "--owner", "claude-code", "--ttl", 60, "-o", "json").json
    mine = {"tool_name": "Write", "tool_input": {"file_path": str(folder / "mine/x.py")}}
    refused = hook(a, "PreToolUse", **mine).json["hookSpecificOutput"]
    assert refused["permissionDecision"] == "deny", "nothing says that it is this window's"
    assert hook(a, "PostToolUse", **granted(files)).out == ""
    assert hook(a, "PreToolUse", **mine).out == ""
    assert hook(a, "PreToolUse", session_id="s-2", **mine).json["hookSpecificOutput"]["permissionDecision"] == "deny"
    theirs = {"tool_name": "MultiEdit", "tool_input": {"file_path": "theirs/x.py"}}
    assert "agent-b" in hook(a, "PreToolUse", **theirs).out

    started = hook(a, "SessionStart", source="resume")
    text = started.json["hookSpecificOutput"]["additionalContext"]
    assert '"theirs/" by "agent-b" until' in text
    assert f'You still hold\n\n- reservation "{files["reservation_id"]}"' in text
    assert "`claim_job`" in text
    owner = window_owner("claude-code", "s-1")
    assert f"export HOLDFAST_OWNER={owner}\n" in (shell.home / "env").read_text()

    in_window = Shell(shell.port, shell.key, folder, {"HOLDFAST_OWNER": owner})
    for name in ("noted", "plain"):
        assert in_window("claim", f"{job}-{name}").status == 0
    in_window("heartbeat", f"{job}-noted", "--note", "half done", "--checkpoint", "[1]")
    assert hook(a, "Stop", last_assistant_message="I stopped at the parser.", transcript_path="/t").out == ""
    shown = {each["id"]: each for each in shell("mine", "--owner", owner, "-o", "json").json["held"]}
    assert (shown[f"{job}-noted"]["note"], shown[f"{job}-noted"]["checkpoint"]) == ("half done", [1])
    assert shown[f"{job}-plain"]["note"] == "(left by a hook) I stopped at the parser."
    assert shown[f"{job}-plain"]["checkpoint"]["transcript_path"] == "/t"

    assert hook(a, "SessionEnd", reason="logout").out == ""
    assert shell("mine", "--owner", owner).out == ""
    assert shell("files", "get", files["reservation_id"], "-o", "json").json["status"] == "ended"
    ended = shell("owner", f"{job}-plain", "-o", "json").json["previous"]
    assert (ended["outcome"], ended["note"].startswith("(left by a hook) ")) == ("released", True)
    assert hook(a, "PostToolUse").out == hook(a, "Stop").out == hook(a, "SessionEnd").out == ""


def test_tool_use_renews_what_is_due_and_forgets_what_was_lost(agents, shell, job):
    a, _ = agents
    owner = window_owner("agent-a", "s-1")
    in_window = Shell(shell.port, shell.key, a.home, {"HOLDFAST_OWNER": owner})
    for name in ("kept", "lost", "long"):
        in_window("claim", f"{job}-{name}", "--ttl", 3600 if name == "long" else 60)
    shell("force-release", f"{job}-lost", "--reason", "stuck")
    (file,) = [file for file in shell.home.rglob("agents/*.json") if owner in file.read_text()]
    document = json.loads(file.read_text())
    for key in ("kept", "lost"):
        document["held"][f"job:{job}-{key}"]["until"] -= 30
    file.write_text(json.dumps(document))
    long_before = document["held"][f"job:{job}-long"]
    hook(a, "PostToolUse", tool_name="Bash")
    held = json.loads(file.read_text())["held"]
    assert f"job:{job}-lost" not in held
    assert held[f"job:{job}-long"] == long_before, "less than a third of it is over"
    renewed = shell("events", "--kind", "lease.renewed", "-o", "json").out
    assert f"{job}-kept" in renewed
    assert f"{job}-long" not in renewed


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_every_host_is_refused_in_its_own_form_and_warned_if_no_server_answers(agents, host):
    a, b = agents
    a("reserve", "x.py")
    call = {"tool_name": "apply_patch", "tool_input": {"command": "*** Begin Patch\n*** Update File: x.py\n@@"}}
    event = next(event.name for event in host.hooks.events if event.kind == "before_tool")
    refused = hook(b, event, host.name, **call)
    assert refused.status == 0
    text = json.dumps(refused.json)
    assert '"deny"' in text
    assert "agent-a" in text
    known = {"claude": "permissionDecision", "gemini": "decision", "cursor": "permission"}
    assert known[host.hooks.answer] in text
    offline = Shell(free_port(), a.key, a.home)
    warned = hook(offline, event, host.name, **call)
    assert (warned.status, "no answer" in warned.out, '"deny"' in warned.out) == (0, True, False)


def test_a_hook_never_stops_an_agent_by_its_exit_status(shell):
    for words, given in (
        (["claude-code", "PreToolUse"], "{"),
        (["claude-code", "Unknown"], "{}"),
        (["emacs", "PreToolUse"], "{}"),
        (["claude-code", "PreToolUse", "--unknown"], "{}"),
        (["claude-code", "PreToolUse", "--key-file", "/none"], "{}"),
    ):
        assert shell("hook", *words, stdin=given).status == 1, words


@pytest.mark.parametrize(
    ("tool", "given", "paths"),
    [
        ("Write", {"file_path": "/r/a"}, ["/r/a"]),
        ("NotebookEdit", {"notebook_path": "a.ipynb"}, ["a.ipynb"]),
        ("multi_replace_string_in_file", {"replacements": [{"filePath": "a"}, {"filePath": "b"}]}, ["a", "b"]),
        ("editFiles", {"files": ["a", "b"]}, ["a", "b"]),
        ("apply_patch", {"input": "*** Add File: a b\n+x\n*** Delete File: c\n*** Move to: d"}, ["a b", "c", "d"]),
        ("write_file", json.dumps({"file_path": "a"}), ["a"]),
        ("Read", {"file_path": "a"}, []),
        ("Bash", {"command": "*** Add File: a"}, []),
        ("Write", None, []),
        ("Write", {"file_path": 5, "files": [None, 1, {}]}, []),
    ],
)
def test_the_files_that_a_tool_changes(tool, given, paths):
    assert Payload(json.dumps({"tool_name": tool, "tool_input": given})).edited_files() == paths


def test_routes_and_bounds_of_hooks_are_those_of_the_tables():
    paths = {each.name: (each.method, each.path) for each in OPERATIONS}
    for name, (method, path) in ROUTES.items():
        assert (method, path) == (paths[name][0], paths[name][1].replace("{job_id...}", "{id}")), name
    assert bounds.CHECKED_PATHS.most == claims.PATHS_PER_REQUEST
    assert bounds.CHECKED_LEASES.most == claims.LEASES_PER_REQUEST
    assert bounds.JOB_PAGE.most == claims.JOBS_PER_PAGE
    assert bounds.HEARTBEAT_LEASES.most == window.LEASES_PER_REQUEST


def test_the_state_folder_is_that_of_the_system(monkeypatch, tmp_path):
    for named in (str(tmp_path), "", " "):
        monkeypatch.setenv("XDG_STATE_HOME", named)
        assert state_folder() == platformdirs.user_state_path("holdfast") == state_folder("darwin")


def test_a_hook_imports_neither_the_client_nor_msgspec(tmp_path):
    """What a hook imports decides how long it takes: each of these libraries takes longer than the rest of it."""
    code = (
        'import io, sys; sys.stdin = io.StringIO(\'{"session_id": "s", "tool_name": "Write",'
        ' "tool_input": {"file_path": "x"}}\');'
        "from holdfast.transport.cli import main; main._main(['hook', 'claude-code', 'PreToolUse']);"
        "print(sorted({'msgspec', 'platformdirs', 'holdfast.client.client', 'asyncio'} & {*sys.modules}))"
    )
    environment = os.environ | {"HOLDFAST_URL": f"http://127.0.0.1:{free_port()}", "HOME": str(tmp_path)}
    environment["HOLDFAST_API_KEY"] = "x" * 24
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == "[]"


OPEN = {"until": "2027-01-01T00:00:00Z", "to": None}


class PagedServer:
    """A server with two pages of what the key holds; the second has the jobs of the window."""

    url = "http://paged"

    def __init__(self):
        self.released = []

    def call(self, operation, row_id="", **arguments):
        if operation == "release_job":
            self.released.append(row_id)
            return {}
        assert operation == "list_mine"
        if "cursor" not in arguments:
            return {"held": [], "nextCursor": "second"}
        return {
            "held": [{"kind": JOB, "id": "given", "offered": OPEN}, {"kind": JOB, "id": "kept"}],
            "nextCursor": None,
        }


def test_an_offered_job_outlives_its_session_however_much_the_key_holds(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    server = PagedServer()
    of_session = window.Window(server.url, "claude-code", "s-1")
    for name in ("given", "kept"):
        of_session.memories[0].remember(JOB, name, f"lease of {name}", 60)
    answer_event(END, Hook(CLAUDE_ANSWER, "SessionEnd", Payload("{}"), server, of_session))
    assert server.released == ["kept"]
