"""`holdfast`: finds the verb, reads its arguments, and lets its room do it. Rooms are imported late: help is quick."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import Any, NoReturn

from holdfast import __version__
from holdfast.transport.cli import exit_status
from holdfast.transport.cli import help as help_text
from holdfast.transport.cli.table import VERBS, arguments_of, find
from holdfast.transport.cli.verbs.jobs import fill_in
from holdfast.transport.cli.verbs.verb import Argument, Verb

INTERRUPTED, NOBODY_READS = 130, 141
_NUMBERS: dict[Any, str] = {int: "it must be a whole number", float: "it must be a number"}


def main() -> None:
    """Do what the command line says, and tell by the exit status how that went."""
    try:
        status = _main(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has gone; so that Python does not complain of it on its way out, nothing is left to write to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = NOBODY_READS
    sys.exit(status)


def _main(words: list[str]) -> int:
    if words in (["--version"], ["version"]):
        print(f"holdfast {__version__}")
        return exit_status.OK
    if words in (["--help"], ["-h"], ["help"]):
        print(help_text.overview())
        return exit_status.OK
    verb, rest = find(words)
    if verb is None:
        return _lost(words)
    arguments = read_arguments(verb, rest)
    missing = fill_in(arguments, verb)
    if missing:
        parser_of(verb).error(missing)
    module = import_module(f"holdfast.transport.cli.{verb.module}")
    if not verb.asks:
        return int(module.run(verb, arguments))
    arguments["output"] = output = arguments["output"] or "text"
    conflict_status = arguments.get("conflict_status")
    call = import_module("holdfast.transport.cli.commands.call")
    try:
        return int(module.run(verb, arguments))
    except (call.HoldfastError, call.BadAddress) as error:
        return int(call.refused(error, output, conflict_status))


def _lost(words: list[str]) -> int:
    """No such verb: say which there are."""
    noun = next(iter(words), "")
    if any(name.startswith(f"{noun} ") for name in VERBS):
        asked = any(word in {"-h", "--help"} for word in words)
        print(help_text.noun_help(noun), file=sys.stdout if asked else sys.stderr)
        return exit_status.OK if asked else exit_status.USAGE
    if noun:
        print(f"holdfast: there is no verb {noun!a}{help_text.nearest(noun)}", file=sys.stderr)
        print("usage: holdfast VERB …; `holdfast --help` lists every verb", file=sys.stderr)
    else:
        print(help_text.overview(), file=sys.stderr)
    return exit_status.USAGE


class _Parser(argparse.ArgumentParser):
    """Argparse reads; what it says is ours."""

    verb: Verb

    def format_help(self) -> str:
        return help_text.verb_help(self.verb) + "\n"

    def error(self, message: str) -> NoReturn:
        self.exit(self.verb.usage_status, f"holdfast: {message}\n{help_text.usage(self.verb)}\n")


def read_arguments(verb: Verb, words: list[str]) -> dict[str, Any]:
    """The verb's fields. What comes after `--` is a command with flags of its own: it is not looked into."""
    parser = parser_of(verb)
    if not any(argument.field == "command" for argument in verb.arguments):
        return vars(parser.parse_args(words))
    place = words.index("--") if "--" in words else len(words)
    arguments = vars(parser.parse_args(words[:place]))
    arguments["command"] = words[place + 1 :]
    if not arguments["command"]:
        parser.error("the command to run comes after --")
    return arguments


def parser_of(verb: Verb) -> argparse.ArgumentParser:
    """The parser of one verb: the others are never built."""
    parser = _Parser(prog=f"holdfast {verb.name}", allow_abbrev=False)
    parser.verb = verb
    for argument in arguments_of(verb):
        if argument.field == "command":
            continue
        flags = [] if argument.is_word else argument.flags
        parser.add_argument(*flags, **_told(argument))
    return parser


def _told(argument: Argument) -> dict[str, Any]:
    if argument.value is None:
        return {"dest": argument.field, "action": "store_const", "const": True}
    told: dict[str, Any] = {"dest": argument.field, "metavar": argument.value, "type": _kind(argument)}
    if argument.choices:
        told["choices"] = argument.choices
    if argument.is_word:
        told["nargs"] = ("+" if argument.required else "*") if argument.many else None if argument.required else "?"
    elif argument.many:
        told["action"] = "append"
    if not argument.is_word:
        told["required"] = argument.required
    return told


def _kind(argument: Argument) -> Any:
    """The argument's reader, with a reason that names what it wanted."""

    def read(text: str) -> Any:
        try:
            return argument.kind(text)
        except (ValueError, OSError) as error:
            reason = _NUMBERS.get(argument.kind) or error
            raise argparse.ArgumentTypeError(f"{text!a} will not do: {reason}") from error

    return read
