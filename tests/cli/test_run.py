"""Verb `run`: the command runs under the lease, and never longer."""

import errno
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from holdfast.client.errors import OutcomeUnknown
from holdfast.client.leases.clock import now
from holdfast.transport.cli.hold import child
from holdfast.transport.cli.hold.elect import _campaign
from holdfast.transport.cli.hold.renewal import Renewal
from holdfast.transport.cli.hold.supervisor import NOT_RUNNABLE, HeldLease, hold
from holdfast.transport.cli.long_wait import NO_LIMIT, call_until, is_granted
from tests.cli.shell import PROGRAM, Shell, until
from tests.compat.octostore.server import Server

pytestmark = pytest.mark.waits(20)

SAY = "import os, sys, time; print(os.getpid(), flush=True)"
SLEEP = f"{SAY}; [time.sleep(0.1) for _ in range(600)]"
"""Python runs the handler of a signal that comes right before a system call only after the call: so it is short."""
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"
PARENT = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True); import time; time.sleep(60)"


def python(program):
    return ["--", sys.executable, "-c", program]


def started(process):
    """The process id that the command printed."""
    return int(process.stdout.readline())


def is_gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def finish(process, seconds=20):
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


def test_the_command_runs_under_the_lease_and_its_status_is_ours(shell, job):
    program = "import os, sys; print(*(os.environ[f'HOLDFAST_{n}'] for n in ('JOB', 'TOKEN', 'LEASE', 'EXPIRES_AT')))"
    ran = shell("run", job, "--owner", "ann", *python(program + "; sys.exit(7)"))
    assert ran.status == 7
    name, token, lease, expires_at = ran.out.split()
    assert name == job
    assert int(token) > 0
    assert len(lease) == 36
    assert expires_at.endswith("Z")
    left = shell("owner", job, "-o", "json").json
    assert (left["status"], left["previous"]["outcome"]) == ("free", "released")


def test_a_job_that_is_done_is_not_run_again(shell, job):
    assert shell("run", job, "--done", "--done-for", "60", *python("print('did it')")).out == "did it\n"
    assert shell("owner", job, "-o", "json").json["status"] == "done"
    second = shell("run", job, *python("print('did it')"))
    assert (second.status, second.out) == (0, "")
    assert "is done since" in second.err
    assert shell("run", job, "--again", *python("print('once more')")).out == "once more\n"


def test_a_command_that_offers_the_job_leaves_it_to_who_accepts(shell, job):
    offer = f"import subprocess; print(subprocess.check_output({[*PROGRAM, 'offer', job, '-o', 'json']!r}, text=True))"
    ran = shell("run", job, "--owner", "giver", *python(offer))
    assert ran.status == 0, ran.err
    assert shell("owner", job, "-o", "json").json["owner"] == "giver"
    taken = shell("claim", job, "--owner", "taker", "--offer", ran.json["offer"], "-o", "json").json
    assert (taken["owner"], taken["previous"]["outcome"]) == ("taker", "handed_over")


def test_the_first_of_several_jobs_that_is_free_is_held(shell, job):
    names, program = f"{job}-a,{job}-b", "import os; print(os.environ['HOLDFAST_JOB'])"
    assert shell("claim", f"{job}-a", "--owner", "other").status == 0
    assert shell("run", "--any", names, *python(program)).out == f"{job}-b\n"
    assert shell("claim", "--any", names, "-o", "json").json["job_id"] == f"{job}-b"
    assert shell("run", "-n", "--any", names, *python(program)).status == 1


def test_a_command_that_fails_leaves_the_job_free(shell, job):
    assert shell("run", job, "--done", *python("import sys; sys.exit(3)")).status == 3
    left = shell("owner", job, "-o", "json").json
    assert (left["status"], left["previous"]["outcome"]) == ("free", "released")


def test_a_commands_own_flags_and_dashes_are_passed_on(shell, job):
    assert shell("run", job, "-n", "--", "printf", "%s,", "-w", "--", "-E").out == "-w,--,-E,"


def test_a_held_job_is_not_run(shell, job):
    shell("claim", job, "--owner", "ann")
    for words, status in ((["-n"], 1), (["-w", "0.2"], 1), (["-n", "-E", "9"], 9)):
        held = shell("run", job, *words, "--", "touch", "ran")
        assert held.status == status
        assert "held by ann" in held.err
    assert not (shell.home / "ran").exists()


def test_run_waits_until_the_job_is_free(shell, job):
    first = shell.start("run", job, "--owner", "ann", *python(SLEEP))
    started(first)
    second = shell.start("run", job, "--owner", "bob", "--ttl", 3, *python("import time; time.sleep(1); print('mine')"))
    assert "held by ann" in second.stderr.readline()
    time.sleep(3.5)  # longer than its lease will be, which must count from the grant
    first.send_signal(signal.SIGTERM)
    assert finish(first)[0] == 128 + signal.SIGTERM
    assert finish(second)[:2] == (0, "mine\n")


def test_heartbeats_keep_a_short_lease_and_only_its_end_frees_it(shell, job):
    running = shell.start("run", job, "--ttl", 3, "--", "sleep", 6)
    until(lambda: shell("owner", job, "-o", "json").json["status"] == "claimed")
    time.sleep(3.5)
    assert shell("claim", job, "--owner", "bob").status == 1
    assert finish(running)[0] == 0
    assert shell("claim", job, "--owner", "bob").status == 0


def test_a_lost_job_ends_the_command_and_its_children(shell, job):
    running = shell.start("run", job, "--ttl", 3, *python(PARENT))
    grandchild = started(running)
    shell("force-release", job, "--reason", "stuck")
    status, _, err = finish(running)
    assert status == 5
    assert "the lease is lost" in err
    until(lambda: is_gone(grandchild), 2)


def test_a_command_that_ignores_term_is_killed_before_the_lease_expires(shell, job, tmp_path):
    """Without a server no heartbeat succeeds: the command is dead before the TTL is over."""
    server = Server(f"sqlite:///{tmp_path}/gone.db", ROOT_KEY=shell.key).start()
    try:
        begun = time.monotonic()
        running = Shell(server.port, shell.key, shell.home).start("run", job, "--ttl", 4, *python(STUBBORN))
        child = started(running)
        server.kill()
        until(lambda: is_gone(child), 5)
        assert time.monotonic() - begun < 2 + 4, "counted from before the program had even started"
        status, _, err = finish(running)
        assert status == 5
        assert "no heartbeat was answered" in err
    finally:
        server.close()


def test_an_ended_command_does_not_wait_for_a_silent_server(shell, job, tmp_path):
    server = Server(f"sqlite:///{tmp_path}/mute.db", ROOT_KEY=shell.key).start()
    try:
        running = Shell(server.port, shell.key, shell.home).start("run", job, *python(SAY + "; time.sleep(1)"))
        started(running)
        server.kill()
        status, _, err = finish(running, 10)
        assert status == 0
        assert "not released" in err
    finally:
        server.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_forwarded_to_the_command(shell, job, number):
    program = f"import signal; signal.signal({int(number)}, lambda *_: sys.exit(33)); {SLEEP}"
    running = shell.start("run", job, *python("import sys; " + program))
    started(running)
    running.send_signal(number)
    assert finish(running)[0] == 33


def test_ignored_signals_stay_ignored(shell, job):
    """As under nohup."""
    ignoring = [
        "env",
        "--ignore-signal=HUP",
        sys.executable,
        "-m",
        "holdfast",
        "run",
        job,
        *python(SAY + "; time.sleep(2)"),
    ]
    running = subprocess.Popen(
        ignoring, env=shell.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    started(running)
    running.send_signal(signal.SIGHUP)
    assert finish(running)[0] == 0


def test_a_signal_ends_a_run_that_waits(shell, job):
    shell("claim", job, "--owner", "ann")
    waiting = shell.start("run", job, "--", "touch", "ran")
    waiting.stderr.readline()
    waiting.send_signal(signal.SIGTERM)
    assert finish(waiting)[0] == 128 + signal.SIGTERM
    assert not (shell.home / "ran").exists()


MISSED_SIGNAL = """
import os, signal, threading
from holdfast.transport.cli.hold.supervisor import Signals, Stopped
signals = Signals()
def signal_this_thread():
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
try:
    with signals.noticed():
        threading.Timer(0.3, signal_this_thread).start()
        os.read(os.pipe()[0], 1)
except Stopped as stopped:
    os._exit(stopped.status)
"""


def test_a_signal_that_interrupts_no_system_call_is_noticed():
    """As one that comes right before the call: here another thread gets it while the main thread waits."""
    waiting = subprocess.run([sys.executable, "-c", MISSED_SIGNAL], timeout=20, check=False)
    assert waiting.returncode == 128 + signal.SIGTERM


def test_the_command_and_its_children_die_with_a_killed_holdfast(shell, job):
    running = shell.start("run", job, *python(PARENT))
    grandchild = started(running)
    child = psutil.Process(grandchild).ppid()
    assert not is_gone(child)
    running.kill()
    finish(running)
    until(lambda: is_gone(child) and is_gone(grandchild), 5)


def test_the_kernel_alone_kills_the_command_of_a_killed_holdfast(shell, job):
    """Also if the watchdog was killed first."""
    running = shell.start("run", job, *python(SLEEP))
    child = started(running)
    for other in psutil.Process(running.pid).children():
        if other.pid != child:
            other.kill()
    running.kill()
    finish(running)
    until(lambda: is_gone(child), 5)


def test_a_command_that_cannot_be_watched_has_ended_before_its_lease_is_released(monkeypatch):
    def refuse(group):
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(child, "Watchdog", refuse)
    monkeypatch.setattr(child.subprocess, "Popen", started := Started(subprocess.Popen))
    at_release = []
    lease = HeldLease("x", 10.0, now(), {}, lambda _: 10.0, lambda _: at_release.append(is_gone(started.pid)))
    assert hold(lease, ["sleep", "60"], SimpleNamespace(child=None)) == NOT_RUNNABLE
    assert at_release == [True]


class Started:
    """Starts processes and keeps the id of the last one."""

    def __init__(self, start):
        self._start = start
        self.pid = 0

    def __call__(self, *arguments, **more):
        process = self._start(*arguments, **more)
        self.pid = process.pid
        return process


def test_an_answer_that_is_not_of_this_api_ends_no_heartbeats():
    """Such as that of a proxy, which has no `expires_in_seconds`."""
    heartbeats = []

    def renew(_):
        heartbeats.append(now())
        return {}["expires_in_seconds"] if len(heartbeats) == 1 else 1.0

    renewal = Renewal(renew, 1.0, now())
    renewal.start()
    try:
        until(lambda: len(heartbeats) > 1, 5)
        assert renewal.lost is None
    finally:
        renewal.stop()


class Answers:
    """A client with these answers; an exception is raised."""

    def __init__(self, *answers):
        self.left = list(answers)

    def call(self, operation, **arguments):
        answer = self.left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_wait_goes_on_after_a_lost_answer():
    """The server was there before: it is restarted, perhaps behind a proxy that accepts connections meanwhile."""
    client = Answers({"status": "held"}, OutcomeUnknown("no answer"), {"status": "claimed"})
    assert call_until(client, "claim_job", {}, NO_LIMIT, is_granted) == {"status": "claimed"}
    follower = {"status": "follower", "retry_after_ms": 1, "leader": {"candidate_id": "ann"}}
    client = Answers(follower, OutcomeUnknown("no answer"), {"status": "leader"})
    assert _campaign(client, {}, wait=True)[1] == {"status": "leader"}


def test_a_missing_program_is_127_and_the_job_is_free(shell, job):
    missing = shell("run", job, "--", "no-such-program-here")
    assert missing.status == 127
    assert shell("owner", job, "-o", "json").json["status"] == "free"


SHELL = """
import fcntl, os, signal, subprocess, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = subprocess.Popen(sys.argv[1:], process_group=0)
os.tcsetpgrp(0, job.pid)
while os.WIFSTOPPED(status := os.waitpid(job.pid, os.WUNTRACED)[1]):
    assert os.tcgetpgrp(0) == job.pid, "the stopped process has the terminal"
    os.tcsetpgrp(0, os.getpgrp())
    print("stopped", flush=True)
    sys.stdin.readline()
    os.tcsetpgrp(0, job.pid)
    os.killpg(job.pid, signal.SIGCONT)
print("ended", os.waitstatus_to_exitcode(status), flush=True)
"""
"""As much of a shell's job control as a test needs."""


def test_the_command_has_the_terminal(shell, job):
    """Ctrl-Z stops both, `fg` wakes both, Ctrl-C reaches the command alone, and `holdfast` exits with its status."""
    here, there = os.openpty()
    program = "signal.signal(signal.SIGINT, lambda *_: sys.exit(21)); print('ready', flush=True); time.sleep(60)"
    words = [sys.executable, "-m", "holdfast", "run", job, *python("import signal, sys, time; " + program)]
    running = subprocess.Popen(
        [sys.executable, "-c", SHELL, *words],
        env=shell.environment, stdin=there, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stdout.readline() == "ready\n"
    command = os.tcgetpgrp(here)
    os.write(here, b"\x1a")
    assert running.stdout.readline() == "stopped\n"
    assert psutil.Process(command).status() == psutil.STATUS_STOPPED
    assert shell("owner", job, "-o", "json").json["status"] == "claimed"
    os.write(here, b"fg\n")
    until(lambda: os.tcgetpgrp(here) == command and psutil.Process(command).status() != psutil.STATUS_STOPPED)
    os.write(here, b"\x03")
    assert running.communicate(timeout=10) == ("ended 21\n", "")
    os.close(here)
    os.close(there)
