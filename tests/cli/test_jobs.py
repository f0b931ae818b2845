"""Verbs for jobs, and what scripts rely on: exit statuses, plain output, messages on stderr."""

import json
import os
import pty
import subprocess
import time

import pytest

from holdfast.transport.cli.output import escape
from tests.cli.shell import PROGRAM, Shell
from tests.compat.octostore.server import free_port


def test_a_job_is_claimed_kept_and_released(shell, job):
    mine = shell("claim", job, "--owner", "ann", "--ttl", 60, "--metadata", '{"branch": "b"}', "-o", "json").json
    assert mine["status"] == "claimed"
    assert mine["metadata"] == {"branch": "b"}
    beat = shell("heartbeat", job, "--lease", mine["lease_id"], "--note", "half", "--progress", "[1, 2]")
    assert beat.status == 0
    shown = shell("owner", job).fields
    assert (shown["owner"], shown["note"], shown["progress"]) == ("ann", "half", "[1, 2]")
    assert job in [line.split("\t")[0] for line in shell("ls", "job/").out.splitlines()]
    assert shell("release", job, "--lease", mine["lease_id"], "--note", "done").status == 0
    left = shell("owner", job, "-o", "json").json
    assert (left["status"], left["previous"]["note"]) == ("free", "done")


def test_a_held_job_is_status_1_or_another_number(shell, job):
    shell("claim", job, "--owner", "ann")
    held = shell("claim", job, "--owner", "bob")
    assert held.status == 1
    assert held.fields["owner"] == "ann"
    assert shell("claim", job, "--owner", "bob", "-E", 42).status == 42


def test_an_offered_job_is_claimed_with_its_code(shell, job):
    lease = shell("claim", job, "--owner", "ann", "-o", "json").json["lease_id"]
    first = shell("offer", job, "--lease", lease, "--note", "half", "--expires", 60, "-o", "json").json
    assert shell("offer", job, "--lease", lease, "--withdraw").status == 0
    assert shell("claim", job, "--owner", "bob", "--offer", first["offer"]).status == 5
    code = shell("offer", job, "--lease", lease, "--note", "half").fields["offer"]
    assert "(to " not in shell("owner", job).out
    taken = shell("claim", job, "--owner", "bob", "--offer", code, "-o", "json").json
    assert (taken["owner"], taken["previous"]["note"]) == ("bob", "half")
    assert shell("release", job, "--lease", lease).status == 5
    assert shell("claim", f"{job},other", "--any", "--owner", "bob", "--offer", code).status == 2


def test_an_offered_task_is_claimed_with_its_code(shell, job):
    task = shell("task", "create", "handover", "-o", "json").json["id"]
    lease = shell("task", "claim", task, "-o", "json").json["leaseId"]
    code = shell("task", "offer", task, "--lease", lease, "--to", "nobody", "-o", "json").json["offer"]
    assert shell("task", "claim", task, "--offer", code).status == 4
    assert shell("task", "offer", task, "--lease", lease, "--withdraw").status == 0
    code = shell("task", "offer", task, "--lease", lease, "-o", "json").json["offer"]
    assert shell("task", "claim", task, "--worker", "bob", "--offer", code, "-o", "json").json["claimedBy"] == "bob"


def test_a_claim_waits_in_the_queue(shell, job):
    lease = shell("claim", job, "--owner", "ann", "-o", "json").json["lease_id"]
    waiting = shell.start("claim", job, "--owner", "bob", "-w", 20, "-o", "json")
    time.sleep(0.5)
    assert waiting.poll() is None
    shell("release", job, "--lease", lease)
    out, _ = waiting.communicate(timeout=10)
    assert waiting.returncode == 0
    assert json.loads(out)["owner"] == "bob"


def test_owner_and_lease_default_to_environment_variables(shell, job):
    lease = shell("claim", job, "-o", "json").json
    assert lease["owner"].startswith("tester@")
    inside = Shell(shell.port, shell.key, shell.home, {"HOLDFAST_LEASE": lease["lease_id"]})
    assert inside("heartbeat", job).status == 0
    assert inside("release", job).status == 0


def test_the_exit_status_shows_the_kind_of_error(shell, job):
    shell("claim", job, "--owner", "ann")
    unknown = "00000000-0000-4000-8000-000000000000"
    lost = shell("heartbeat", job, "--lease", unknown)
    assert (lost.status, lost.out) == (5, "")
    assert "lease_lost" in lost.err
    assert "next: " in lost.err
    assert shell("heartbeat", job, "--lease", "no-uuid").status == 2
    assert shell("force-release", job, "--reason", "stuck").status == 0
    assert shell("force-release", job, "--reason", "stuck").status == 3
    assert Shell(shell.port, None, shell.home)("owner", job).status == 4
    assert Shell(shell.port, "not-a-key-of-this-server-0000", shell.home)("owner", job).status == 4
    unreachable = Shell(free_port(), shell.key, shell.home)("owner", job)
    assert unreachable.status == 7
    assert "HOLDFAST_URL" in unreachable.err


@pytest.mark.parametrize("words", [["claim"], ["claim", "x", "--ttl", "soon"], ["fly"], [], ["force-release", "x"]])
def test_wrong_usage_is_status_2_with_a_message_on_stderr(shell, words):
    wrong = shell(*words)
    assert (wrong.status, wrong.out) == (2, "")
    assert "usage: holdfast" in wrong.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["clam", "x"], "did you mean 'claim'?"),
        (["jobs"], "did you mean 'ls'?"),
        (["start"], "did you mean 'serve'?"),
        (["run", "x", "./deploy.sh"], "unrecognized arguments: ./deploy.sh; write the command to run after --"),
        (["events", "--after", "1m"], "'1m' is not valid: expected a whole number"),
        (["claim", "x", "--wait", "long"], "'long' is not valid: expected seconds, or a duration"),
        (["release", "x"], "--lease is required"),
        (["heartbeat", "x", "--lease", ""], "lease_id"),
    ],
)
def test_messages_for_wrong_usage_are_helpful(shell, words, says):
    wrong = shell(*words)
    assert (wrong.status, wrong.out) == (2, "")
    assert says in wrong.err
    assert len(wrong.err.splitlines()) <= 3, "the reason stays on the screen"


def test_a_refusal_prints_its_reason_once(shell):
    refused = shell("claim", "no//job").err
    assert refused.count("between slashes") == 1


def test_a_refusal_as_json_is_the_servers_own_document(shell, job):
    lost = shell("release", job, "--lease", "00000000-0000-4000-8000-000000000000", "-o", "json")
    assert lost.status == 5
    assert lost.json["error"] == "lease_lost"


def test_the_key_may_be_in_a_private_file(shell, job):
    keyless = Shell(shell.port, None, shell.home)
    file = shell.home / "key"
    file.write_text(f"{shell.key}\n")
    file.chmod(0o644)
    open_to_all = keyless("owner", job, "--key-file", file)
    assert open_to_all.status == 2
    assert "chmod 600" in open_to_all.err
    file.chmod(0o600)
    assert keyless("owner", job, "--key-file", file).status == 0
    assert keyless("owner", job, "--key-file", "-", stdin=f"{shell.key}\n").status == 0


def test_a_key_is_not_sent_over_plain_http_to_another_machine(shell, job):
    refused = shell("owner", job, "--url", "http://192.0.2.1:7700")
    assert refused.status == 2
    assert "https" in refused.err


def test_text_by_agents_cannot_move_the_terminal_cursor(shell, job):
    evil = "a\x1b[2J\x9b\u202e\nrm -rf\t\x7f"
    shell("claim", job, "--owner", evil)
    for output in ("text", "json"):
        shown = shell("owner", job, "-o", output).out
        assert not any(character in shown.replace("\n", "").replace("\t", "") for character in "\x1b\x9b\u202e\x7f")
    assert shell("owner", job).fields["owner"] == escape(evil)
    assert shell("owner", job, "-o", "json").json["owner"] == evil
    assert escape("\\x1b") != escape("\x1b")


def on_a_terminal(shell, *words, **environment):
    """Run a verb on a pseudo-terminal; its output."""
    here, there = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *words], env=shell.environment | {"TERM": "xterm"} | environment, stdout=there, stderr=there
    )
    process.wait(20)
    os.close(there)
    shown = b""
    try:
        while part := os.read(here, 4096):
            shown += part
    except OSError:
        pass  # the terminal is closed
    os.close(here)
    return shown.decode()


def test_terminals_get_columns_and_bold_scripts_get_tabs(shell, job):
    shell("claim", job, "--owner", "ann")
    seen = on_a_terminal(shell, "ls", job)
    assert "\x1b[1mjob_id" in seen
    plain = on_a_terminal(shell, "ls", job, NO_COLOR="1")
    assert "\x1b" not in plain
    assert plain.splitlines()[0].split() == ["job_id", "owner", "expires", "note", "waiting"]
    assert shell("ls", job).out.split("\t")[:2] == [job, "ann"]
