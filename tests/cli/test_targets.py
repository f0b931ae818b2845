"""Which server, key and account each program would use, and the warning of `doctor` if they lead to different ones."""

import json
from types import SimpleNamespace

import pytest

from holdfast.settings import default_store, describe_store
from holdfast.transport.cli.targets import mcp_target, targets
from holdfast.transport.cli.targets.host_files import HOST_FILES, read_host_files
from holdfast.transport.cli.targets.mcp_target import find_target

URL = "http://127.0.0.1:7700"
STDIO = {"command": "uvx", "args": ["--from", "holdfast[mcp]", "holdfast", "mcp"]}
KEY = "the-key-in-the-environment-0123"


@pytest.fixture
def servers_file(tmp_path, monkeypatch):
    """Writes the entries of servers.json."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "config/holdfast/servers.json"
    path.parent.mkdir(parents=True)

    def write(**entry):
        path.write_text(json.dumps({URL: {"key": "hf_live_of-this-machine", "written_by": "holdfast serve", **entry}}))
        path.chmod(0o600)

    return write


def sent(header):
    """The headers of a host that calls a server over HTTP."""
    return {"headers": {"Authorization": f"Bearer {header}"}}


def env(**variables):
    return {"env": {f"HOLDFAST_{name}": value for name, value in variables.items()}}


@pytest.mark.parametrize(
    ("file", "entry", "url", "key"),
    [
        (".mcp.json", STDIO | env(URL="${U:-https://a}"), "https://a", None),
        (".mcp.json", {"type": "http", "url": f"{URL}/mcp", **sent("${THE_KEY}")}, URL, KEY),
        (".cursor/mcp.json", STDIO | env(API_KEY="${env:THE_KEY}"), None, KEY),
        (".vscode/mcp.json", {"url": f"{URL}/mcp", **sent("${input:key}")}, URL, None),
        (".gemini/settings.json", {"httpUrl": f"{URL}/mcp"}, URL, None),
        (".gemini/settings.json", STDIO | env(API_KEY="$THE_KEY"), None, KEY),
        ("opencode.json", {"command": ["holdfast", "mcp"], "environment": {"HOLDFAST_URL": URL}}, URL, None),
        ("opencode.json", {"type": "remote", "url": f"{URL}/mcp", **sent("{env:THE_KEY}")}, URL, KEY),
        (".codex/config.toml", {"url": f"{URL}/mcp", "bearer_token_env_var": "THE_KEY"}, URL, KEY),
        (".codex/config.toml", {"command": "holdfast", "args": ["mcp"], **env(URL=URL)}, URL, None),
    ],
)
def test_the_entry_of_every_host_is_read(tmp_path, file, entry, url, key):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    table, is_toml = HOST_FILES[file], file.endswith(".toml")
    path.write_text(f"[{table}]\nholdfast = {inline(entry)}\n" if is_toml else json.dumps({table: {"holdfast": entry}}))
    (found,) = read_host_files(tmp_path, {"THE_KEY": KEY})
    assert found.file == file
    assert (found.url or found.variables.get("HOLDFAST_URL")) == url
    assert (found.key or found.variables.get("HOLDFAST_API_KEY") or None) == key


def inline(value):
    """A value in TOML."""
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{" + ", ".join(f"{name} = {inline(each)}" for name, each in value.items()) + "}"


def test_entries_of_other_servers_and_files_that_cannot_be_read_are_no_entries(tmp_path):
    (tmp_path / "opencode.json").write_text("{ // a comment\n}")
    others = {"a": {"command": "npx", "args": ["mcp"]}, "b": {"url": "https://b.example/mcp"}, "c": "holdfast mcp"}
    off = {"d": STDIO | {"disabled": True}, "e": STDIO | {"enabled": False}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": others | off}))
    (unread,) = read_host_files(tmp_path, {})
    assert unread.file == "opencode.json"
    assert unread.problem


def test_mcp_uses_the_server_of_this_machine_or_its_default_store(servers_file, monkeypatch):
    default = describe_store(default_store())

    def target(environ=None, store=None):
        found = find_target(store, environ or {})
        return found.url, found.source, None if found.key is None else found.key.key

    monkeypatch.setattr(mcp_target, "_listens", lambda _: True)
    assert target() == (None, "the default", None), "no server was ever started here"
    servers_file(store=default)
    assert target() == (URL, "the default", "hf_live_of-this-machine")
    assert target({"HOLDFAST_API_KEY": "the-environment"})[2] == "the-environment"
    assert target({"HOLDFAST_URL": "https://a.example"}) == ("https://a.example", "HOLDFAST_URL", None)
    assert target({"HOLDFAST_STORE": "sqlite:///x.db"}) == (None, "HOLDFAST_STORE", None)
    assert target({"HOLDFAST_URL": "https://a.example"}, "sqlite:///x.db") == (None, "--store", None)
    monkeypatch.setattr(mcp_target, "_listens", lambda _: False)
    assert target() == (None, "the default", None), "the same store, until the server runs"
    servers_file(store="PostgreSQL at db/holdfast")
    assert target()[0] == URL, "another store has other work"


def program(name, server=URL, key="k", **more):
    found = None if key is None else targets.FoundKey(key, "here")
    return targets.ProgramTarget(name, server, "the default", found, **more)


def test_programs_agree_if_they_share_server_and_account(servers_file):
    servers_file(store="/x.db")
    one = [
        (program("cli"), "default"),
        (program("python", "http://localhost:7700", "another key"), "default"),
        (program("mcp", "/x.db", None, is_store=True), "default"),
        (program(".mcp.json"), targets.UNKNOWN),
        (program("opencode.json", "", None, problem="cannot be read"), targets.UNKNOWN),
        (program(".cursor/mcp.json", "https://a.example", None), targets.UNKNOWN),
    ]
    assert len(targets.group_by_account(one)) == 1
    for other in (
        (program("x"), "acct_2"),
        (program("x", "https://a.example"), targets.UNKNOWN),
        (program("x", "/y.db", None, is_store=True), "default"),
    ):
        groups = targets.group_by_account([*one, other])
        assert [names for _, names in groups] == [["cli", "python", "mcp"], ["x"]]


def test_a_key_is_sent_to_no_server_that_only_a_file_of_the_repository_names(monkeypatch):
    asked = []
    client = SimpleNamespace(call=lambda _: {"accountId": "default"})
    monkeypatch.setattr(targets, "make_client", lambda url, _: asked.append(url) or client)
    accounts = targets.Accounts([program("cli"), program("mcp")])
    assert accounts.of(program(".mcp.json", "https://a.example")) == targets.UNKNOWN
    assert [accounts.of(program("cli")), accounts.of(program("mcp"))] == ["default", "default"]
    assert asked == [URL], "one server and key is asked once"


def test_doctor_says_what_each_program_uses_and_warns_of_different_accounts(shell, server):
    url = f"http://127.0.0.1:{server.port}"
    other = server.anyone.post("/v1/keys/register").json
    entry = STDIO | {"env": {"HOLDFAST_URL": url, "HOLDFAST_API_KEY": "${HOLDFAST_API_KEY}"}}
    (shell.home / ".mcp.json").write_text(json.dumps({"mcpServers": {"holdfast": entry}}))
    found = {finding["what"]: finding for finding in shell("doctor", "-o", "json").json}
    for name in ("cli", "mcp", "python", ".mcp.json"):
        assert (found[name]["server"], found[name]["account"]) == (url, "default")
        assert found[name]["key_source"] == "HOLDFAST_API_KEY"
        assert found[name]["key"].removesuffix("…") == shell.key[:4]
    assert "accounts" not in found
    entry = {"url": f"{url}/mcp", "headers": {"Authorization": f"Bearer {other['apiKey']}"}}
    (shell.home / "opencode.json").write_text(json.dumps({"mcp": {"holdfast": entry}}))
    split = shell("doctor")
    assert split.status == 0
    (warning,) = [line for line in split.out.splitlines() if line.startswith("WARN")]
    assert warning.startswith("WARN accounts ")
    assert f"opencode.json: {url}, account {other['accountId']}" in warning
    assert f"cli, mcp, python, .mcp.json: {url}, account default" in warning
    for key in (shell.key, other["apiKey"]):
        assert key not in split.out + split.err
