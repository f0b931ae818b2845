"""Completion in shells: verbs, flags, values of flags, and ids. A shell function stands for the program."""

import shlex
import subprocess

import pytest

from holdfast.transport.cli.commands import completion
from holdfast.transport.cli.main import make_parser, read_arguments
from holdfast.transport.cli.table import VERBS, arguments_of, find_verb
from holdfast.transport.cli.verbs.verb import Invocation

IDS = ["deploy/web", "deploy/api", "issue:42", "issue:43", "$(touch evil)", "a b;ls", "tsk_1"]


@pytest.fixture
def script(capsys):
    """A function that gives the script for a shell."""

    def script_of(shell):
        assert completion.run(Invocation(VERBS["completion"], {"shell": shell})) == 0
        return capsys.readouterr().out

    return script_of


@pytest.fixture
def complete(script, tmp_path):
    """A function that completes a line in bash; `asked` is what the program was called with."""
    asked = tmp_path / "asked"

    def complete_line(line, words=None):
        words = line.split(" ") if words is None else words
        program = f"""
            holdfast() {{ echo "$@" >> {asked}; printf '%s\\n' {shlex.join(IDS)}; }}
            {script("bash")}
            COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}
            COMP_LINE={shlex.quote(line)}; COMP_POINT={len(line)}
            _holdfast
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        done = subprocess.run(["/bin/bash", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.splitlines(), asked.read_text().split("\n")[0] if asked.exists() else ""

    return complete_line


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("holdfast fo", ["force-release"]),
        ("holdfast task rel", ["release"]),
        ("holdfast task create --pr", ["--priority"]),
        ("holdfast claim deploy --ow", ["--owner"]),
        ("holdfast ls -o ", ["text", "wide", "json", "yaml"]),
        ("holdfast task get tsk_1 --output y", ["yaml"]),
        ("holdfast task cancel tsk_1 --mode f", ["force"]),
        ("holdfast task ls --status d", ["dead_letter"]),
        ("holdfast completion z", ["zsh"]),
        ("holdfast claim x --key-file ", [""]),
    ],
)
def test_bash_completes_verbs_flags_and_values(complete, typed, offered):
    assert complete(typed) == (offered, "")


@pytest.mark.parametrize(
    ("typed", "offered", "asked"),
    [
        ("holdfast release deploy/", ["deploy/web", "deploy/api"], "ls --fields job_id"),
        ("holdfast run --ttl 5m deploy/w", ["deploy/web"], "ls --fields job_id"),
        ("holdfast task get t", ["tsk_1"], "task ls --fields id"),
        ("holdfast await task t", ["tsk_1"], "task ls --fields id"),
        ("holdfast session close t", ["tsk_1"], "session ls --fields session_id"),
        ("holdfast claim x --session t", ["tsk_1"], "session ls --fields session_id"),
        ("holdfast files get t", ["tsk_1"], "files ls --all-spaces --fields reservation_id"),
    ],
)
def test_bash_completes_ids(complete, typed, offered, asked):
    assert complete(typed) == (offered, asked)


def test_ids_with_colons_are_completed_after_the_colon(complete):
    """Bash splits words at colons, and replaces only what follows the last one."""
    assert complete("holdfast owner issue:4", ["holdfast", "owner", "issue", ":", "4"])[0] == ["42", "43"]
    assert complete("holdfast owner issue:", ["holdfast", "owner", "issue", ":"])[0] == ["42", "43"]


def test_a_name_that_an_agent_chose_is_not_run(complete, tmp_path):
    offered, _ = complete("holdfast owner ")
    assert r"\$\(touch\ evil\)" in offered, "it is quoted, so that it is one word"
    assert r"a\ b\;ls" in offered
    assert not (tmp_path / "evil").exists()


def test_what_completion_asks_is_a_valid_command():
    commands = {
        completion.list_command(verb, argument) for verb in VERBS.values() for argument in arguments_of(verb)
    } - {""}
    assert len(commands) == 6
    for command in commands:
        verb, rest = find_verb(command.split())
        assert read_arguments(verb, rest)["fields"]


def test_completion_for_every_shell_has_every_verb(script):
    for name in ("zsh", "fish"):
        assert all(word in script(name) for verb in VERBS for word in verb.split())
    assert "-s o -l output -x -a 'text wide json yaml'" in script("fish")
    assert "-a '(holdfast task ls --fields id 2>/dev/null)'" in script("fish")


def test_another_shell_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as exit_info:
        make_parser(VERBS["completion"]).parse_args(["tcsh"])
    assert exit_info.value.code == 2
    assert "bash" in capsys.readouterr().err
