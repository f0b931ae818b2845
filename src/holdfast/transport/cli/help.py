"""The help, made from the tables: the same on every Python, and short enough for a screen."""

from __future__ import annotations

from difflib import get_close_matches

from holdfast.transport.cli import exit_status
from holdfast.transport.cli.table import COMMON, GROUPS, VERBS, arguments_of
from holdfast.transport.cli.verbs.verb import Argument, Verb

_WIDTH = 30


def overview() -> str:
    """All verbs, by what they are about; those of two words on one line by their first."""
    lines = ["usage: holdfast VERB …", "", "One live owner, a visible history and automatic recovery for agent work."]
    for title, verbs in GROUPS:
        lines += ["", f"{title}:"]
        lines += [f"  {verb.name:<18} {verb.summary}" for verb in verbs if " " not in verb.name]
        nouns = dict.fromkeys(verb.name.split()[0] for verb in verbs if " " in verb.name)
        lines += [f"  {noun:<18} {', '.join(_seconds(noun))}" for noun in nouns]
    lines += ["", "`holdfast VERB --help` tells more. `holdfast --version` tells which one this is."]
    return "\n".join(lines)


def nearest(noun: str) -> str:
    """What was perhaps meant, if anything comes near."""
    known = dict.fromkeys(name.split()[0] for name in VERBS)
    return "".join(f"; did you mean {verb!a}?" for verb in get_close_matches(noun, known, 1))


def noun_help(noun: str) -> str:
    """The verbs that begin with this word."""
    lines = [f"usage: holdfast {noun} VERB …", ""]
    lines += [f"  {verb.name:<22} {verb.summary}" for verb in VERBS.values() if verb.name.startswith(f"{noun} ")]
    return "\n".join(lines)


def verb_help(verb: Verb) -> str:
    """Everything about one verb."""
    lines = [usage(verb), "", f"{verb.summary[0].upper()}{verb.summary[1:]}."]
    own = [argument for argument in arguments_of(verb) if argument not in COMMON]
    for arguments in (own, COMMON if verb.asks else ()):
        if arguments:
            lines.append("")
            lines += [_line(argument) for argument in arguments]
    if verb.more:
        lines += ["", verb.more]
    return "\n".join(lines)


def usage(verb: Verb) -> str:
    """What to type."""
    parts = [f"usage: holdfast {verb.name}"]
    command = ""
    for argument in arguments_of(verb):
        if argument.is_word and argument.field == "command":
            command = f" -- {argument.flags[0]} …"
        elif argument.is_word:
            name = f"{argument.flags[0]}{' …' if argument.many else ''}"
            parts.append(name if argument.required else f"[{name}]")
        elif argument.required:
            parts.append(f"{argument.flags[-1]} {argument.value}")
    flags = any(not argument.is_word and not argument.required for argument in arguments_of(verb))
    return " ".join(parts) + (" [FLAGS]" if flags else "") + command


def statuses() -> str:
    """What exit statuses mean."""
    return "\n".join(f"{status}  {meaning}" for status, meaning in exit_status.MEANINGS.items())


def _line(argument: Argument) -> str:
    name = ", ".join(argument.flags) + (f" {argument.value}" if argument.value and not argument.is_word else "")
    told = argument.help.replace("\n", "\n" + " " * (_WIDTH + 3))
    return f"  {name:<{_WIDTH}} {told}"


def _seconds(noun: str) -> list[str]:
    return [name.split()[1] for name in VERBS if name.startswith(f"{noun} ")]
