"""Verbs for reservations: paths from the current folder, exit statuses, and a command that runs under them."""

import signal
import sys

import pytest

from tests.cli.shell import Shell, until
from tests.cli.test_run import SLEEP, finish, is_gone, python, started


@pytest.fixture
def space(job):
    """An unused space."""
    return f"space/{job}"


@pytest.fixture
def checkout(shell, space):
    """A shell in the folder `src` of a repository."""
    root = shell.home / "checkout"
    (root / "src" / "auth").mkdir(parents=True)
    (root / "docs").mkdir()
    (root / ".holdfast.toml").write_text(f'space = "{space}"\n')
    return Shell(shell.port, shell.key, root / "src", {"HOLDFAST_OWNER": "ann"})


def reserved(checkout, *words):
    """The answer to `reserve`, which must succeed."""
    result = checkout("reserve", *words, "-o", "json")
    assert result.status == 0, result.err
    return result.json


def test_paths_are_reserved_relative_to_the_root_and_folders_with_all_below(checkout, space):
    given = ["auth", "new/", "main.py", "../docs/", "./auth/../x.py", str(checkout.home / "y.py")]
    answer = reserved(checkout, *given)
    wanted = ["src/auth/", "src/new/", "src/main.py", "docs/", "src/x.py", "src/y.py"]
    assert (answer["space"], answer["owner"], answer["mode"]) == (space, "ann", "exclusive")
    assert sorted(answer["paths"]) == sorted(wanted)


def test_the_whole_repository_is_everything(checkout):
    assert reserved(checkout, "..")["paths"] == ["**"]


def test_a_pattern_is_relative_to_the_current_folder(checkout):
    result = checkout("reserve", "--shared", "**/*.py", "-o", "json")
    assert (result.json["paths"], result.json["mode"]) == (["src/**/*.py"], "shared")
    assert reserved(checkout, "--shared", "main.py")["paths"] == ["src/main.py"]


def test_a_link_to_a_folder_is_reserved_where_it_leads(checkout):
    (checkout.home / "link").symlink_to(checkout.home.parent / "docs")
    assert reserved(checkout, "--shared", "link/a.md")["paths"] == ["docs/a.md"]
    assert reserved(checkout, "--shared", "link")["paths"] == ["docs/"]


def test_the_root_is_the_top_folder_of_git_without_a_space_file(checkout, space):
    root = checkout.home.parent
    (root / ".holdfast.toml").unlink()
    (root / ".git").mkdir()
    assert reserved(checkout, "--space", space, "auth")["paths"] == ["src/auth/"]
    missing = checkout("reserve", "auth")
    assert (missing.status, "--space is required" in missing.err) == (2, True)


@pytest.mark.parametrize("path", ["../../elsewhere.py", "/etc/hosts", b"\xff.py"])
def test_a_path_that_cannot_be_in_the_repository_is_wrong_usage(checkout, path):
    words = [path.decode(errors="surrogateescape") if isinstance(path, bytes) else path]
    refused = checkout("reserve", *words)
    assert refused.status == 2
    assert "Traceback" not in refused.err


def test_held_files_are_status_1_and_show_who_holds_them(checkout):
    reserved(checkout, "auth", "--reason", "login")
    held = checkout("reserve", "auth/login.py", "other.py", "--owner", "bob", "-o", "json")
    assert (held.status, held.json["status"], held.json["conflicts"][0]["reason"]) == (1, "held", "login")
    assert "src/auth/login.py is held by ann (src/auth/)" in held.err
    assert checkout("reserve", "auth", "--owner", "bob", "-E", 42).status == 42
    assert checkout("reserve", "-n", "auth", *python("print('ran')")).status == 1
    free = checkout("reserve", "other.py", "--owner", "bob")
    assert free.status == 0


def test_a_reservation_is_renewed_extended_and_released(checkout):
    mine = reserved(checkout, "a.py", "b.py", "--ttl", 60)
    proof = ("--lease", mine["lease_id"])
    name = mine["reservation_id"]
    assert checkout("files", "heartbeat", name, *proof, "--ttl", 90, "-o", "json").json["ttl_seconds"] == 90
    assert sorted(checkout("files", "extend", name, "auth", *proof, "-o", "json").json["paths"])[1] == "src/auth/"
    others = reserved(checkout, "c.py", "--owner", "bob")
    assert checkout("files", "extend", name, "c.py", *proof).status == 1
    left = checkout("files", "release", name, *proof, "auth", "a.py", "-o", "json").json
    assert (left["status"], left["paths"]) == ("reserved", ["src/b.py"])
    assert checkout("files", "release", name, *proof).fields["status"] == "released"
    assert checkout("files", "release", name, "--lease", others["lease_id"]).status == 5
    assert checkout("files", "get", name).fields["status"] == "ended"
    assert checkout("files", "get", "00000000-0000-4000-8000-000000000000").status == 3
    forced = checkout("files", "force-release", others["reservation_id"], "--reason", "left")
    assert forced.fields["status"] == "released"
    assert checkout("files", "heartbeat", others["reservation_id"], "--lease", others["lease_id"]).status == 5
    assert "--lease is required" in checkout("files", "heartbeat", name).err


def test_reservations_are_listed_one_line_a_path(checkout, space):
    reserved(checkout, "auth", "main.py")
    reserved(checkout, "--shared", "../docs", "--owner", "bob")
    rows = [line.split("\t")[:4] for line in checkout("files", "ls").out.splitlines()]
    assert sorted(rows) == [
        [space, "docs/", "bob", "shared"],
        [space, "src/auth/", "ann", "exclusive"],
        [space, "src/main.py", "ann", "exclusive"],
    ]

    def paths(*words):
        return [line.split("\t")[1] for line in checkout("files", "ls", *words).out.splitlines()]

    assert paths("--owner", "bob") == ["docs/"]
    assert paths("--path", "auth/login.py") == ["src/auth/"]
    assert paths("--path", "nobody.py") == []
    assert paths("--space", "another/space") == []
    assert {"docs/", "src/auth/"} <= set(paths("--all-spaces", "--limit", 1000))
    assert len(checkout("files", "ls", "-o", "json").json["reservations"]) == 2


def test_check_files_is_status_9_if_another_owner_has_a_file(checkout):
    mine = reserved(checkout, "auth")
    inside = Shell(checkout.port, checkout.key, checkout.home, {"HOLDFAST_RESERVATION_LEASE": mine["lease_id"]})
    free = checkout("files", "check", "main.py", "gone.py")
    assert (free.status, free.out, free.err) == (0, "", "")
    assert inside("files", "check", "auth/a.py").status == 0
    assert checkout("files", "check", "auth/a.py", "--lease", mine["lease_id"]).status == 0
    denied = checkout("files", "check", "main.py", "auth/a.py")
    assert (denied.status, denied.out.split("\t")[:3]) == (9, ["src/auth/a.py", "ann", "exclusive"])
    assert "1 of 2 files" in denied.err
    assert checkout("files", "check", "auth/a.py", "-E", 2).status == 2
    document = checkout("files", "check", "main.py", "auth/a.py", "-o", "json").json
    assert [file["allowed"] for file in document["files"]] == [True, False]
    assert "is a folder" in checkout("files", "check", "auth").err


def test_more_files_than_one_request_takes_are_checked(checkout):
    reserved(checkout, "f1500")
    denied = checkout("files", "check", *(f"f{number}" for number in range(1501)), "-o", "json")
    assert (denied.status, len(denied.json["files"])) == (9, 1501)
    assert checkout("files", "check", *(f"f{number}" for number in range(1500))).status == 0


# -- while a command runs ----------------------------------------------------------------------------------------

SHOW = "import os, sys; print(*(os.environ[f'HOLDFAST_{n}'] for n in ('RESERVATION', 'RESERVATION_LEASE', 'TOKEN')))"


def test_the_command_runs_under_the_reservation_and_its_status_is_ours(checkout):
    ran = checkout("reserve", "auth", *python(f"{SHOW}; sys.exit(7)"))
    assert ran.status == 7, ran.err
    name, lease, token = ran.out.split()
    assert (len(lease), int(token) > 0) == (36, True)
    left = checkout("files", "get", name, "-o", "json").json
    assert (left["status"], left["ended"]["how"], left["paths"]) == ("ended", "released", ["src/auth/"])
    assert checkout("reserve", "auth", "--").status == 2


def test_a_job_can_run_under_a_reservation(checkout, job):
    program = [sys.executable, "-m", "holdfast"]
    inner = [*program, "run", job, "--", *program, "guard"]
    assert checkout("reserve", "auth", "--", *inner).status == 0
    assert checkout("run", job, "--", *program, "reserve", "auth", "--", *program, "guard").status == 0


@pytest.mark.waits(20)
def test_a_second_command_waits_for_the_first_one(checkout):
    first = checkout.start("reserve", "auth", *python(SLEEP))
    pid = started(first)
    second = checkout.start("reserve", "auth/login.py", "--owner", "bob", *python("print('ran')"))
    assert "waiting for src/auth/login.py, held by ann (src/auth/)" in second.stderr.readline()
    first.send_signal(signal.SIGTERM)
    assert finish(first)[0] == 128 + signal.SIGTERM
    assert finish(second)[:2] == (0, "ran\n")
    until(lambda: is_gone(pid))


@pytest.mark.waits(20)
def test_a_command_whose_reservation_is_taken_away_is_ended(checkout):
    first = checkout.start("reserve", "auth", "--ttl", "3", *python(SLEEP))
    pid = started(first)
    (row,) = checkout("files", "ls", "-o", "json").json["reservations"]
    checkout("files", "force-release", row["reservation_id"], "--reason", "needed")
    status, _, err = finish(first)
    assert (status, "the lease is lost" in err) == (5, True)
    assert is_gone(pid)
