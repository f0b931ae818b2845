"""Verb `completion`: scripts for shells, made from the verb tables. They ask the server for ids."""

from __future__ import annotations

from holdfast.transport.cli import exit_status
from holdfast.transport.cli.table import VERBS, arguments_of, first_words, second_words
from holdfast.transport.cli.verbs.verb import Argument, Invocation, Verb

# Ids are compared and quoted by the shell's own means. `compgen -W` would expand them: an agent that names a job
# `$(command)` would run it in the shell of whoever completes that name. COMP_WORDS is split at colons and COMP_LINE
# is not: `whole` is the word as typed, and `before` the part of it that stays.
_BASH = """\
_holdfast() {{
    local flags="" list="" id whole before
    local word="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    local typed="${{COMP_WORDS[*]:1:COMP_CWORD-1}}"
    [[ $word == : ]] && word=""
    whole="${{COMP_LINE:0:COMP_POINT}}" whole="${{whole##* }}"
    [[ $whole == *"$word" ]] || whole="$word"
    before="${{whole%"$word"}}"
    COMPREPLY=()
    case "$typed" in
{cases}
    esac
    if [[ -n $list && $word != -* ]]; then
        while IFS= read -r id; do
            [[ -n $id && $id == "$whole"* ]] && COMPREPLY+=("$(printf %q "${{id#"$before"}}")")
        done <<< "$(holdfast $list 2>/dev/null)"
    fi
    [[ ${{#COMPREPLY[@]}} -eq 0 ]] && COMPREPLY=($(compgen -W "$flags" -- "$word"))
}}
complete -o default -F _holdfast holdfast
"""
_LISTS = {
    "task": "task ls --fields id",
    "await": "task ls --fields id",
    "session": "session ls --fields session_id",
    "files": "files ls --all-spaces --fields reservation_id",
    "key": "key ls --fields keyId",
    "webhook": "webhook ls --fields webhook_id",
}
"""Commands that print the ids that verbs with this first word take."""
_LISTS_BY_FIELD = {"job_id": "ls --fields job_id", "session_id": _LISTS["session"]}
_FILES = ("FILE", "PATH", "FOLDER")
"""Values that are files."""


def run(invocation: Invocation) -> int:
    """Print the script for a shell."""
    shell = invocation.arguments["shell"]
    if shell == "fish":
        print("\n".join(_fish()))
        return exit_status.OK
    if shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
    print(_BASH.format(cases="\n".join(_cases())), end="")
    return exit_status.OK


def list_command(verb: Verb, argument: Argument) -> str:
    """The words after `holdfast` that print the values that an argument can have; empty if there is no such list."""
    if argument.field == "id":
        return _LISTS.get(verb.name.split()[0], "")
    return _LISTS_BY_FIELD.get(argument.field, "")


def _cases() -> list[str]:
    """Completions by what was typed before; verbs of two words first, because the first match wins."""
    firsts = dict.fromkeys(name.split()[0] for name in VERBS if " " in name)
    cases = [_case(f'"{name}"|"{name} "*', verb) for name, verb in VERBS.items() if " " in name]
    cases += [f'        "{first}") flags="{" ".join(second_words(first))}" ;;' for first in firsts]
    cases += [_case(f'"{name}"|"{name} "*', verb) for name, verb in VERBS.items() if " " not in name]
    return [*cases, f'        "") flags="{" ".join(first_words())}" ;;']


def _case(pattern: str, verb: Verb) -> str:
    """The case of one verb: its flags and ids, and after a flag the values of that flag."""
    lists = [list_command(verb, argument) for argument in verb.arguments if argument.is_positional]
    choices = [choice for argument in verb.arguments if argument.is_positional for choice in argument.choices]
    lines = [f'        {pattern}) list="{next(iter(lists), "")}" flags="{" ".join([*choices, *_flags(verb)])}"']
    lines.append('            case "$previous" in')
    plain: list[str] = []
    for argument in arguments_of(verb):
        if argument.is_positional or argument.value is None:
            continue
        values, command = " ".join(argument.choices), list_command(verb, argument)
        if values or command:
            lines.append(f'            {"|".join(argument.flags)}) list="{command}" flags="{values}" ;;')
        else:
            plain += argument.flags
    lines += [f'            {"|".join(plain)}) list="" flags="" ;;'] if plain else []
    return "\n".join([*lines, "            esac ;;"])


def _fish() -> list[str]:
    lines = ["complete -c holdfast -f"]
    lines += [f"complete -c holdfast -n __fish_use_subcommand -a {first}" for first in first_words()]
    for name, verb in VERBS.items():
        first, _, second = name.partition(" ")
        seen = f"__fish_seen_subcommand_from {first}"
        if second:
            lines.append(f"complete -c holdfast -n '{seen}' -a {second} -d '{_quote(verb.summary)}'")
            seen += f"; and __fish_seen_subcommand_from {second}"
        lines += [
            _fish_argument(verb, argument, f"complete -c holdfast -n '{seen}'") for argument in arguments_of(verb)
        ]
    return [line for line in lines if line]


def _fish_argument(verb: Verb, argument: Argument, start: str) -> str:
    """The line of one argument; empty for a positional one whose values are not known."""
    command, values = list_command(verb, argument), " ".join(argument.choices)
    offered = f" -a '(holdfast {command} 2>/dev/null)'" if command else f" -a '{values}'" if values else ""
    if argument.is_positional:
        return f"{start} -F" if argument.value in _FILES else f"{start}{offered}" if offered else ""
    flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in argument.flags)
    takes = "" if argument.value is None else " -r -F" if argument.value in _FILES else " -x"
    return f"{start} {flags}{takes}{offered} -d '{_quote(argument.help)}'"


def _quote(text: str) -> str:
    return text.replace("\n", " ").replace("\\", "\\\\").replace("'", "\\'")


def _flags(verb: Verb) -> list[str]:
    return [flag for argument in arguments_of(verb) if not argument.is_positional for flag in argument.flags] + [
        "--help"
    ]
