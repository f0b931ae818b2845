"""Verbs for sessions, elections and keys, and for the command line itself."""

import json
import sys

from holdfast.core.plan import DAY
from holdfast.store.sqlite import SqliteStore
from holdfast.transport.cli.help import overview, verb_help
from holdfast.transport.cli.table import VERBS
from tests.cli.shell import Shell, until
from tests.compat.octostore.server import free_port


def test_a_session_is_opened_resumed_and_closed(shell):
    opened = shell("session", "open", "ann", "--context", '{"step": 1}', "-o", "json").json
    (shell.home / "secret").write_text(opened["secret"])
    (shell.home / "secret").chmod(0o600)
    assert shell("session", "open", "ann").status == 1
    again = shell("session", "open", "ann", "--secret-file", "secret", "-o", "json").json
    assert again["generation"] == opened["generation"] + 1
    identity, lease = again["session_id"], again["lease_id"]
    assert shell("session", "heartbeat", identity, "--lease", opened["lease_id"]).status == 5
    assert shell("session", "context", identity, "--lease", lease, "--next-action", "rest").status == 0
    assert shell("session", "get", identity, "-o", "json").json["next_action"] == "rest"
    assert identity in shell("session", "ls").out
    assert shell("session", "close", identity, "--lease", lease).status == 0


def test_keys_are_created_listed_rotated_and_revoked(shell, job):
    made = shell("key", "create", "reader", "--scope", "read", "-o", "json").json
    reader = Shell(shell.port, made["apiKey"], shell.home)
    assert reader("owner", job).status == 0
    assert reader("claim", job).status == 4
    assert made["keyId"] in shell("key", "ls").out
    assert made["apiKey"] not in shell("key", "ls", "-o", "json").out
    newer = shell("key", "rotate", made["keyId"], "--grace", 0, "-o", "json").json
    assert Shell(shell.port, newer["apiKey"], shell.home)("owner", job).status == 0
    assert shell("key", "revoke", made["keyId"]).status == 0
    assert Shell(shell.port, newer["apiKey"], shell.home)("owner", job).status == 4


def test_webhooks_are_created_tested_paused_rotated_and_deleted(shell):
    made = shell(
        "webhook", "add", "https://hooks.invalid/x", "--event", "task.*", "--subject", "task:*", "-o", "json"
    ).json
    identity, secret = made["webhook_id"], made["secret"]
    assert (made["url"], made["events"]) == ("https://hooks.invalid/x", ["task.*"])
    assert identity in shell("webhook", "ls").out
    assert secret not in shell("webhook", "ls", "-o", "json").out
    assert shell("webhook", "pause", identity, "-o", "json").json["state"] == "paused"
    sent = shell("webhook", "test", identity, "-o", "json").json["delivery"]
    (shown,) = shell("webhook", "deliveries", identity, "--state", "pending", "-o", "json").json["deliveries"]
    assert (shown["seq"], shown["kind"]) == (sent["seq"], "webhook.test")
    assert shell("webhook", "resume", identity, "-o", "json").json["state"] == "active"
    assert shell("webhook", "rotate", identity, "--grace", 60, "-o", "json").json["secret"] != secret
    assert shell("webhook", "replay", identity, "-o", "json").json["replayed"] == 0
    assert shell("webhook", "add", "http://example.com/").status == 2
    assert shell("webhook", "rm", identity).status == 0
    assert shell("webhook", "rm", identity).status == 3


def test_one_leader_at_a_time(shell, server):
    election = server.anyone.post("/elections", {}).json["election_id"]
    program = "import os, time; print(os.environ['HOLDFAST_TOKEN'], flush=True); time.sleep(60)"
    words = ("elect", election, "--ttl", 5, "--candidate")
    first = shell.start(*words, "ann", "--", sys.executable, "-c", program)
    term = int(first.stdout.readline())
    assert shell(*words, "bob", "-n", "--", "true").status == 1
    second = shell.start(*words, "bob", "--", sys.executable, "-c", program)
    assert "following ann" in second.stderr.readline()
    first.terminate()
    first.communicate(timeout=10)
    assert int(second.stdout.readline()) > term
    second.terminate()
    second.communicate(timeout=10)
    until(lambda: server.anyone.get(f"/elections/{election}").json["status"] == "vacant")


def test_a_link_opens_the_dashboard(shell, server):
    printed = shell("dashboard")
    assert printed.status == 0
    address, _, secret = printed.out.strip().rpartition("/")
    assert address == f"http://127.0.0.1:{server.port}/ui/enter"
    assert "10 minutes" in printed.err
    link = shell("dashboard", "-o", "json").json
    assert link["url"].startswith(f"{address}/")
    assert secret not in link["url"]
    assert Shell(shell.port, "no-such-key-but-long-enough", shell.home)("dashboard").status == 4


def test_doctor_reports_every_problem(shell):
    well = shell("doctor")
    assert well.status == 0
    assert "BAD" not in well.out
    keyless = Shell(shell.port, None, shell.home)("doctor")
    assert keyless.status == 4
    assert "HOLDFAST_API_KEY" in keyless.out
    written = {"key": "the-key-of-another-store-0123456789", "written_by": "holdfast serve", "store": "/x.db"}
    file = shell.home / "config/holdfast/servers.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(0o600)
    file.write_text(json.dumps({f"http://127.0.0.1:{shell.port}": written}))
    try:
        stranger = Shell(shell.port, None, shell.home)("doctor")
    finally:
        file.unlink()
    assert (stranger.status, "it may be another user's" in stranger.out) == (4, True)
    unreachable = Shell(free_port(), shell.key, shell.home)("doctor", "-o", "json")
    assert unreachable.status == 7
    assert {finding["what"]: finding["ok"] for finding in unreachable.json} == {
        "program": True, "server": False, "store": False, "cli": True, "mcp": True, "python": True,
    }  # fmt: skip
    assert {finding.get("account", "unknown") for finding in unreachable.json} == {"unknown"}


def test_every_help_fits_a_screen():
    for text in (overview(), *map(verb_help, VERBS.values())):
        assert max(map(len, text.splitlines())) <= 120
        assert len(text.splitlines()) <= 50


def test_doctor_sets_the_clock_of_a_store_right(shell, tmp_path):
    path = tmp_path / "ahead.db"
    store = SqliteStore(path)
    store.open()
    with store.transaction() as transaction:
        transaction.set_clock(transaction.now + 3650 * DAY)
        transaction.execute("SELECT 1")  # a transaction without a statement of its own is not committed
    store.close()
    first, second = (shell("doctor", "--set-clock", "--store", f"sqlite:///{path}") for _ in range(2))
    assert (first.status, second.status) == (0, 0)
    assert "s ahead and is right now" in first.out
    assert "nothing was changed" in second.out
    assert shell("doctor", "--set-clock", "--store", f"sqlite:///{path}-none").status == 7
