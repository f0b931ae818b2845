"""This machine's key: `serve` on a loopback address writes it where the user's programs find it."""

import json
import re
import stat
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

import holdfast
from holdfast.app import sync_credentials
from holdfast.core.acl import hash_token
from holdfast.engine.engine import Engine
from holdfast.server_keys import addresses_of, configured_key
from holdfast.settings import Settings
from holdfast.store.memory.store import MemoryStore
from holdfast.transport.cli.commands.serve import _provide_machine_key
from holdfast.transport.cli.server_setup.machine_key import provide_machine_key
from tests.cli.shell import Shell
from tests.faults.program import Program
from tests.proof_size import FULL

URL, OTHER_URL = "http://127.0.0.1:7700", "http://127.0.0.1:7701"
OWN = "a-key-that-a-person-wrote-here"


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The configuration of this test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for variable in ("HOLDFAST_URL", "HOLDFAST_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path / "config/holdfast/servers.json"


@contextmanager
def engine_on(store):
    engine = Engine(store)
    engine.start()
    try:
        yield engine
    finally:
        engine.stop()


@pytest.fixture
def engine():
    with engine_on(MemoryStore()) as engine:
        yield engine


def machine_keys(engine):
    return [row for row in engine.read(lambda reader: reader.principals("default")) if row.source == "machine"]


def keys_in(file):
    return {url: entry["key"] for url, entry in json.loads(file.read_text()).items()}


def write(file, content, mode=0o600):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    file.chmod(mode)


def test_a_server_writes_one_private_key_and_keeps_it(engine, file):
    assert str(file) in provide_machine_key(engine, URL, "store")
    (key,) = machine_keys(engine)
    assert (key.scopes, key.account) == ("jobs tasks read", "default")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert hash_token(keys_in(file)[URL]) == key.key_hash
    before = file.read_text()
    provide_machine_key(engine, URL, "store")
    assert (file.read_text(), len(machine_keys(engine))) == (before, 1)


def test_a_server_whose_only_key_is_the_machines_still_makes_its_first_key(engine, file):
    provide_machine_key(engine, URL, "store")
    assert sync_credentials(engine, Settings(store="memory:")) is not None


def test_servers_on_one_store_share_the_key_and_others_have_their_own(engine, file):
    provide_machine_key(engine, URL, "store")
    assert "HOLDFAST_URL=" + OTHER_URL in provide_machine_key(engine, OTHER_URL, "store")
    assert (len(set(keys_in(file).values())), len(machine_keys(engine))) == (1, 1)
    with engine_on(MemoryStore()) as another:
        provide_machine_key(another, "http://[::1]:7702", "another store")
        assert len(set(keys_in(file).values())) == 2
        first = keys_in(file)[URL]
        provide_machine_key(another, URL, "another store")
        assert (len(machine_keys(another)), keys_in(file)[OTHER_URL]) == (1, first)
    assert keys_in(file)[URL] != first, "an entry that a server wrote and this store refuses is replaced"


def test_a_persons_entry_is_left_and_named(engine, file):
    write(file, {"http://localhost:7700": {"key": OWN, "note": "mine"}, OTHER_URL: {"key": OWN, "written_by": "me"}})
    before = file.read_text()
    for url in (URL, OTHER_URL):
        assert f"your own entry in {file}, whose key this server refuses" in provide_machine_key(engine, url, "store")
    assert (file.read_text(), machine_keys(engine)) == (before, [])
    provide_machine_key(engine, "http://127.0.0.1:7703", "store")
    assert json.loads(file.read_text())["http://localhost:7700"] == {"key": OWN, "note": "mine"}


@pytest.mark.parametrize(
    ("content", "mode", "problem"),
    [("{ not json", 0o600, "is not JSON"), ("[]", 0o600, "must be a JSON object"), ("{}", 0o644, "chmod 600")],
)
def test_a_file_that_cannot_be_used_is_left_and_no_key_is_made(engine, file, content, mode, problem):
    write(file, content, mode)
    line = provide_machine_key(engine, URL, "store")
    assert problem in line
    assert "HOLDFAST_API_KEY" in line
    assert (file.read_text(), machine_keys(engine)) == (content, [])


def test_a_folder_that_cannot_be_written_stops_nothing(engine, file):
    file.parent.parent.mkdir()
    file.parent.write_text("a file in place of the folder")
    assert "could not be written" in provide_machine_key(engine, URL, "store")
    assert machine_keys(engine) == []


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("http://localhost:7700", "http://127.0.0.1:7700", True),
        ("http://LOCALHOST:7700/", "http://[::1]:7700", True),
        ("https://holdfast.example", "https://Holdfast.example:443/", True),
        ("http://127.0.0.1:7700", "https://127.0.0.1:7700", False),
        ("http://127.0.0.1:7700", "http://127.0.0.1:7701", False),
        ("https://holdfast.example/team", "https://holdfast.example", False),
        ("http://127.0.0.1:port", "http://127.0.0.1:port", False),
    ],
)
def test_an_entry_is_found_by_any_spelling_of_its_address(one, other, is_same):
    assert bool(set(addresses_of(one)) & set(addresses_of(other))) is is_same


def test_a_persons_key_comes_before_the_machines(engine, file):
    assert configured_key(URL, is_named=False) is None
    provide_machine_key(engine, URL, "store")
    machine = keys_in(file)[URL]
    assert configured_key(URL, is_named=False).key == machine
    write(file.with_name("key"), "the-key-of-whichever-server\n")
    assert configured_key(URL, is_named=False).key == "the-key-of-whichever-server"
    assert configured_key(URL, is_named=True).key == machine
    write(file, {URL: {"key": OWN}})
    assert configured_key(URL, is_named=False).key == OWN
    assert configured_key(OTHER_URL, is_named=True) is None


@pytest.fixture(params=["sqlite", *(["postgres"] if FULL else [])])
def store_url(request, tmp_path):
    if request.param == "postgres":
        return request.getfixturevalue("new_postgres_database")()
    return f"sqlite:///{tmp_path}/x.db"


def test_no_program_on_the_machine_of_a_server_needs_a_key(store_url, tmp_path, file, monkeypatch):
    """With two processes: on SQLite an engine process and a front, on PostgreSQL two servers."""
    server = Program(store_url, WORKERS="2").start()
    try:
        assert re.search(r"agents on this machine need only HOLDFAST_URL=http://127.0.0.1:\d+: ", server.log())
        key = keys_in(file)[f"http://127.0.0.1:{server.port}"]
        assert key not in server.log()
        shell = Shell(server.port, None, tmp_path)
        assert shell("claim", "x", "--owner", "ann").status == 0
        assert shell("lock", "status", "x").status == 0
        assert shell("key", "ls").status == 4, "it has no scope to administer"
        monkeypatch.setenv("HOLDFAST_URL", f"http://localhost:{server.port}")
        with holdfast.Client() as client:
            assert client.get_job_owner("x")["owner"] == "ann"
        shell.more["HOLDFAST_API_KEY"] = "the-environment-comes-first-0123"
        assert shell("owner", "x").status == 4
        shell.more["HOLDFAST_API_KEY"] = "${HOLDFAST_API_KEY}"
        assert shell("owner", "x").status == 0, "a host passed on a variable that is not set"
        if FULL:
            server.stop()
            server.start()
            assert keys_in(file)[f"http://127.0.0.1:{server.port}"] == key
    finally:
        server.close()


@pytest.mark.parametrize(
    ("address", "settings", "written"),
    [
        (("127.0.0.1", 7700), {"host": "localhost"}, URL),
        (("::1", 7700, 0, 0), {"host": "::1"}, "http://[::1]:7700"),
        (("127.0.0.1", 7700), {"tls_cert": "x", "tls_key": "y"}, "https://127.0.0.1:7700"),
        (("127.0.0.1", 7700), {"machine_key": False}, None),
        (("0.0.0.0", 7700), {"host": "0.0.0.0"}, None),
        (("::", 7700, 0, 0), {"host": "::"}, None),
        (("192.0.2.7", 7700), {"host": "192.0.2.7"}, None),
    ],
)
def test_only_a_loopback_address_gets_an_entry(engine, file, address, settings, written):
    listener = SimpleNamespace(getsockname=lambda: address)
    line = _provide_machine_key(engine, Settings(store="memory:", **settings), listener)
    assert (list(keys_in(file)) if file.exists() else []) == ([] if written is None else [written])
    assert (line is None) is (written is None)
