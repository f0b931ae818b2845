"""`holdfast backup`, `restore` and `migrate` on the command line."""

import os
import subprocess

import pytest

from tests.cli.conftest import ROOT_KEY
from tests.cli.shell import PROGRAM, Shell
from tests.compat.octostore.server import Server


@pytest.fixture(scope="module")
def backup(server, tmp_path_factory):
    """A backup of the served store, and the output of the verb."""
    folder = tmp_path_factory.mktemp("backup")
    shell = Shell(server.port, ROOT_KEY, folder)
    shell("claim", "before/the/backup", "--owner", "ann", "--ttl", 600)
    taken = shell("backup", "b", "--store", server.store, "-o", "json")
    assert taken.status == 0, taken.err
    return folder / "b", taken.json


def test_a_backup_prints_its_contents_and_overwrites_no_file(backup, server, shell):
    file, answer = backup
    assert answer["counts"]["leases"] >= 1
    assert answer["bytes"] == file.stat().st_size
    assert answer["taken_at"].endswith("Z")
    again = shell("backup", file, "--store", server.store)
    assert again.status == 1
    assert "--replace" in again.err
    assert shell("backup", file, "--replace", "--store", server.store).fields["source"] == "sqlite"


def test_a_store_is_not_replaced_while_it_is_served(backup, server, shell):
    refused = shell("restore", backup[0], "--to", server.store, "--replace")
    assert refused.status == 1
    assert "in use: stop its server" in refused.err
    assert shell("owner", "before/the/backup").status == 0


def test_a_restored_store_is_served_and_events_prints_the_end_of_its_log(backup, shell, tmp_path):
    store = f"sqlite:///{tmp_path}/new.db"
    done = shell("restore", backup[0], "--to", store, "-o", "json")
    assert done.status == 0, done.err
    server = Server(store, ROOT_KEY=ROOT_KEY).start()
    try:
        there = Shell(server.port, ROOT_KEY, tmp_path)
        assert done.json["leases_ended"] >= 1
        assert there("claim", "before/the/backup", "--owner", "bea", "-o", "json").json["status"] == "held"
        assert there("claim", "after/it", "-o", "json").json["token"] == done.json["tokens_after"] + 1
        kinds = [line.split("\t")[2] for line in there("events").out.splitlines()]
        assert kinds[0] == "log.restored"
        assert kinds[-1] == "lease.claimed"
        lost = there("events", "--after", done.json["logs"]["default"] + 1)
        assert lost.status == 5
        assert "cursor_too_old" in lost.err
        foreign = there("events", "--after", 2**53)
        assert foreign.status == 5
        assert "cursor_ahead" in foreign.err
    finally:
        server.close()


def test_a_migration_needs_a_destination_and_prints_what_it_moved(backup, shell, tmp_path):
    assert shell("migrate").status == 2
    store = f"sqlite:///{tmp_path}/old.db"
    shell("restore", backup[0], "--to", store)
    moved = shell("migrate", "--store", store, "--to", f"sqlite:///{tmp_path}/new.db", "-o", "yaml")
    assert moved.status == 0, moved.err
    assert "records: " in moved.out
    assert shell("verify", "--store", f"sqlite:///{tmp_path}/new.db").status == 0
    nowhere = shell("migrate", "--store", store, "--to", "ftp://x")
    assert nowhere.status == 2
    assert "expected sqlite:///path.db" in nowhere.err


def test_a_terminal_shows_a_progress_bar(server, tmp_path):
    here, there = os.openpty()
    words = [*PROGRAM, "backup", str(tmp_path / "b"), "--store", server.store]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=there, timeout=60, check=False)
    os.close(there)
    with os.fdopen(here, "rb") as terminal:
        drawn = terminal.read1(1_000_000)
    assert done.returncode == 0
    assert b"copied [##############################] 100 %" in drawn
    assert drawn.endswith(b"\r\x1b[K"), "the bar is taken away again"
