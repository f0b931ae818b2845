"""Answers as people and scripts see them: tables, times, colours, chosen fields, events and the screen of `top`."""

import io
import json
import os
import sys
import termios
from contextlib import redirect_stdout

import pytest

from holdfast.transport.cli.commands import events, overview
from holdfast.transport.cli.display.answers import print_answer
from holdfast.transport.cli.display.event_lines import event_row, print_events
from holdfast.transport.cli.display.screen import Screen
from holdfast.transport.cli.display.table import cut_middle, format_table
from holdfast.transport.cli.display.times import relative, span
from holdfast.transport.cli.table import VERBS
from holdfast.transport.cli.verbs.verb import Invocation

NOW = 1_800_000_000.0
TASK = "tsk_01M7PHE29EJ3H0RSV91Y9MBZQ4"
KEY = "7c4732b6-7233-4ad8-a2f8-12848ff690f7"
NASTY = "\x1b[31mred\\"


class Terminal(io.StringIO):
    """A stdout that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def shown(monkeypatch):
    """A function that calls another with a terminal of 80 columns as stdout; what that shows."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def call(function, *arguments):
        with redirect_stdout(Terminal()) as out:
            function(*arguments)
        return out.getvalue()

    return call


def invoke(name, output="text", *fields):
    return Invocation(VERBS[name], {}, output, fields=fields)


# -- times -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (119.9, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h"), (172_800, "2 d"), (-1, "0 s")],
)
def test_spans_have_one_unit(seconds, words):
    assert span(seconds) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2027-01-15T07:57:00Z", "3 min ago"),
        ("2027-01-15T08:00:00.5Z", "now"),
        ("2027-01-15T10:00:01Z", "in 2 h"),
        ("2027-01-15T09:00:00+01:00", "now"),
        ("2027-01-15T08:00:00", "2027-01-15T08:00:00"),
        ("soon", "soon"),
    ],
)
def test_times_are_relative_to_now(text, words):
    assert relative(text, NOW) == words


# -- tables ------------------------------------------------------------------------------------------------------

TASKS = [
    {
        "id": TASK, "type": "review", "status": "pending", "priority": 0, "attemptCount": 0, "claimedBy": None,
        "updatedAt": "2020-01-01T00:00:00Z", "payload": {"pr": 1842, "paths": ["a", "b"]},
    },
    {
        "id": TASK[:-1] + "5", "type": "fix_issue_of_the_shop", "status": "dead_letter", "priority": 0,
        "attemptCount": 3, "claimedBy": "a-worker-with-a-long-name@a-host-with-a-long-name",
        "updatedAt": "2020-01-01T00:00:00Z", "payload": {},
    },
]  # fmt: skip


def test_a_table_fits_the_terminal_and_ids_are_not_cut(shown, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    header, *lines = shown(print_answer, {"tasks": TASKS}, invoke("task ls")).splitlines()
    assert header.split() == ["id", "type", "status", "atte…", "worker", "updated"], "priority has no value"
    assert max(map(len, [header, *lines])) <= 80
    assert [line.split()[0] for line in lines] == [task["id"] for task in TASKS]
    assert lines[0].endswith("d ago")
    assert "dead_letter" in lines[1]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_table_fits_any_width(monkeypatch, width):
    monkeypatch.setenv("NO_COLOR", "1")
    assert max(map(len, format_table(TASKS, VERBS["task ls"].columns, width=width))) <= max(width, 50)


def test_keys_fit_the_terminal(shown, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    key = {"keyId": KEY, "name": "machine vm", "shown": "hf_live_eLqV…U2KI", "scopes": ["jobs", "tasks", "read"]}
    key |= {"prefix": None, "lastUsedAt": "2020-01-01T00:00:00Z", "revokedAt": None}
    _, line = shown(print_answer, {"keys": [key]}, invoke("key ls")).splitlines()
    assert len(line) <= 80
    assert line.startswith(f"{KEY}  machin…  hf_li……U2KI  jobs ta…  ")
    assert line.endswith("d ago")


def test_wide_cuts_nothing_and_has_exact_times(shown):
    text = shown(print_answer, {"tasks": TASKS}, invoke("task ls", "wide"))
    assert TASKS[1]["claimedBy"] in text
    assert "2020-01-01T00:00:00Z" in text
    assert "attemptCount" in text


def test_scripts_get_tabs_and_exact_values(capsys):
    print_answer({"tasks": TASKS[:1]}, invoke("task ls"))
    assert capsys.readouterr().out == f"{TASK}\treview\tpending\t0\t0\t-\t2020-01-01T00:00:00Z\n"


def test_an_empty_list_is_said_on_a_terminal_alone(shown, capsys):
    assert shown(print_answer, {"tasks": []}, invoke("task ls")) == ""
    assert capsys.readouterr().err == "nothing to list\n"


def test_the_middle_is_cut_out():
    assert cut_middle("abcdefgh", 5) == "ab…gh"
    assert cut_middle("abcde", 5) == "abcde"


@pytest.mark.parametrize(("name", "value"), [(None, None), ("NO_COLOR", "1"), ("TERM", "dumb")])
def test_states_are_coloured_unless_that_is_turned_off(shown, monkeypatch, name, value):
    if name:
        monkeypatch.setenv(name, value)
    text = shown(print_answer, {"status": "dead_letter", "updatedAt": "2020-01-01T00:00:00Z"}, invoke("task get"))
    text += shown(print_answer, {"tasks": TASKS}, invoke("task ls"))
    assert ("\x1b" in text) is (name is None)
    assert text.count("\x1b[31mdead_letter") == (2 if name is None else 0)
    assert "2020-01-01T00:00:00Z (" in text, "a single answer has both times"


def test_no_colour_leaves_the_terminal(capsys):
    print_answer({"status": "claimed"}, invoke("owner"))
    assert capsys.readouterr().out == "status\tclaimed\n"


# -- fields ------------------------------------------------------------------------------------------------------


def test_fields_of_a_list_are_lines_of_values(capsys):
    print_answer({"tasks": TASKS}, invoke("task ls", "text", "payload.pr", "payload.paths.1", "type"))
    assert capsys.readouterr().out == "1842\tb\treview\n-\t-\tfix_issue_of_the_shop\n"


def test_one_field_of_an_answer_is_its_value_alone(capsys):
    print_answer({"lease_id": "abc", "token": 5}, invoke("claim", "text", "lease_id"))
    assert capsys.readouterr() == ("abc\n", "")


def test_a_document_keeps_its_shape(capsys):
    answer = {"tasks": TASKS[:1], "nextCursor": None, "hasMore": False, "agent_contract": {}}
    print_answer(answer, invoke("task ls", "json", "id"))
    assert json.loads(capsys.readouterr().out) == {"tasks": [{"id": TASK}], "nextCursor": None, "hasMore": False}
    print_answer({"a": {"b": 1}, "c": 2}, invoke("claim", "json", "a.b"))
    assert json.loads(capsys.readouterr().out) == {"a.b": 1}


def test_a_field_that_is_not_there_is_reported(capsys):
    print_answer({"lease_id": NASTY, "token": 5}, invoke("claim", "text", "lease", "token"))
    out, err = capsys.readouterr()
    assert out == "-\t5\n"
    assert "no field lease;" in err
    assert "lease_id, token" in err


def test_fields_are_of_verbs_that_print_an_answer():
    assert {"claim", "ls", "task history", "events", "key create"} <= set(verbs_with("--fields"))
    assert not {"run", "top", "guard", "hook", "doctor", "serve", "lock hold"} & set(verbs_with("--fields"))


def verbs_with(flag):
    from holdfast.transport.cli.help import verb_help

    return [name for name, verb in VERBS.items() if flag in verb_help(verb)]


# -- events ------------------------------------------------------------------------------------------------------


def event(kind, subject, /, **data):
    return {
        "seq": 1234, "version": 3, "at": "2020-01-01T00:00:00Z", "kind": kind, "subject": subject, "actor": KEY,
        "request_id": "r", "data": {"version": 3, "changed_at": "2020-01-01T00:00:00Z", "principal": KEY} | data,
    }  # fmt: skip


EVENTS = [
    event("lease.claimed", "lease:deploy/web", owner="ann@laptop", ttl=120_000_000, token=1, kind="job"),
    event("task.created", f"task:{TASK}", type="review", payload={"sha256": "7a", "size": 36}, ready=True, place=17),
    event("task.failed", f"task:{TASK}", worker=None, ended={"worker": "w1", "reason": "tests failed", "attempt": 1}),
    event("lease.renewed", "lease:deploy/web", note=NASTY, expires_at="2020-01-01T00:02:00Z"),
    event("reservation.reserved", "reservation:r1", paths=["src/", "README.md"], owner="bob"),
]


@pytest.mark.parametrize(
    ("number", "who", "changes"),
    [
        (0, "ann@laptop", "for 2 min"),
        (1, "machine vm", "review, payload 36 B"),
        (2, "w1", "tests failed"),
        (3, "machine vm", NASTY),
        (4, "bob", "src/ README.md"),
    ],
)
def test_an_event_says_who_and_what_changed(number, who, changes):
    row = event_row(EVENTS[number], {KEY: "machine vm"})
    assert (row["who"], row["changes"]) == (who, changes)


def test_an_unknown_key_is_shown_by_the_start_of_its_id():
    assert event_row(EVENTS[1], {})["who"] == KEY[:8]
    assert event_row(EVENTS[1] | {"actor": "retention"}, {})["who"] == "retention", "a part of the server"


class Keys:
    """A client whose key may list all keys, or only read its own."""

    def __init__(self, *scopes):
        self.scopes = scopes

    def call(self, operation):
        if operation == "read_account":
            return {"key": {"keyId": KEY, "name": "mine", "scopes": self.scopes}}
        assert "admin" in self.scopes
        return {"keys": [{"keyId": KEY, "name": "machine vm"}]}


@pytest.mark.parametrize(("scope", "name"), [("admin", "machine vm"), ("read", "mine")])
def test_events_fit_a_terminal(shown, monkeypatch, scope, name):
    monkeypatch.setenv("NO_COLOR", "1")
    text = shown(print_events, EVENTS, Keys(scope), invoke("events"))
    header, *lines = text.splitlines()
    assert header.split() == ["seq", "at", "kind", "subject", "who", "changes"]
    assert max(map(len, lines)) <= 80
    assert name in lines[1]
    assert KEY not in text
    assert "\x1b" not in text
    assert "  \\x1b[31mred" in lines[3], "what agents wrote is escaped once"


def test_events_of_scripts_have_all_data(capsys):
    print_events(EVENTS[:1], None, invoke("events"))
    cells = capsys.readouterr().out.rstrip("\n").split("\t")
    assert cells[:5] == ["1234", "2020-01-01T00:00:00Z", "lease.claimed", "lease:deploy/web", KEY]
    assert json.loads(cells[5])["ttl"] == 120_000_000


def test_fields_of_events(capsys):
    print_events(EVENTS[:2], None, invoke("events", "text", "kind", "data.type"))
    assert capsys.readouterr().out == "lease.claimed\t-\ntask.created\treview\n"
    print_events(EVENTS[:2], None, invoke("events", "json", "kind"))
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()][1] == {"kind": "task.created"}


def test_a_followed_event_is_one_line_that_fits(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    long = event("task.failed", f"task:{TASK}", worker="w1", note="x" * 100)
    line = events._followed_line(event_row(long, {}), NOW)
    assert len(line) == 80
    assert line[8:].startswith(f"  task.failed      {TASK}  w1  xx")


# -- top ---------------------------------------------------------------------------------------------------------


def fleet(count):
    jobs = [
        {"job_id": f"job/{number}", "owner": "ann", "expires_in_seconds": 300, "waiting": 2, "note": NASTY * 20}
        for number in range(count)
    ]
    queues = [{"type": f"type-{number}", "pending": 1, "claimed": 2, "dead": 3} for number in range(count)]
    return overview.Overview(jobs, False, queues)


@pytest.mark.parametrize("count", [0, 1, 50])
def test_top_fits_the_screen(count):
    lines = overview.draw_overview(fleet(count), "http://127.0.0.1:7700  12:00:00", 80, 22)
    assert len(lines) <= 22
    assert max(map(len, lines)) <= 80
    assert f"{count} job{'' if count == 1 else 's'} held, {2 * count} waiting for them" in lines[1]
    text = "\n".join(lines)
    assert "\x1b" not in text
    assert ("5 min    2 " in text) is (count > 0), "each job has its time and its waiters"
    assert ("more: holdfast ls" in text) is (count == 50)


def test_a_key_ends_the_screen_and_the_terminal_is_as_before(monkeypatch):
    ours, theirs = os.openpty()
    modes = termios.tcgetattr(theirs)
    with open(theirs, closefd=False) as end:
        monkeypatch.setattr(sys, "stdin", end)
        monkeypatch.setattr(sys, "stdout", io.StringIO())
        with Screen() as screen:
            assert termios.tcgetattr(theirs) != modes, "keys are read at once, without Enter"
            screen.wake()
            assert not screen.wait(10)
            assert not screen.wait(0)
            os.write(ours, b"x")
            assert not screen.wait(10), "another key redraws"
            screen.draw(["a", "b"])
            os.write(ours, b"q")
            assert screen.wait(10)
        assert termios.tcgetattr(theirs) == modes
        shown = sys.stdout.getvalue()
        assert shown.startswith("\x1b[?1049h")
        assert shown.endswith("\x1b[?1049l")
    os.close(ours)
    os.close(theirs)
