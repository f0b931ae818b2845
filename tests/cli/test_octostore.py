"""OctoStore's `hold`, `status` and `watch`: takeovers, deadlines, exit statuses, and no printed secrets."""

import json
import re
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.cli.shell import Shell
from tests.cli.supervisor import Supervisor
from tests.compat.octostore.server import Server, bearer, free_port

pytestmark = pytest.mark.waits(30)

NOBODY_KNOWS = "a-token-that-this-server-never-saw"


@pytest.fixture
def lock(job):
    return job.replace("/", ".")


@pytest.fixture
def election(server):
    return server.anyone.post("/elections", {}).json["election_id"]


def hold_lock(shell, lock, *words, ttl=3):
    return Supervisor(shell.start("lock", "hold", lock, "--json", "--ttl", ttl, *words), "lock", lock)


def hold_election(shell, election, candidate):
    process = shell.start("election", "hold", election, "--json", "--ttl", 5, "--candidate", candidate)
    return Supervisor(process, "election", election, candidate)


def test_a_lock_passes_from_one_process_to_the_next(shell, lock):
    first = hold_lock(shell, lock)
    first.until("acquired")
    second = hold_lock(shell, lock)
    waiting = second.until("waiting")
    assert waiting["reason_code"] == "held"
    assert waiting["retry_after_ms"] > 0
    first.until("renewed")
    first.process.send_signal(signal.SIGTERM)
    assert first.until("released")["reason_code"] == "signal"
    assert first.end() == 143
    assert second.until("acquired")["term"] > first.term
    second.process.send_signal(signal.SIGINT)
    second.until("released")
    assert second.end() == 130


def test_a_dead_holders_lock_is_taken_over(shell, lock):
    first = hold_lock(shell, lock)
    first.until("acquired")
    second = hold_lock(shell, lock)
    second.until("waiting")
    first.process.kill()
    first.process.communicate()
    assert second.until("acquired")["term"] > first.term
    second.process.send_signal(signal.SIGTERM)
    second.until("released")
    assert second.end() == 143


def test_a_suspended_holder_exits_after_its_lease_expired_and_never_reacquires(shell, lock):
    first = hold_lock(shell, lock)
    first.until("acquired")
    first.process.send_signal(signal.SIGSTOP)
    second = hold_lock(shell, lock)
    assert second.until("acquired")["term"] > first.term
    first.process.send_signal(signal.SIGCONT)
    end = first.until("lost", "uncertain")
    assert end["term"] == first.term
    assert first.end() == 20
    second.process.send_signal(signal.SIGTERM)
    second.until("released")
    assert second.end() == 143


def test_a_lock_is_trusted_for_no_longer_than_its_session(shell, lock):
    holder = hold_lock(shell, lock, ttl=3600)
    acquired = holder.until("acquired")
    assert acquired["authority_remaining_ms"] <= 24_000, "four fifths of the session's thirty seconds"
    holder.process.terminate()
    holder.until("released")
    assert holder.end() == 143


def test_leadership_passes_from_one_process_to_the_next(shell, election):
    keyless = Shell(shell.port, None, shell.home)
    first = hold_election(keyless, election, "ann")
    leading = first.until("leader")
    assert leading["authority_remaining_ms"] <= 4000, "a fifth of the time to live is not trusted"
    second = hold_election(keyless, election, "bob")
    assert second.until("waiting")["reason_code"] == "follower"
    first.process.kill()
    first.process.communicate()
    assert second.until("leader")["term"] > first.term
    second.process.send_signal(signal.SIGTERM)
    second.until("released")
    assert second.end() == 143
    assert json.loads(keyless("election", "status", election, "--json").out)["status"] == "vacant"


def test_authority_ends_before_the_lease_if_the_server_is_unreachable(shell, lock, tmp_path):
    server = Server(f"sqlite:///{tmp_path}/gone.db", ROOT_KEY=shell.key).start()
    try:
        begun = time.monotonic()
        holder = hold_lock(Shell(server.port, shell.key, shell.home), lock, ttl=4)
        acquired = holder.until("acquired")
        server.kill()
        unsure = holder.until("uncertain")
        assert time.monotonic() - begun < 2 + 4, "counted from before the program had even started"
        assert (unsure["reason_code"], unsure["term"]) == ("renewal_deadline_exceeded", acquired["term"])
        assert holder.end() == 20
    finally:
        server.close()


def test_a_lock_that_was_taken_away_is_lost(shell, lock):
    holder = hold_lock(shell, lock, ttl=4)
    holder.until("acquired")
    assert shell("force-release", lock, "--reason", "stuck").status == 0
    assert holder.until("lost")["reason_code"] == "lease_not_current"
    assert holder.end() == 20


def test_a_hold_that_is_not_acquired_in_time_ends(shell, lock):
    holder = hold_lock(shell, lock)
    holder.until("acquired")
    for timeout in ("0", "500ms"):
        late = hold_lock(shell, lock, "--acquire-timeout", timeout)
        assert late.until("error")["reason_code"] == "acquire_timeout"
        assert late.end() == 11
    assert [event["event"] for event in late.events] == ["waiting", "error"]
    waiting = hold_lock(shell, lock)
    waiting.until("waiting")
    waiting.process.send_signal(signal.SIGINT)
    assert waiting.end() == 130
    holder.process.terminate()
    holder.until("released")
    holder.end()


def test_no_secret_is_printed(shell, server, lock):
    holder = hold_lock(shell, lock)
    holder.until("renewed")
    status = shell("lock", "status", lock, "--json").out
    assert list(json.loads(status)) == sorted(json.loads(status))
    holder.process.terminate()
    holder.until("released")
    printed = json.dumps(holder.events) + status
    assert shell.key not in printed
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}", json.dumps(holder.events)), "no lease, no session"
    holder.end()


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["lock", "hold", "x", "--ttl", "0"], 64, "1 to 3600"),
        (["lock", "hold", "x", "--connect-timeout", "0"], 64, "longer"),
        (["lock", "hold", "x", "--acquire-timeout", "25h"], 64, "at most one day"),
        (["election", "hold", "x", "--candidate", "@x"], 64, "candidate"),
        (["election", "hold", "x"], 64, "usage"),
        (["lock", "hold", "x", "--server", "http://192.0.2.1"], 64, "expose a secret"),
        (["lock", "status", "x", "--server", "https://u@h"], 64, "http"),
        (["lock", "hold", "__election/x", "--acquire-timeout", "5s"], 64, ""),
        (["lock", "status", "x", "--server", "http://127.0.0.1:1"], 70, "transport_error"),
        (["election", "hold", "no election", "--candidate", "ann"], 64, "invalid_input"),
        (["election", "status", "no election"], 70, "invalid_input"),
    ],
)
def test_statuses_of_wrong_usage_and_of_failures(shell, words, status, says):
    result = shell(*words)
    assert result.status == status
    assert says in result.out + result.err


def test_a_missing_or_unknown_token_is_refused(shell, lock):
    assert Shell(shell.port, None, shell.home)("lock", "hold", lock).status == 64
    stranger = Shell(shell.port, None, shell.home, {"OCTOSTORE_TOKEN": NOBODY_KNOWS})
    refused = stranger("lock", "hold", lock, "--json")
    assert refused.status == 70
    assert json.loads(refused.out)["reason_code"] == "authentication_failed"
    assert "OCTOSTORE_TOKEN_FILE" in refused.err
    (shell.home / "token").write_text(shell.key)
    (shell.home / "token").chmod(0o600)
    known = Shell(free_port(), None, shell.home, {"OCTOSTORE_TOKEN_FILE": "token"})
    known.more["OCTOSTORE_URL"] = f"http://127.0.0.1:{shell.port}"
    assert known("lock", "status", lock).fields["status"] == "free"


@pytest.mark.parametrize("fault", ["readable", "link", "empty", "two lines", "missing"])
def test_a_token_file_that_others_could_read_or_swap_is_refused(shell, lock, fault):
    token = shell.home / "token"
    token.write_text({"empty": " \n", "two lines": f"{shell.key}\nmore"}.get(fault, shell.key))
    token.chmod(0o640 if fault == "readable" else 0o600)
    if fault == "link":
        token = shell.home / "link"
        token.symlink_to("token")
    name = "absent" if fault == "missing" else token.name
    result = Shell(shell.port, None, shell.home, {"OCTOSTORE_TOKEN_FILE": name})("lock", "status", lock)
    assert (result.status, result.out) == (64, "")
    assert shell.key not in result.err


def test_a_token_may_come_from_stdin(shell, lock):
    piped = Shell(shell.port, None, shell.home, {"OCTOSTORE_TOKEN_FILE": "-"})
    assert piped("lock", "status", lock, stdin=f"{shell.key}\n").fields["status"] == "free"


def test_watching_a_lock_prints_its_holder(shell, lock):
    watching = shell.start("lock", "watch", lock, "--json")
    first = json.loads(watching.stdout.readline())
    assert list(first) == ["schema_version", "sequence", "event", "kind", "name", "server", "snapshot", "observed_at"]
    assert (first["kind"], first["name"], first["snapshot"]["status"]) == ("lock", lock, "free")
    holder = hold_lock(shell, lock)
    holder.until("acquired")
    second = json.loads(watching.stdout.readline())
    assert (second["sequence"], second["snapshot"]["status"]) == (2, "held")
    assert second["snapshot"]["fencing_token"] == holder.term
    for process in (watching, holder.process):
        process.terminate()
    watching.communicate()
    holder.until("released")
    holder.end()


def test_watching_prints_every_change(shell, election):
    watching = shell.start("election", "watch", election, "--json")
    first = json.loads(watching.stdout.readline())
    assert (first["sequence"], first["event"], first["snapshot"]["status"]) == (1, "snapshot", "vacant")
    leader = hold_election(shell, election, "ann")
    leader.until("leader")
    second = json.loads(watching.stdout.readline())
    assert second["snapshot"]["leader"]["candidate_id"] == "ann"
    watching.terminate()
    watching.communicate()
    leader.process.terminate()
    leader.until("released")
    leader.end()


def test_a_watch_continues_after_the_server_was_away(shell, lock, tmp_path):
    server = Server(f"sqlite:///{tmp_path}/away.db", ROOT_KEY=shell.key).start()
    beside = Shell(server.port, shell.key, shell.home)
    watching = beside.start("lock", "watch", lock, "--json")
    try:
        assert json.loads(watching.stdout.readline())["snapshot"]["status"] == "free"
        server.kill()
        server.start()
        assert bearer(server.port, shell.key).acquire(lock).status == 200
        event = json.loads(watching.stdout.readline())
        assert (event["sequence"], event["snapshot"]["status"]) == (2, "held")
    finally:
        watching.terminate()
        watching.communicate()
        server.close()


def test_without_json_events_are_lines_of_text(shell, election):
    created = shell("election", "create")
    assert created.fields["election_id"]
    process = shell.start("election", "hold", election, "--candidate", "ann")
    assert process.stdout.readline().startswith(f"election · {election} · leader · term=")
    process.terminate()
    process.communicate(timeout=10)


class Hostile(BaseHTTPRequestHandler):
    """Hostile server: echoes the token, sends too much data, or redirects to another address."""

    def do_GET(self):
        name = self.path.rsplit("/", 1)[1]
        if name == "watch":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b"data: " + b"x" * 70_000)
            return
        self.send_response(302 if name == "elsewhere" else 200)
        self.send_header("Location", "/locks/reflected")
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        token = self.headers["Authorization"].removeprefix("Bearer ")
        self.wfile.write(json.dumps({"status": token + "x" * (2**20 if name == "large" else 0)}).encode())

    def log_message(self, *_):
        pass


def test_a_hostile_server_gets_no_secret_and_cannot_print_one(shell):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    victim = Shell(server.server_port, shell.key, shell.home)
    try:
        for words in ([], ["--json"]):
            reflected = victim("lock", "status", "reflected", *words)
            assert reflected.status == 0
            assert "[REDACTED]" in reflected.out
            assert shell.key not in reflected.out + reflected.err
        assert victim("lock", "status", "elsewhere").status == 70
        large = victim("lock", "status", "large")
        assert large.status == 70
        assert "server response exceeded 1048576 bytes" in large.err
        endless = victim("lock", "watch", "endless")
        assert endless.status == 70
        assert "SSE frame exceeded 65536 bytes" in endless.err
    finally:
        server.shutdown()
        server.server_close()
