"""`init` for the hosts of coding agents: what it writes, and that undoing it restores every byte."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from holdfast.transport.cli.hosts import json_text
from holdfast.transport.cli.hosts.files import is_ours
from holdfast.transport.cli.hosts.host import BEFORE_TOOL
from holdfast.transport.cli.hosts.setup import files_of, hosts_in_use
from holdfast.transport.cli.hosts.table import HOSTS
from holdfast.transport.cli.verbs.agents import _HOST_NAMES

CHANGED_BEFORE = {
    "AGENTS.md": b"# Ours\n\nBe kind.",
    "CLAUDE.md": b"# C\r\nhi\r\n",
    "GEMINI.md": b"",
    ".mcp.json": b'{"mcpServers":{}}',
    ".claude/settings.json": b'{\n    // ours\n    "permissions": {"allow": ["Bash"]},\n    "hooks": {\n'
    b'        "Stop": [\n            {"hooks": []}\n        ]\n    },\n}\n',
    ".codex/config.toml": b"[features]\nx = true",
    ".cursor/hooks.json": b'{"version": 1, "hooks": {"stop": []}}',
    ".gemini/settings.json": b"\xef\xbb\xbf{ }",
    ".vscode/mcp.json": b'{\r\n\t"servers": {\r\n\t\t"x": {}\r\n\t}\r\n}',
    "opencode.jsonc": b"{}\n",
}


def git(folder, *words):
    ran = subprocess.run([shutil.which("git"), "-C", str(folder), *words], check=True, capture_output=True, text=True)
    return ran.stdout


@pytest.fixture
def repository(shell):
    """A repository with a commit."""
    folder = shell.home / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "README.md").write_text("# A\n")
    commit(folder)
    return folder


def commit(folder):
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "x")


def test_every_host_is_configured_and_undo_leaves_git_status_clean(shell, repository):
    for name, content in CHANGED_BEFORE.items():
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_bytes(content)
    (repository / "CLAUDE.md").chmod(0o755)
    commit(repository)
    assert shell("init", repository, "--yes", "--host", "all").status == 0
    for host in HOSTS:
        entry = servers(repository, host)["holdfast"]
        environment = entry.get("env") or entry["environment"]
        assert environment["HOLDFAST_OWNER"] == host.name
        hooks = (repository / host.hooks.path).read_text(encoding="utf-8-sig")
        for event in host.hooks.events:
            assert f"holdfast hook {host.name} {event.name}" in hooks or host.hooks.plugin
    settings = json_text.parse((repository / ".claude/settings.json").read_text())
    assert settings["permissions"] == {"allow": ["Bash"]}
    assert len(settings["hooks"]["Stop"]) == 2
    for name in ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".claude/skills/holdfast/SKILL.md"):
        assert "`claim_job`" in (repository / name).read_text()
        assert "holdfast claim" not in (repository / name).read_text(), "one way: MCP"
    before = git(repository, "status", "--porcelain")
    again = shell("init", repository, "--yes", "--host", "all")
    assert "nothing to change" in again.err
    assert git(repository, "status", "--porcelain") == before
    assert shell("init", repository, "--yes", "--undo").status == 0
    assert git(repository, "status", "--porcelain", "--ignored") == ""


@pytest.mark.parametrize("found", ["on the PATH", "in an active virtual environment", "elsewhere"])
def test_hosts_start_the_program_by_a_name_that_they_find_or_else_by_its_path(shell, repository, found):
    folder = shell.home / "bin"
    folder.mkdir()
    if found != "elsewhere":
        (folder / "holdfast").write_text("#!/bin/sh\n")
        (folder / "holdfast").chmod(0o755)
    shell.more["PATH"] = str(folder)
    shell.more["VIRTUAL_ENV"] = str(shell.home) if found == "in an active virtual environment" else ""
    written = shell("init", repository, "--yes", "--host", "all")
    own = Path(sys.executable).parent / "holdfast"
    program = "holdfast" if found == "on the PATH" else str(own)
    assert (f"the files name {own}: they work on this machine only" in written.err) is (found != "on the PATH")
    for host in HOSTS:
        entry = servers(repository, host)["holdfast"]
        words = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
        assert words == [program, "mcp"]
        hooks = (repository / host.hooks.path).read_text()
        assert f'"{program} hook {host.name} ' in hooks or f'spawn("{program}", ' in hooks
    assert own.is_file(), "a host can start it"
    shell.more["PATH"] = os.environ["PATH"]
    assert shell("init", repository, "--yes", "--undo").status == 0
    assert git(repository, "status", "--porcelain", "--ignored") == ""


def test_a_program_whose_path_has_a_space_is_one_word_in_hooks_and_is_ours(tmp_path):
    program = "/home/me/my agents/.venv/bin/holdfast"
    for host in HOSTS:
        for file in files_of(tmp_path, [host], "http://127.0.0.1:7700", program=program):
            if file.path == tmp_path / host.hooks.path:
                text = file.add_to(None)
                assert f"'{program}' hook {host.name} " in text or f'spawn("{program}", ' in text
                assert file.remove_from(text) is None


def servers(repository, host):
    path = repository / host.mcp.path
    path = path if path.exists() else path.with_suffix(".jsonc")
    text = path.read_text(encoding="utf-8-sig")
    content = tomllib.loads(text) if path.suffix == ".toml" else json_text.parse(text)
    return content[host.mcp.servers]


def test_hosts_in_use_are_found_by_their_files_and_others_are_named(shell, repository):
    (repository / ".cursor").mkdir()
    (repository / "GEMINI.md").write_text("x\n")
    assert [host.name for host in hosts_in_use(repository)] == ["cursor", "gemini"]
    written = shell("init", repository, "--yes", "--host", "codex", "--require-claim")
    assert written.status == 0
    assert "for Codex, Cursor, Gemini CLI (others: --host claude-code|vscode|opencode)" in written.err
    assert not (repository / ".mcp.json").exists()
    assert ' --require-claim"' in (repository / ".cursor/hooks.json").read_text()
    refused = shell("init", repository, "--yes", "--host", "emacs")
    assert (refused.status, "one of claude-code, codex" in refused.err) == (2, True)
    assert shell("init", repository, "--yes", "--undo").status == 0
    assert git(repository, "status", "--porcelain") == "?? GEMINI.md\n"


def test_an_entry_that_somebody_else_made_stays_and_so_do_links(shell, repository):
    own = b'{"mcpServers": {"holdfast": {"type": "http", "url": "https://h.example/mcp"}}}'
    (repository / ".mcp.json").write_bytes(own)
    (repository / ".codex").mkdir()
    (repository / ".codex/config.toml").write_text('[mcp_servers.holdfast]\nurl = "https://h.example/mcp"\n')
    (repository / "CLAUDE.md").symlink_to("README.md")
    commit(repository)
    assert shell("init", repository, "--yes").status == 0
    assert (repository / ".mcp.json").read_bytes() == own
    assert "begin" not in (repository / ".codex/config.toml").read_text()
    assert (repository / "CLAUDE.md").is_symlink()
    assert (repository / "README.md").read_text().count("holdfast: begin") == 1
    assert shell("init", repository, "--yes", "--undo").status == 0
    assert git(repository, "status", "--porcelain") == ""


def test_a_file_that_is_not_as_expected_is_named_and_nothing_is_changed(shell, repository):
    (repository / ".claude").mkdir()
    for content in ('{"hooks": 1}', '{"hooks": {"Stop": "x"}}', "[", "", '{"a": 1', "\udcff"):
        (repository / ".claude/settings.json").write_bytes(os.fsencode(content))
        refused = shell("init", repository, "--yes")
        assert (refused.status, ".claude/settings.json" in refused.err) == (2, True), content
    assert git(repository, "status", "--porcelain") == "?? .claude/\n"


@pytest.mark.parametrize(
    "text",
    [
        *("{}", "{ }", "{\n}\n", '{"a": 1}', '{"hooks":{"Pre":[]}}', '{"hooks":{"Pre":[{"a":"// no, }"}]}}'),
        '{\n    "a": [1, 2],\n    // c\n    "hooks": {},\n}\n',
        '{\r\n\t"mcpServers": {\r\n\t\t"x": {}\r\n\t}\r\n}',
        '\ufeff{"mcpServers":{ "other": null, } /* x */ }',
    ],
)
def test_a_json_text_is_the_same_again_after_adding_and_removing(text):
    changed = json_text.add(text, ("mcpServers",), "holdfast", {"env": {"HOLDFAST_OWNER": "x"}})
    for event in ("Post", "Pre"):
        changed = json_text.add(changed, ("hooks", event), None, {"hooks": [{"command": "holdfast hook x"}]})
    assert json_text.parse(changed)["mcpServers"]["holdfast"]
    assert json_text.parse(text).items() <= {**json_text.parse(changed), **json_text.parse(text)}.items()
    for path in (("hooks", "Pre"), ("hooks", "Post"), ("mcpServers",)):
        changed = json_text.remove(changed, path, is_ours)
    assert changed == text


def test_the_hosts_of_the_help_are_those_of_the_table():
    assert tuple(host.name for host in HOSTS) == _HOST_NAMES
    assert all(any(event.kind == BEFORE_TOOL for event in host.hooks.events) for host in HOSTS)
    assert json.dumps([host.mcp.entry for host in HOSTS])
    assert all(not Path(host.hooks.path).is_absolute() for host in HOSTS)
