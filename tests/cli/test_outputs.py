"""The four output formats, and where a key is searched."""

import json

import pytest
import yaml

from tests.cli.shell import Shell
from tests.compat.orchestrion.account import register

NASTY = "\x1b[31mred\u202e\x7f"


@pytest.mark.parametrize("words", [("ls",), ("owner", "{job}"), ("events", "--limit", 2), ("prime",), ("doctor",)])
def test_yaml_is_the_same_document_as_json(server, tmp_path, job, words):
    """In an account of its own: elsewhere a lease of another test may end between the two calls."""
    shell = Shell(server.port, register(server.anyone).token, tmp_path)
    shell("claim", job, "--owner", "ann", "--note", NASTY)
    words = [str(word).format(job=job) for word in words]
    as_json, as_yaml = shell(*words, "-o", "json"), shell(*words, "-o", "yaml")
    assert as_yaml.status == as_json.status == 0, as_yaml.err
    assert as_yaml.out.isascii()
    assert "\x1b" not in as_yaml.out
    assert "\x7f" not in as_yaml.out
    documents = [json.loads(line) for line in as_json.out.splitlines()]
    assert [steady(document) for document in yaml.safe_load_all(as_yaml.out)] == [steady(line) for line in documents]


def steady(value):
    """The document without fields that change over time."""
    if isinstance(value, dict):
        return {name: steady(inner) for name, inner in value.items() if "seconds" not in name and name != "told"}
    return [steady(inner) for inner in value] if isinstance(value, list) else value


def test_a_refusal_as_yaml_is_the_servers_own_document(shell, job):
    lost = shell("release", job, "--lease", "00000000-0000-4000-8000-000000000000", "-o", "yaml")
    assert lost.status == 5
    assert yaml.safe_load(lost.out)["error"] == "lease_lost"


def test_wide_shows_every_field_and_cuts_nothing(shell, job):
    shell("claim", job, "--owner", "ann")
    narrow, wide = shell("owner", job).fields, shell("owner", job, "-o", "wide").fields
    assert narrow.keys() < wide.keys()
    assert wide["note"] == "-"
    rows = [line.split("\t") for line in shell("ls", job, "-o", "wide").out.splitlines()]
    assert len(rows[0]) > len(shell("ls", job).out.split("\t"))


# -- keys --------------------------------------------------------------------------------------------------------

KEYRING = """
class errors:
    class KeyringError(Exception):
        pass
def get_password(service, name):
    if service != "holdfast" or name != "http://127.0.0.1:{port}":
        raise errors.KeyringError(name)
    return "{key}"
"""


@pytest.fixture
def keyless(shell):
    """A shell without a key."""
    return Shell(shell.port, None, shell.home)


def private(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_a_key_is_searched_in_the_documented_order(keyless, shell, job):
    assert keyless("owner", job).status == 4
    private(keyless.home / "config/holdfast/key", shell.key)
    assert keyless("owner", job).status == 0
    private(keyless.home / ".netrc", "machine 127.0.0.1 login x password wrong-key-in-the-netrc-file\n")
    assert keyless("owner", job).status == 4, ".netrc comes before the file"
    private(keyless.home / "python/keyring.py", KEYRING.format(port=shell.port, key=shell.key))
    keyless.more["PYTHONPATH"] = f"{keyless.home}/python:{keyless.environment.get('PYTHONPATH', '')}"
    assert keyless("owner", job).status == 0, "the keyring comes before .netrc"
    keyless.more["HOLDFAST_API_KEY"] = "wrong-key-in-the-environment"
    assert keyless("owner", job).status == 4, "the environment comes before the keyring"
    private(keyless.home / "mine", shell.key)
    assert keyless("owner", job, "--key-file", "mine").status == 0, "the flag comes first"


def test_a_key_is_not_sent_to_another_server(keyless, shell, job):
    private(keyless.home / "config/holdfast/key", shell.key)
    private(
        keyless.home / ".netrc", f"machine elsewhere.example login x password {shell.key}\ndefault login x password y\n"
    )
    assert keyless("owner", job, "--url", f"http://127.0.0.1:{shell.port}").status == 4


def test_a_file_that_others_can_read_is_refused(keyless, shell, job):
    private(keyless.home / "config/holdfast/key", shell.key).chmod(0o644)
    refused = keyless("owner", job)
    assert refused.status == 2
    assert "chmod 600" in refused.err
    assert shell.key not in refused.err
