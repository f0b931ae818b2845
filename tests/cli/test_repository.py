"""Verbs for agents in a repository."""

import json
import os
import pty
import shutil
import subprocess
import tomllib

import pytest

from holdfast.transport.cli.hosts.default_space import name_of
from tests.cli.shell import PROGRAM, Shell
from tests.compat.octostore.server import free_port

OTHERS = {"mcpServers": {"other": {"command": "x"}}, "more": 1}


def contents(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_init_writes_its_files_and_undo_restores_everything(shell):
    repository = shell.home / "repository"
    repository.mkdir()
    (repository / "AGENTS.md").write_text("# Ours\n\nBe kind.\n")
    (repository / ".mcp.json").write_text(json.dumps(OTHERS, indent=2) + "\n")
    before = contents(repository)
    written = shell("init", repository, "--yes", "--url", "https://holdfast.example")
    assert written.status == 0
    assert "+<!-- holdfast: begin -->" in written.out
    after = contents(repository)
    assert after["AGENTS.md"].startswith(before["AGENTS.md"])
    servers = json.loads(after[".mcp.json"])["mcpServers"]
    assert set(servers) == {"other", "holdfast"}
    assert servers["holdfast"]["args"] == ["mcp"]
    assert servers["holdfast"]["env"]["HOLDFAST_URL"] == "https://holdfast.example"
    assert servers["holdfast"]["env"]["HOLDFAST_OWNER"] == "claude-code"
    assert "`claim_job`" in after[".claude/skills/holdfast/SKILL.md"]
    assert "hook claude-code Stop --url https://holdfast.example" in after[".claude/settings.json"]
    assert shell.key not in json.dumps(after)
    again = shell("init", repository, "--yes", "--url", "https://holdfast.example")
    assert "nothing to change" in again.err
    assert shell("init", repository, "--yes", "--undo").status == 0
    assert contents(repository) == before


def test_init_in_an_empty_folder_leaves_nothing_behind_after_undo(shell):
    folder = shell.home / "empty"
    folder.mkdir()
    shell("init", folder, "--yes")
    assert set(contents(folder)) == {
        ".claude/settings.json",
        ".claude/skills/holdfast/SKILL.md",
        ".holdfast.toml",
        ".mcp.json",
        "AGENTS.md",
    }
    shell("init", folder, "--yes", "--undo")
    assert list(folder.iterdir()) == []


def space_in(folder):
    return tomllib.loads((folder / ".holdfast.toml").read_text())["space"]


def git(folder, *words):
    subprocess.run([shutil.which("git"), "-C", str(folder), *words], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("origin", "space"),
    [
        ("git@github.com:acme/shop.git", "acme/shop"),
        ("ssh://git@git.example:2222/acme/shop.git", "acme/shop"),
        ("https://user:secret@git.example/group/team/shop.git/", "group/team/shop"),
        ("/srv/git/shop.git", "shop"),
        ("file:///srv/git/shop.git", "shop"),
    ],
)
def test_the_space_is_named_like_origin(origin, space):
    assert name_of(origin) == space


def test_init_names_the_space_after_origin_and_else_after_the_folder(shell):
    folder = shell.home / "clone"
    below = folder / "packages" / "web"
    below.mkdir(parents=True)
    git(folder, "init")
    shell("init", folder, "--yes")
    assert space_in(folder) == "clone"
    shell("init", folder, "--yes", "--undo")
    git(folder, "remote", "add", "origin", "https://git.example/acme/shop.git")
    shell("init", below, "--yes")
    assert space_in(below) == "acme/shop/packages/web"
    shell("init", below, "--yes", "--undo")
    shell("init", folder, "--yes")
    assert space_in(folder) == "acme/shop"
    shell("init", below, "--yes")
    assert not (below / ".holdfast.toml").exists()


def test_init_leaves_a_space_that_somebody_chose(shell):
    folder = shell.home / "chosen"
    folder.mkdir()
    file = folder / ".holdfast.toml"
    file.write_text('space = "ours"\n')
    shell("init", folder, "--yes")
    assert file.read_text() == 'space = "ours"\n'
    shell("init", folder, "--yes", "--undo")
    assert file.read_text() == 'space = "ours"\n'
    file.write_text("[other]\nspace = 1\n")
    shell("init", folder, "--yes")
    assert tomllib.loads(file.read_text()) == {"space": "chosen", "other": {"space": 1}}
    shell("init", folder, "--yes", "--undo")
    assert file.read_text() == "[other]\nspace = 1\n"
    file.write_text("space =")
    refused = shell("init", folder, "--yes")
    assert (refused.status, "is not TOML" in refused.err, file.read_text()) == (2, True, "space =")


def test_init_asks_first(shell):
    folder = shell.home / "asked"
    folder.mkdir()
    refused = shell("init", folder)
    assert (refused.status, contents(folder)) == (2, {})
    for answer, written in ((b"n\n", False), (b"y\n", True)):
        here, there = pty.openpty()
        process = subprocess.Popen(
            [*PROGRAM, "init", str(folder)], env=shell.environment, stdin=there, stdout=subprocess.DEVNULL
        )
        os.write(here, answer)
        process.wait(20)
        os.close(here)
        os.close(there)
        assert bool(contents(folder)) == written


def test_init_changes_no_file_that_it_cannot_parse(shell):
    folder = shell.home / "odd"
    folder.mkdir()
    (folder / ".mcp.json").write_text("{ not json")
    refused = shell("init", folder, "--yes")
    assert refused.status == 2
    assert contents(folder) == {".mcp.json": "{ not json"}
    (folder / ".mcp.json").unlink()
    (folder / "AGENTS.md").symlink_to(shell.home / "elsewhere.md")
    assert shell("init", folder, "--yes").status == 2
    assert not (shell.home / "elsewhere.md").exists()


def test_prime_prints_the_rules_and_the_current_state(shell, job):
    shell("claim", job, "--owner", "ann\x1b[2J")
    shell("task", "create", "primed")
    primed = shell("prime")
    assert primed.status == 0
    assert "holdfast run NAME" in primed.out
    assert f'"{job}" by "ann\\x1b[2J"' in primed.out
    assert '"primed": 1 ready' in primed.out
    offline = Shell(free_port(), shell.key, shell.home)("prime")
    assert offline.status == 7
    assert "holdfast run NAME" in offline.out


def test_guard_prints_nothing_while_the_job_is_ours(shell, job):
    lease = shell("claim", job, "-o", "json").json["lease_id"]
    inside = Shell(shell.port, shell.key, shell.home, {"HOLDFAST_JOB": job, "HOLDFAST_LEASE": lease})
    well = inside("guard")
    assert (well.status, well.out, well.err) == (0, "", "")
    shell("release", job, "--lease", lease)
    lost = inside("guard", "-E", 2)
    assert lost.status == 2
    assert "stop work" in lost.err
    assert inside("guard").status == 5
    inside.port = free_port()
    assert inside("guard").status == 5
    assert shell("guard").status == 2


def test_top_shows_held_jobs_and_open_tasks(shell, job):
    shell("claim", job, "--owner", "ann")
    shell("task", "create", "topped")
    shown = shell("top").out
    assert f"{job}\tann\t" in shown
    assert "topped\t1\t0\t0" in shown
    assert shell("top", "-o", "json").json["queues"]
