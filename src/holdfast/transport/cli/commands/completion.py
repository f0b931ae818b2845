"""`holdfast completion`: scripts for shells, made from the tables of verbs."""

from __future__ import annotations

import sys
from typing import Any

from holdfast.transport.cli import exit_status
from holdfast.transport.cli.table import VERBS, arguments_of
from holdfast.transport.cli.verbs.verb import Verb

_BASH = """\
_holdfast() {{
    local verb flags word="${{COMP_WORDS[COMP_CWORD]}}" typed="${{COMP_WORDS[*]:1:COMP_CWORD-1}}"
    case "$typed" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
}}
complete -o default -F _holdfast holdfast
"""


def run(verb: Verb, arguments: dict[str, Any]) -> int:  # noqa: ARG001 - every room has this shape
    """Print the script."""
    shell = arguments["shell"]
    if shell not in {"bash", "zsh", "fish"}:
        print("holdfast: completion is for bash, zsh or fish", file=sys.stderr)
        return exit_status.USAGE
    if shell == "fish":
        print("\n".join(_fish()))
        return exit_status.OK
    if shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
    print(_BASH.format(cases="\n".join(_cases())), end="")
    return exit_status.OK


def _cases() -> list[str]:
    """What may come next, by what was typed; longer beginnings first, because the first that fits is taken."""
    nouns = dict.fromkeys(name.split()[0] for name in VERBS if " " in name)
    cases = [f'        "{name}"*) flags="{" ".join(_flags(verb))}" ;;' for name, verb in VERBS.items() if " " in name]
    cases += [f'        "{noun}") flags="{" ".join(_seconds(noun))}" ;;' for noun in nouns]
    cases += [
        f'        "{name}"|"{name} "*) flags="{" ".join(_flags(verb))}" ;;'
        for name, verb in VERBS.items()
        if " " not in name
    ]
    return [*cases, f'        "") flags="{" ".join(_firsts())}" ;;']


def _fish() -> list[str]:
    lines = ["complete -c holdfast -f"]
    lines += [f"complete -c holdfast -n __fish_use_subcommand -a {first}" for first in _firsts()]
    for name, verb in VERBS.items():
        first, _, second = name.partition(" ")
        seen = f"__fish_seen_subcommand_from {first}"
        if second:
            lines.append(f"complete -c holdfast -n '{seen}' -a {second} -d '{_quoted(verb.summary)}'")
            seen += f"; and __fish_seen_subcommand_from {second}"
        for argument in arguments_of(verb):
            if not argument.is_word:
                long = argument.flags[-1].lstrip("-")
                kind = "-l" if argument.flags[-1].startswith("--") else "-s"
                lines.append(f"complete -c holdfast -n '{seen}' {kind} {long} -d '{_quoted(argument.help)}'")
    return lines


def _quoted(text: str) -> str:
    return text.replace("\n", " ").replace("'", "\\'")


def _firsts() -> list[str]:
    return list(dict.fromkeys(name.split()[0] for name in VERBS))


def _seconds(noun: str) -> list[str]:
    return [name.split()[1] for name in VERBS if name.startswith(f"{noun} ")]


def _flags(verb: Verb) -> list[str]:
    return [flag for argument in arguments_of(verb) if not argument.is_word for flag in argument.flags] + ["--help"]
