"""Every command that a page, a hint or the help shows works as it is shown."""

import re
import shlex
from importlib import resources
from pathlib import Path

import pytest

from holdfast.settings import Settings
from holdfast.transport.cli.commands.serve import _print_addresses, own_command
from holdfast.transport.cli.main import read_arguments
from holdfast.transport.cli.manual import manual
from holdfast.transport.cli.table import find_verb
from tests.cli.shell import until

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
SOURCES = sorted(ROOT.glob("src/holdfast/**/*.py"))
INLINE = re.compile(r"`(holdfast [a-z][^`]*)`")
WORDS = {"SECONDS": "1", "DURATION": "5m"}
"""Values for placeholders that must be numbers."""
VALUED = {"--store"}
"""Flags that are mentioned without the value that they take."""


def dashboard_commands():
    """The commands on the dashboard's empty pages, by page."""
    templates = resources.files("holdfast.transport.dashboard") / "templates"
    found = {}
    for template in sorted(templates.iterdir(), key=lambda each: each.name):
        shown = re.findall(r'command\("[a-z-]+", "(holdfast (?:[^"\\]|\\.)*)"', template.read_text())
        if shown:
            found[template.name] = [command.replace('\\"', '"') for command in shown]
    return found


def sh_commands(text):
    """The lines of blocks that call `holdfast`."""
    blocks = re.findall(r"^```(?:sh)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("holdfast ")]


def run(shell, command):
    """Run a shown command as it is, but a command under a lease ends at once."""
    words = shlex.split(command, comments=True)[1:]
    if "--" in words:
        words = [*words[: words.index("--") + 1], "true"]
    if "--follow" in words:
        follow(shell, words)
        return
    result = shell(*words)
    assert result.status == 0, (command, result.err)


def follow(shell, words):
    """Start a command that runs until it is stopped, and stop it after its first line."""
    printed = shell.home / "printed"
    with printed.open("w") as out:
        running = shell.start(*words, stdout=out)
        try:
            until(lambda: shell("task", "create", "followed").status == 0 and printed.read_text())
        finally:
            running.terminate()
            running.communicate(timeout=20)


DASHBOARD = [pytest.param(commands, id=page) for page, commands in dashboard_commands().items()]


@pytest.mark.parametrize("commands", DASHBOARD)
def test_the_commands_of_an_empty_page_of_the_dashboard_work_in_their_order(shell, commands):
    for command in commands:
        run(shell, command)


def test_the_dashboard_shows_commands_on_these_pages():
    pages = {"agents", "elections", "events", "jobs", "now", "sign-in", "tasks", "webhooks"}
    assert {name.removesuffix(".html") for name in dashboard_commands()} >= pages


@pytest.mark.parametrize("text", [manual(), (ROOT / "docs/guides/webhooks.md").read_text()], ids=["cli", "webhooks"])
def test_the_commands_in_the_blocks_of_these_pages_work(shell, text):
    commands = sh_commands(text)
    assert commands
    for command in commands:
        run(shell, command)


def test_the_steps_of_the_instructions_for_agents_work(shell, job):
    """The commands that `holdfast init` writes, with the ids that the earlier ones print."""
    lease = shell("claim", job, "-o", "json").json["lease_id"]
    run(shell, f"holdfast heartbeat {job} --lease {lease}")
    run(shell, f"holdfast release {job} --lease {lease} --note 'half done'")
    files = shell("reserve", "--space", job, "src/auth/", "-o", "json").json
    for verb in ("heartbeat", "release"):
        run(shell, f"holdfast files {verb} {files['reservation_id']} --lease {files['lease_id']}")
    for verb in ("complete ID --lease LEASE", "fail ID --lease LEASE --reason broken"):
        run(shell, "holdfast task create instructions")
        task = shell("next", "instructions", "-o", "json").json
        run(shell, f"holdfast task {verb}".replace("ID", task["id"]).replace("LEASE", task["leaseId"]))


def test_a_server_names_its_program_as_the_shell_finds_it(monkeypatch, tmp_path):
    """`make run` installs into .venv, which is on nobody's PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert own_command(".venv/bin/holdfast") == ".venv/bin/holdfast"
    assert own_command("/src/holdfast/__main__.py") == "holdfast"
    (tmp_path / "holdfast").touch(0o755)
    assert own_command(".venv/bin/holdfast") == "holdfast"


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        (Settings(), ""),
        (Settings(host="0.0.0.0"), ""),
        (Settings(port=7701), " --url http://127.0.0.1:7701"),
        (Settings(host="::", port=7701), " --url http://[::1]:7701"),
        (Settings(port=7701, public_url="https://h.example"), " --url http://127.0.0.1:7701"),
    ],
)
def test_a_server_shows_commands_that_reach_it(settings, flag, capsys):
    _print_addresses(settings, None, "on this machine need nothing", None)
    shown = capsys.readouterr().err
    assert f"`holdfast dashboard{flag}`" in shown
    assert f"  try    holdfast claim hello{flag}\n" in shown, "with the key of this machine"
    _print_addresses(settings, None, None, None)
    assert "Bearer $HOLDFAST_API_KEY" in capsys.readouterr().err, "this machine has no key"


def mentioned_commands():
    """(file, command) for every `holdfast …` in the pages and in the texts of the program."""
    for path in [*PAGES, *SOURCES]:
        text = re.sub(r"\n\s*", " ", path.read_text()) if path.suffix == ".md" else path.read_text()
        yield from ((path.relative_to(ROOT), command) for command in INLINE.findall(text))


def test_every_command_that_is_mentioned_exists_with_its_flags():
    found = list(mentioned_commands())
    assert len(found) > 50
    for path, command in found:
        words = [WORDS.get(word, word) for word in shlex.split(command.partition(" …")[0])[1:]]
        verb, rest = find_verb(words)
        assert verb is not None, (path, command)
        if rest:  # without any it is the name of the verb
            read_arguments(verb, [*rest, "value"] if rest[-1].startswith("--") and rest[-1] in VALUED else rest)
