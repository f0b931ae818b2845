"""Arguments, addresses and names that are checked or chosen before anything is sent. No server is needed."""

import pwd

import pytest

from holdfast.addresses import url_problem
from holdfast.client.errors import Unreachable, error_of
from holdfast.client.request import build_request, find_operation
from holdfast.operations.bounds import LOCK_TTL
from holdfast.owner import default_owner
from holdfast.server_keys import address_of
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.call import report_error
from holdfast.transport.cli.durations import parse_done_for, parse_duration, parse_whole_seconds, parse_within
from holdfast.transport.cli.help import fit, overview, verb_help
from holdfast.transport.cli.main import main, read_arguments
from holdfast.transport.cli.table import VERBS, arguments_of
from holdfast.transport.cli.verbs.verb import DURATION, Invocation

SECONDS = {
    "90": 90, "0": 0, "0.5": 0.5, "90s": 90, "5m": 300, "1h": 3600, "2d": 172_800, "500ms": 0.5, "1.5h": 5400,
    "1h30m": 5400, "1.1s": 1.1,
}  # fmt: skip
NO_DURATIONS = ("", "5x", "m", "-5", "+5", "5 m", "1e3", "inf", "nan", "5M", "1,5", "0x10", "٣", "h1")


@pytest.mark.parametrize(("text", "seconds"), SECONDS.items())
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", NO_DURATIONS)
def test_other_words_are_no_durations(text):
    with pytest.raises(ValueError, match="expected seconds"):
        parse_duration(text)


def test_whole_seconds_and_bounds():
    assert parse_whole_seconds("1h") == parse_done_for("1h") == 3600
    assert type(parse_whole_seconds("1.0m")) is int
    with pytest.raises(ValueError, match="whole seconds"):
        parse_whole_seconds("0.5")
    with pytest.raises(ValueError, match="1 to 3600"):
        parse_within("2d", LOCK_TTL)


def words_of(verb, **values):
    """Words for every argument that the verb requires."""
    words = []
    for argument in arguments_of(verb):
        if argument.field == "command":
            continue
        if argument.required:
            usual = argument.choices[0] if argument.choices else "1" if argument.value == "NUMBER" else "x"
            value = values.get(argument.field, usual)
            words += [value] if argument.is_positional else [argument.flags[-1], value]
    return words


def commands_of(verb):
    return (
        ["--", "true"] if any(argument.field == "command" and argument.required for argument in verb.arguments) else []
    )


TIMED = [
    (verb.name, argument.flags[-1], argument.field)
    for verb in VERBS.values()
    for argument in verb.arguments
    if argument.value == DURATION
]


@pytest.mark.parametrize(("name", "flag", "field"), TIMED)
def test_every_flag_with_seconds_takes_a_duration(name, flag, field):
    verb = VERBS[name]
    assert read_arguments(verb, [*words_of(verb), flag, "5m", *commands_of(verb)])[field] == 300
    assert read_arguments(verb, [*words_of(verb), flag, "300", *commands_of(verb)])[field] == 300


def test_every_flag_with_seconds_says_so():
    assert len(TIMED) > 25
    assert not [
        (verb.name, argument.flags)
        for verb in VERBS.values()
        for argument in verb.arguments
        if argument.field.lower().endswith(("seconds", "timeout"))
        and argument.value != DURATION
        and argument.field != "on_timeout"  # an answer
    ]


@pytest.mark.parametrize("name", [verb.name for verb in VERBS.values() if words_of(verb)[:1] == ["x"]])
def test_an_empty_word_is_wrong_usage(name, capsys):
    """Of every verb whose first word is required."""
    verb = VERBS[name]
    with pytest.raises(SystemExit) as exit_info:
        read_arguments(verb, ["", *words_of(verb)[1:], *commands_of(verb)])
    assert exit_info.value.code == verb.usage_status
    assert "must not be empty" in capsys.readouterr().err


def test_a_name_that_would_be_another_path_is_wrong_usage():
    """It is found when the request is built, so there is no status of a server."""
    with pytest.raises(Exception, match="consist of dots") as caught:
        build_request(find_operation("claim_job"), {"job_id": ".."})
    assert report_error(caught.value, Invocation(VERBS["claim"], {})) == 2


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "127.0.0.9"])
def test_an_address_of_this_machine_needs_no_scheme(host):
    assert address_of(f"{host}:7700") == f"http://{host}:7700"
    assert address_of(None, {"HOLDFAST_URL": f"{host}:7700/"}) == f"http://{host}:7700"
    assert url_problem(address_of(f"{host}:7700")) is None


@pytest.mark.parametrize("address", ["box:7700", "box.example", "10.0.0.1:7700", "[::2", "localhost.example:7700"])
def test_another_address_needs_its_scheme(address):
    assert address_of(address) == address
    assert f"https://{address}" in url_problem(address)


@pytest.fixture
def unnamed(monkeypatch):
    """An environment without names, as under cron."""
    for name in ("HOLDFAST_OWNER", "USER", "LOGNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("platform.node", lambda: "box")
    return monkeypatch


def test_without_a_user_variable_the_owner_is_the_user_of_the_process(unnamed):
    unnamed.setattr("os.getuid", lambda: 0)
    assert default_owner() == f"{pwd.getpwuid(0).pw_name}@box"


def test_a_user_without_an_entry_is_named_by_id_and_host(unnamed):
    unnamed.setattr("os.getuid", lambda: 987_654)
    assert default_owner() == "uid-987654@box"
    unnamed.setattr("platform.node", lambda: "")
    assert default_owner() == "uid-987654@localhost"


@pytest.mark.parametrize("code", ["missing_api_key", "invalid_api_key"])
def test_without_a_key_the_error_says_how_to_set_one(code, capsys):
    document = {"error": code, "message": "a bearer token is required"}
    assert report_error(error_of(401, document, {}), Invocation(VERBS["ls"], {})) == 4
    shown = capsys.readouterr().err
    assert "HOLDFAST_API_KEY" in shown
    assert "--key-file" in shown
    assert "holdfast key create" in shown
    assert "bearer" not in shown


def test_an_error_names_the_servers_that_the_configuration_has_keys_for(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "holdfast/servers.json"
    file.parent.mkdir()
    file.touch(0o600)
    file.write_text('{"http://127.0.0.1:7701": {"key": "k"}}')
    document = {"error": "missing_api_key", "message": "a bearer token is required"}
    for error in (error_of(401, document, {}), Unreachable("no answer")):
        report_error(error, Invocation(VERBS["ls"], {}))
        assert "Your configuration has keys for http://127.0.0.1:7701: --url or" in capsys.readouterr().err


def test_a_key_without_the_scope_is_told_which_key_has_it(capsys):
    document = {"error": "forbidden", "message": "this key lacks the scope admin", "scope": "admin"}
    assert report_error(error_of(403, document, {}), Invocation(VERBS["key ls"], {})) == 4
    shown = capsys.readouterr().err
    assert "a key with the scope admin: the one that the server's first start showed has every scope" in shown
    assert "HOLDFAST_ROOT_KEY" in shown


def test_a_value_that_the_server_refuses_leads_to_the_help_of_the_verb(capsys):
    document = {"error": "invalid_request", "message": "no *", "errors": [{"field": "job_id", "message": "no *"}]}
    assert report_error(error_of(400, document, {}), Invocation(VERBS["claim"], {})) == 2
    assert "next: `holdfast claim --help` describes the arguments" in capsys.readouterr().err


# -- help --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [70, 80, 100])
def test_help_is_wrapped_to_the_terminal(width):
    for text in (overview(), *map(verb_help, VERBS.values())):
        wrapped = fit(text, width)
        assert max(map(len, wrapped.splitlines())) <= width
        assert wrapped.split() == text.split(), "no word is lost"


def test_every_exit_status_has_a_word_and_a_meaning():
    assert len(exit_status.WORDS) == len(exit_status.MEANINGS)
    assert all(f"{number} {word}" in overview() for number, word in enumerate(exit_status.WORDS))


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["help", "claim"], 0, "usage: holdfast claim NAME"),
        (["help", "task", "ls"], 0, "usage: holdfast task ls"),
        (["help", "task"], 0, "usage: holdfast task VERB"),
        (["task", "foo"], 2, "unknown verb 'task foo'"),
        (["help", "foo"], 2, "unknown verb 'foo'"),
    ],
)
def test_help_of_a_verb(monkeypatch, capsys, words, status, says):
    monkeypatch.setattr("sys.argv", ["holdfast", *words])
    with pytest.raises(SystemExit) as exit_info:
        main()
    assert (exit_info.value.code or 0) == status
    assert says in "".join(capsys.readouterr())
