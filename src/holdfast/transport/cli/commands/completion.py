"""Verb `completion`: scripts for shells, made from the verb tables."""

from __future__ import annotations

import sys

from holdfast.transport.cli import exit_status
from holdfast.transport.cli.table import VERBS, arguments_of, first_words, second_words
from holdfast.transport.cli.verbs.verb import Invocation, Verb

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


def run(invocation: Invocation) -> int:
    """Print the script for a shell."""
    shell = invocation.arguments["shell"]
    if shell not in {"bash", "zsh", "fish"}:
        print("holdfast: completion supports bash, zsh and fish", file=sys.stderr)
        return exit_status.USAGE
    if shell == "fish":
        print("\n".join(_fish()))
        return exit_status.OK
    if shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
    print(_BASH.format(cases="\n".join(_cases())), end="")
    return exit_status.OK


def _cases() -> list[str]:
    """Completions by what was typed before; verbs of two words first, because the first match wins."""
    firsts = dict.fromkeys(name.split()[0] for name in VERBS if " " in name)
    cases = [f'        "{name}"*) flags="{" ".join(_flags(verb))}" ;;' for name, verb in VERBS.items() if " " in name]
    cases += [f'        "{first}") flags="{" ".join(second_words(first))}" ;;' for first in firsts]
    cases += [
        f'        "{name}"|"{name} "*) flags="{" ".join(_flags(verb))}" ;;'
        for name, verb in VERBS.items()
        if " " not in name
    ]
    return [*cases, f'        "") flags="{" ".join(first_words())}" ;;']


def _fish() -> list[str]:
    lines = ["complete -c holdfast -f"]
    lines += [f"complete -c holdfast -n __fish_use_subcommand -a {first}" for first in first_words()]
    for name, verb in VERBS.items():
        first, _, second = name.partition(" ")
        seen = f"__fish_seen_subcommand_from {first}"
        if second:
            lines.append(f"complete -c holdfast -n '{seen}' -a {second} -d '{_quote(verb.summary)}'")
            seen += f"; and __fish_seen_subcommand_from {second}"
        for argument in arguments_of(verb):
            if not argument.is_positional:
                long = argument.flags[-1].lstrip("-")
                kind = "-l" if argument.flags[-1].startswith("--") else "-s"
                lines.append(f"complete -c holdfast -n '{seen}' {kind} {long} -d '{_quote(argument.help)}'")
    return lines


def _quote(text: str) -> str:
    return text.replace("\n", " ").replace("'", "\\'")


def _flags(verb: Verb) -> list[str]:
    return [flag for argument in arguments_of(verb) if not argument.is_positional for flag in argument.flags] + [
        "--help"
    ]
