"""`holdfast import …`: tasks from files, and the database of an OctoStore server."""

import json
import re
import shlex
import time
from pathlib import Path

import pytest

from holdfast.core.row import SECOND
from tests.imports.octostore_database import Database

PAGE = Path(__file__).parents[2] / "docs/guides/octostore.md"
TOKEN = "alice-token-0123456789abcdef"


@pytest.fixture
def octostore(tmp_path):
    """The file of a server that was stopped: one user, one held lock."""
    database = Database(tmp_path / "octostore.db", int(time.time()) * SECOND)
    database.lock("deploy", database.user("alice", TOKEN), 7)
    return database.close()


# -- tasks -------------------------------------------------------------------------------------------------------------


def test_tasks_are_created_once(shell, tmp_path):
    rows = [{"type": "imported", "uniqueKey": f"k{number}", "payload": {"n": number}} for number in range(3)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, [*rows, {"type": "a b"}, {"type": "imported"}])))
    dry = shell("import", "tasks", "tasks.jsonl", "--dry-run", "-o", "json")
    assert (dry.status, dry.json["created"], [line["line"] for line in dry.json["refused"]]) == (1, 4, [4])
    first = shell("import", "tasks", "tasks.jsonl", "-o", "json")
    assert (first.status, first.json["created"], first.json["existing"]) == (1, 4, 0)
    listed = shell("task", "ls", "--type", "imported", "-o", "json").json["tasks"]
    assert sorted(task.get("uniqueKey") or "" for task in listed) == ["", "k0", "k1", "k2"]
    claimed = shell("next", "imported", "-o", "json").json["task"]
    assert shell("task", "complete", claimed["id"], "--lease", claimed["leaseId"]).status == 0
    again = shell("import", "tasks", "tasks.jsonl")
    assert (again.status, again.out) == (1, "1 tasks created, 3 there already, 1 lines refused\n")
    assert "line 4: `type` must be" in again.err


def test_wrong_files_are_usage_errors(shell, tmp_path):
    (tmp_path / "tasks.csv").write_text("type,colour\nx,y\n")
    wrong = shell("import", "tasks", "tasks.csv")
    assert wrong.status == 2
    assert "tasks.csv: line 1: unknown columns: colour" in wrong.err
    assert "cannot read absent.csv" in shell("import", "tasks", "absent.csv", "--dry-run").err
    piped = shell("import", "tasks", "-", "--type", "t", "--dry-run", stdin='{"payload": {}}\n')
    assert (piped.status, piped.out) == (0, "1 tasks would be created, 0 lines refused; nothing was changed\n")


# -- OctoStore ---------------------------------------------------------------------------------------------------------


def test_a_dry_run_creates_no_store(shell, tmp_path, octostore):
    store = f"sqlite:///{tmp_path}/agents.db"
    dry = shell("import", "octostore", octostore, "--store", store, "--dry-run", "-o", "json")
    assert (dry.status, dry.json["imported"], dry.json["locks"], dry.json["users"]) == (0, False, 1, 1)
    assert not (tmp_path / "agents.db").exists()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_file_is_imported_into_either_database_once(request, shell, tmp_path, octostore, kind):
    store = f"sqlite:///{tmp_path}/agents.db"
    if kind == "postgres":
        store = request.getfixturevalue("new_postgres_database")()
    done = shell("import", "octostore", octostore, "--store", store)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == ["     1  users", "     1  held locks", "tokens continue after 1000"]
    again = shell("import", "octostore", octostore, "--store", store)
    assert again.status == 1
    assert "refused: lock deploy: the store has this name already" in again.err
    assert "no difference" in shell("verify", "--store", store).out


def test_what_is_no_octostore_file_is_refused(shell, tmp_path):
    (tmp_path / "x.db").write_text("x")
    assert shell("import", "octostore", "x.db", "--store", f"sqlite:///{tmp_path}/agents.db").status == 1
    assert not (tmp_path / "agents.db").exists()


def test_the_commands_of_the_guide_work_as_shown(shell, tmp_path, octostore):
    text = PAGE.read_text()
    imports, tasks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    shown = re.search(r"^```\n\n```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
    file, commands = re.fullmatch(r"cat > issues.csv <<'END'\n(.*?)END\n(.*)", tasks, re.DOTALL).groups()
    (tmp_path / "issues.csv").write_text(file)
    printed = ""
    for line in [*imports.splitlines(), *commands.splitlines()]:
        _, *words = shlex.split(line, comments=True)
        if words[0] == "serve":
            continue
        done = shell(*words)
        assert (done.status, done.err) == (0, ""), line
        printed += done.out if words[1] == "tasks" else ""
    assert printed == shown
