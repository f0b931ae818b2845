"""Help texts, made from the verb tables: the same on every Python version, and short enough for a screen."""

from __future__ import annotations

from difflib import get_close_matches

from holdfast.transport.cli import exit_status
from holdfast.transport.cli.durations import EXPLAINED as DURATIONS
from holdfast.transport.cli.table import GROUPS, VERBS, arguments_of, common_arguments_of, first_words, second_words
from holdfast.transport.cli.verbs.verb import DURATION, Argument, Verb

_WIDTH = 30
_OTHER_WORDS = {
    "acquire": "claim",
    "jobs": "ls",
    "list": "ls",
    "renew": "heartbeat",
    "server": "serve",
    "start": "serve",
    "status": "top",
    "unlock": "release",
}
"""Words of other programs for our verbs."""
_FULL_LINE, _NARROWEST = 90, 70
"""Characters from which on a line of a paragraph is followed by another, and the narrowest terminal that is minded."""


def overview() -> str:
    """All verbs by group; verbs of two words are listed on one line by their first word."""
    lines = ["usage: holdfast VERB …: one live owner, a visible history and automatic recovery for agent work."]
    for title, verbs in GROUPS:
        lines.append(f"{title}:")
        lines += [f"  {verb.name:<15} {verb.summary}" for verb in verbs if verb.for_people and " " not in verb.name]
        firsts = dict.fromkeys(verb.name.split()[0] for verb in verbs if " " in verb.name)
        lines += [f"  {first:<15} {', '.join(second_words(first))}" for first in firsts]
    lines += [
        "",
        "First steps: `holdfast serve`, `holdfast run deploy/web -- ./deploy.sh`, `holdfast top`.",
        "`holdfast VERB --help` describes a verb, `holdfast doctor` says what is wrong.",
        f"Exit status {', '.join(f'{status} {word}' for status, word in enumerate(exit_status.WORDS))}.",
    ]
    return "\n".join(lines)


def fit(text: str, width: int) -> str:
    """A help text for a terminal: longer lines continue below their last column."""
    import re
    import textwrap

    lines: list[str] = []
    for line in text.splitlines():
        if lines and len(lines[-1]) > _FULL_LINE and line[:1].strip():  # the continuation of a paragraph
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    shown: list[str] = []
    for line in lines:
        columns = re.match(r"  \S.*?\s{2,}(?=\S)|\s*", line)
        indent = " " * (columns.end() if columns else 0)
        shown += textwrap.wrap(line, max(width, _NARROWEST), subsequent_indent=indent, break_on_hyphens=False) or [""]
    return "\n".join(shown)


def suggest(words: str) -> str:
    """A suggestion for a verb that does not exist, or nothing."""
    first, _, second = words.partition(" ")
    if words in _OTHER_WORDS:
        found = [_OTHER_WORDS[words]]
    elif second:
        found = [f"{first} {each}" for each in get_close_matches(second, second_words(first), 1)]
    else:
        found = get_close_matches(first, first_words(), 1)
    return "".join(f"; did you mean {verb!a}?" for verb in found)


def group_help(first: str) -> str:
    """The verbs that begin with this word."""
    lines = [f"usage: holdfast {first} VERB …", ""]
    lines += [f"  {verb.name:<22} {verb.summary}" for verb in VERBS.values() if verb.name.startswith(f"{first} ")]
    return "\n".join(lines)


def verb_help(verb: Verb) -> str:
    """Usage, summary and flags of one verb."""
    lines = [usage(verb), "", f"{verb.summary[0].upper()}{verb.summary[1:]}."]
    own = verb.arguments
    for arguments in (own, common_arguments_of(verb)):
        if arguments:
            lines.append("")
            lines += [_line(argument) for argument in arguments]
    if any(argument.value == DURATION for argument in own):
        lines += ["", DURATIONS]
    if verb.more:
        lines += ["", verb.more]
    return "\n".join(lines)


def usage(verb: Verb) -> str:
    """The usage line of one verb."""
    parts = [f"usage: holdfast {verb.name}"]
    command = ""
    for argument in arguments_of(verb):
        if argument.is_positional and argument.field == "command":
            command = f" -- {argument.flags[0]} …" if argument.required else f" [-- {argument.flags[0]} …]"
        elif argument.is_positional:
            name = f"{argument.flags[0]}{' …' if argument.many else ''}"
            parts.append(name if argument.required else f"[{name}]")
        elif argument.required:
            parts.append(f"{argument.flags[-1]} {argument.value}")
    flags = any(not argument.is_positional and not argument.required for argument in arguments_of(verb))
    return " ".join(parts) + (" [FLAGS]" if flags else "") + command


def _line(argument: Argument) -> str:
    name = ", ".join(argument.flags)
    if argument.value and not argument.is_positional:
        name += f" {argument.value}"
    text = argument.help.replace("\n", "\n" + " " * (_WIDTH + 3))
    return f"  {name:<{_WIDTH}} {text}"
