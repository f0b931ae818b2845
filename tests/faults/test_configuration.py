"""Wrong settings: the server does not start, and prints one line for each problem."""

import socket

import apsw
import psycopg
import pytest

from holdfast.settings import BadSettings, Settings, load, loading
from holdfast.settings.fields import BY_NAME, FIELDS
from holdfast.transport.cli.table import VERBS
from tests.compat.octostore.server import free_port
from tests.faults.program import run

GOOD = "0123456789abcdefghijklmn"
TOO_WEAK = "must be at least 24 visible ASCII characters without spaces"
SHORTER = f"{TOO_WEAK} (HOLDFAST_ALLOW_SHORT_TOKENS=true accepts shorter ones)"
EQUAL = "static tokens: a token equals the admin key or the root key"
MERCHANT = {"PAYPAL_CLIENT_ID": "m", "PAYPAL_SECRET": "s"}
NO_USER = "must not contain a user, a query or a fragment"
PLAIN_HTTP = "HOLDFAST_PAYPAL_URL: must be https; http is allowed only for this machine"


WRONG = [
    ({"port": "seven"}, {}, "--port: expected a whole number from 0 to 65535, got 'seven'"),
    ({"port": "65536"}, {}, "--port: expected a whole number from 0 to 65535, got '65536'"),
    ({}, {"PORT": "-1"}, "HOLDFAST_PORT: expected a whole number from 0 to 65535, got '-1'"),
    ({"store": "my"}, {}, "--store: expected sqlite:///path.db, postgresql://… or memory:, got 'my'"),
    (
        {"store": "/a/b.db"},
        {},
        "--store: expected sqlite:///path.db, postgresql://… or memory:, got '/a/b.db'; for this file write sqlite:////a/b.db",
    ),
    ({"store": "sqlite:///"}, {}, "--store: expected sqlite:///path.db, postgresql://… or memory:, got 'sqlite:///'"),
    ({"workers": "2", "store": "memory:"}, {}, "--workers: a store in memory belongs to one process"),
    ({"workers": "0"}, {}, "--workers: expected a whole number from 1 to 64, got '0'"),
    ({}, {"STATIC_TOKENS": "bob:short"}, f"HOLDFAST_STATIC_TOKENS: the token of 'bob' {SHORTER}"),
    ({}, {"STATIC_TOKENS": f"bob:{GOOD} {GOOD}"}, f"HOLDFAST_STATIC_TOKENS: the token of 'bob' {TOO_WEAK}"),
    ({}, {"STATIC_TOKENS": " "}, "HOLDFAST_STATIC_TOKENS: lists no tokens"),
    ({}, {"STATIC_TOKENS": f"bob:{GOOD},Bob:{GOOD}2"}, "static tokens: the name 'bob' is listed twice"),
    ({}, {"STATIC_TOKENS": f"a:{GOOD},b:{GOOD}"}, "static tokens: one token is listed twice"),
    ({}, {"STATIC_TOKENS": f"bob:{GOOD}", "ADMIN_KEY": GOOD}, EQUAL),
    ({}, {"STATIC_TOKENS": f"bob:{GOOD}", "ROOT_KEY": GOOD}, EQUAL),
    ({}, {"ADMIN_KEY": "short"}, f"HOLDFAST_ADMIN_KEY: {SHORTER}"),
    ({}, {"ROOT_KEY": "short"}, f"HOLDFAST_ROOT_KEY: {TOO_WEAK}"),
    ({}, {"BIND_ADDR": "here"}, "HOLDFAST_BIND_ADDR: expected host:port, got 'here'"),
    ({}, {"PAYPAL_CLIENT_ID": "m"}, "HOLDFAST_PAYPAL_SECRET: PayPal needs both the client id and the secret"),
    ({}, {"PAYPAL_SECRET": "s"}, "HOLDFAST_PAYPAL_CLIENT_ID: PayPal needs both the client id and the secret"),
    (
        {},
        MERCHANT | {"PAYPAL_SECRET": "a b"},
        "HOLDFAST_PAYPAL_SECRET: must be visible ASCII characters without spaces",
    ),
    ({}, MERCHANT | {"PAYPAL_URL": "http://pay.test"}, PLAIN_HTTP),
    ({}, MERCHANT | {"PAYPAL_URL": "http://127.0.0.1.pay.test"}, PLAIN_HTTP),
    ({}, {"WEBHOOK_TIMEOUT": "31"}, "HOLDFAST_WEBHOOK_TIMEOUT: expected a whole number from 1 to 30, got '31'"),
    ({}, {"WEBHOOK_RETRIES": "5,soon"},
     "HOLDFAST_WEBHOOK_RETRIES: expected seconds between commas, like 5,300,1800, got '5,soon'"),
    ({}, {"WEBHOOK_ALLOW_PRIVATE_NETWORKS": "maybe"},
     "HOLDFAST_WEBHOOK_ALLOW_PRIVATE_NETWORKS: expected true or false, got 'maybe'"),
    ({}, {"CA_BUNDLE": "/nowhere.pem"},
     "HOLDFAST_CA_BUNDLE: /nowhere.pem holds no certificates in PEM: [Errno 2] No such file or directory"),
    ({}, {"PUBLIC_URL": "me"}, "HOLDFAST_PUBLIC_URL: expected a scheme as well: https://me"),
    (
        {},
        {"PUBLIC_URL": "https://me:pw@here.test"},
        "HOLDFAST_PUBLIC_URL: must not contain a user, a query or a fragment",
    ),
    ({}, {"PUBLIC_ELECTIONS": "maybe"}, "HOLDFAST_PUBLIC_ELECTIONS: expected true or false, got 'maybe'"),
    ({}, {"LOCAL_REGISTRATION": "true", "HOST": "0.0.0.0"},
     "HOLDFAST_LOCAL_REGISTRATION: only on a loopback address, not on 0.0.0.0"),
    ({}, {"LOCAL_REGISTRATION": "true", "STATIC_TOKENS": f"bob:{GOOD}"},
     "HOLDFAST_LOCAL_REGISTRATION: not together with static tokens"),
    ({}, {"PLAN": "gold"}, "HOLDFAST_PLAN: there is no plan 'gold'"),
]  # fmt: skip
AS_A_PROGRAM = [0, 3, 5, 7, 12, 14]
"""Some of them also with the program itself, which takes half a second each."""


@pytest.mark.parametrize(("flags", "variables", "line"), WRONG)
def test_a_wrong_setting_is_named(flags, variables, line):
    with pytest.raises(BadSettings) as refusal:
        load({"store": "memory:"} | flags, {f"HOLDFAST_{name}": value for name, value in variables.items()})
    assert refusal.value.problems == [line]


@pytest.mark.parametrize(("flags", "variables", "line"), [WRONG[number] for number in AS_A_PROGRAM])
def test_a_server_with_a_wrong_setting_does_not_start(flags, variables, line):
    given = [word for name, value in ({"store": "memory:"} | flags).items() for word in (f"--{name}", value)]
    ended = run(*given, **variables)
    assert ended.lines == [f"holdfast: {line}"]
    assert ended.status == 2


def test_several_wrong_settings_are_all_named_at_once():
    ended = run("--port", "x", "--store", "what", ADMIN_KEY="short")
    assert [line.split(":")[1].strip() for line in ended.lines] == ["--port", "--store", "HOLDFAST_ADMIN_KEY"]
    assert ended.status == 2


def test_problems_never_repeat_a_secret():
    ended = run("--store", "memory:", ADMIN_KEY="canary-1", ROOT_KEY="canary-2", STATIC_TOKENS="bob:canary-3")
    assert len(ended.lines) == 3
    assert "canary" not in "".join(ended.lines)


@pytest.mark.parametrize(
    ("flags", "variables"),
    [({"store": "sqlite:///:memory:"}, {}), ({}, {"HOLDFAST_DATABASE_URL": ":memory:"})],
    ids=["--store", "HOLDFAST_DATABASE_URL"],
)
def test_the_sqlite_name_of_a_store_in_memory_is_no_file(flags, variables):
    assert load(flags, variables)[0].store == "memory:"


@pytest.mark.parametrize(
    ("store", "cores", "workers"),
    [
        ("sqlite:///x.db", 1, 1), ("sqlite:///x.db", 3, 1), ("sqlite:///x.db", 4, 3), ("sqlite:///x.db", 64, 3),
        ("memory:", 64, 1), ("postgresql://host/x", 64, 1),
    ],
)  # fmt: skip
def test_a_server_on_sqlite_has_fronts_if_there_are_cores_for_them(store, cores, workers, monkeypatch):
    monkeypatch.setattr(loading, "cores", lambda: cores)
    settings = load({"store": store}, {})[0]
    assert (settings.workers, settings.has_fronts) == (workers, workers > 1)
    assert load({"store": store, "workers": "1"}, {})[0].workers == 1


def test_settings_do_not_show_their_secrets():
    secrets = {"PAYPAL_CLIENT_ID": "m", "PAYPAL_SECRET": "canary", "ADMIN_KEY": f"canary{GOOD}"}
    settings, _ = load({"store": "memory:"}, {f"HOLDFAST_{name}": value for name, value in secrets.items()})
    assert settings.paypal_secret == "canary"
    assert settings.paypal_url == "https://api-m.paypal.com"
    assert "canary" not in repr(settings)


def test_a_file_of_tokens_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"bob:{GOOD}\n")
    path.chmod(0o640)
    ended = run("--store", "memory:", STATIC_TOKENS_FILE=str(path))
    reason = f"{path} must be a regular file only its owner can read (chmod 600)"
    assert ended.lines == [f"holdfast: HOLDFAST_STATIC_TOKENS_FILE: {reason}"]
    assert ended.status == 2


def test_a_file_of_tokens_that_is_not_there_is_refused(tmp_path):
    ended = run("--store", "memory:", STATIC_TOKENS_FILE=str(tmp_path / "none"))
    assert len(ended.lines) == 1
    assert ended.lines[0].startswith(f"holdfast: HOLDFAST_STATIC_TOKENS_FILE: cannot read {tmp_path / 'none'}: ")
    assert ended.status == 2


def test_a_port_in_use_is_named():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        ended = run("--store", "memory:", "--port", str(port))
    assert ended.lines[0] == f"holdfast: cannot listen on 127.0.0.1 port {port}: Address already in use"
    assert f"`holdfast doctor --url http://127.0.0.1:{port}`" in ended.lines[1]
    assert f"make run ARGS='--port {port + 1}'" in ended.lines[2]
    assert ended.status == 1


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.1"])
def test_an_address_that_is_not_ours_is_named(host):
    port = free_port()
    ended = run("--store", "memory:", "--host", host, "--port", str(port))
    assert len(ended.lines) == 1
    assert ended.lines[0].startswith(f"holdfast: cannot listen on {host} port {port}: ")
    assert ended.status == 1


def test_a_path_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    ended = run("--port", "0", "--store", f"sqlite:///{tmp_path}/file/x.db")
    assert len(ended.lines) == 1, ended.lines
    assert ended.lines[0].startswith("holdfast: the database file cannot be used: ")
    assert f"{tmp_path}/file" in ended.lines[0]
    assert ended.status == 1


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "x.db"
    path.write_bytes(b"this is no database\n" * 500)
    ended = run("--port", "0", "--store", f"sqlite:///{path}")
    assert len(ended.lines) == 1, ended.lines
    assert ended.lines[0].startswith("holdfast: the database file cannot be used: ")
    assert ended.status == 1
    assert path.read_bytes() == b"this is no database\n" * 500


def test_a_newer_schema_is_refused_on_sqlite(tmp_path):
    path = tmp_path / "x.db"
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 999)
    connection.close()
    ended = run("--port", "0", "--store", f"sqlite:///{path}")
    assert len(ended.lines) == 1, ended.lines
    assert ended.lines[0].startswith("holdfast: the database has schema 999, this Holdfast knows ")
    assert ended.lines[0].endswith(": use a newer Holdfast")
    assert ended.status == 1


def test_a_newer_schema_is_refused_on_postgres(new_empty_postgres_database):
    url = new_empty_postgres_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE schema_version (number integer PRIMARY KEY)")
        connection.execute("INSERT INTO schema_version VALUES (999)")
    ended = run("--port", "0", "--store", url)
    assert len(ended.lines) == 1, ended.lines
    assert ended.lines[0].startswith("holdfast: the database has schema 999, this Holdfast knows ")
    assert ended.status == 1
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'")
        assert tables.fetchone() == (1,)


def test_a_postgres_that_does_not_answer_is_named_in_one_line_without_its_password(tmp_path):
    ended = run("--port", "0", "--store", f"postgresql://me:canary@/db?host={tmp_path}")
    assert len(ended.lines) == 1, ended.lines
    assert ended.lines[0].startswith("holdfast: the database cannot be used: ")
    assert "canary" not in ended.lines[0]
    assert ended.status == 1


# -- the table of settings ---------------------------------------------------------------------------------------


def test_every_setting_is_in_the_table_once():
    names = [field.name for field in FIELDS]
    assert len(names) == len(set(names)) == len(BY_NAME)
    derived = {"traces"}
    assert {field.name for field in FIELDS if not field.alias_of} == set(Settings.__struct_fields__) - derived
    for field in FIELDS:
        assert field.description.endswith("."), field.name
        assert all(name.strip() in BY_NAME for name in field.alias_of.split(",") if field.alias_of)


def test_defaults_are_those_of_the_table():
    settings, _ = load({"store": "memory:"}, {})
    assert settings == Settings(store="memory:", max_streams=loading.default_streams(loading.memory_bytes()))
    for field in FIELDS:
        if field.default is not None and not field.alias_of and field.name not in {"store", "max_streams"}:
            assert getattr(settings, field.name) == field.default, field.name


def test_the_flags_of_serve_are_those_of_the_table():
    assert {argument.field for argument in VERBS["serve"].arguments} == {f.name for f in FIELDS if f.has_flag}


def test_a_variable_that_is_no_setting_is_a_warning():
    _, warnings = load({"store": "memory:"}, {"HOLDFAST_PROT": "1", "HOLDFAST_PORT": "1"})
    assert warnings == ["HOLDFAST_PROT is not a setting of this version; it is ignored"]


# -- plans -------------------------------------------------------------------------------------------------------


def planned(tmp_path, text, plan="mine"):
    path = tmp_path / "plans.toml"
    path.write_text(text)
    return load({"store": "memory:"}, {"HOLDFAST_PLANS": str(path), "HOLDFAST_PLAN": plan})[0]


def test_a_file_of_plans_adds_to_ours_and_replaces_them(tmp_path):
    settings = planned(tmp_path, "[mine]\ntasks_per_month = 7\n[free]\nname = 'Gratis'\n")
    assert settings.plan == "mine"
    assert (settings.plans["mine"].tasks_per_month, settings.plans["mine"].name) == (7, "Mine")
    assert (settings.plans["free"].name, settings.plans["free"].tasks_per_month) == ("Gratis", None)
    assert settings.plans["pro"].tasks_per_month == 25_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[mine]\ntasks_per_moon = 7", "tasks_per_moon"),
        ("[mine]\ntasks_per_month = 'many'", "Expected `int | null`"),
        ("[mine", "Expected"),
        ("mine = 3", "unsupported operand"),
        ("[mine]\nclaims_per_hour = 10\nmutations_per_hour = 19", "so that every claim can be finished"),
        ("[mine]\nmax_workers = 10\nheartbeats_per_hour = 3599", "so that every worker can renew"),
    ],
)
def test_a_plan_that_cannot_be_kept_or_read_is_refused(tmp_path, text, words):
    with pytest.raises(BadSettings) as refusal:
        planned(tmp_path, text)
    assert words in refusal.value.problems[0]
    assert str(tmp_path / "plans.toml") in refusal.value.problems[0]


def test_a_file_of_plans_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(BadSettings) as refusal:
        load({"store": "memory:"}, {"HOLDFAST_PLANS": str(tmp_path / "none.toml")})
    assert len(refusal.value.problems) == 1


def test_a_server_with_a_mistyped_limit_does_not_start(tmp_path):
    path = tmp_path / "plans.toml"
    path.write_text("[free]\ntask_per_month = 7\n")
    ended = run("--store", "memory:", PLANS=str(path))
    assert ended.status == 2
    assert "task_per_month" in ended.lines[0]
