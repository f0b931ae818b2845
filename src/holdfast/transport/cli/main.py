"""Entry point of `holdfast`: finds the verb, parses its arguments and calls its implementation.

Implementations are imported only when their verb runs, so that help and completion are quick.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import Any, NoReturn, TextIO

from holdfast import __version__
from holdfast.transport.cli import exit_status
from holdfast.transport.cli import help as help_text
from holdfast.transport.cli.table import VERBS, arguments_of, fill_from_environment, find_verb
from holdfast.transport.cli.verbs.verb import Argument, Invocation, Verb, WrongUsage

INTERRUPTED, BROKEN_PIPE = 130, 141
_CALL = "holdfast.transport.cli.commands.call"
_NUMBERS: dict[Any, str] = {int: "expected a whole number"}


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        status = _main(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has closed it. Python would report the same error again while it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = BROKEN_PIPE
    sys.exit(status)


def _main(words: list[str]) -> int:
    if words in (["--version"], ["version"]):
        print(f"holdfast {__version__}")
        return exit_status.OK
    if words in (["--help"], ["-h"], ["help"]):
        _print_help(help_text.overview())
        return exit_status.OK
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    verb, rest = find_verb(words)
    if verb is None:
        return _report_unknown_verb(words)
    arguments = read_arguments(verb, rest)
    missing = fill_from_environment(arguments, verb)
    if missing:
        make_parser(verb).error(missing)
    return _run(verb, arguments)


def _run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Import the verb's implementation and call it; report an error of the server or of the arguments."""
    output, conflict_status = arguments.pop("output", None) or "text", arguments.pop("conflict_status", None)
    invocation = Invocation(verb, arguments, output, conflict_status, arguments.pop("fields", None) or ())
    module, _, function = verb.command.partition(":")
    command = getattr(import_module(f"holdfast.transport.cli.{module}"), function)
    if not verb.calls_server:
        return int(command(invocation))
    try:
        return int(command(invocation))
    except _reported_errors() as error:
        return int(import_module(_CALL).report_error(error, invocation))


def _reported_errors() -> tuple[type[Exception], ...]:
    """Errors that are printed. Called when there is one: a hook, which must be quick, imports no client for it."""
    return (import_module(_CALL).HoldfastError, WrongUsage)


def _report_unknown_verb(words: list[str]) -> int:
    """Print the verbs that there are: those with this first word, or all."""
    first = next(iter(words), "")
    if any(name.startswith(f"{first} ") for name in VERBS):
        is_help = any(word in {"-h", "--help"} for word in words)
        second = next((word for word in words[1:] if not word.startswith("-")), "")
        if second:
            suggestion = help_text.suggest(f"{first} {second}")
            print(f"holdfast: unknown verb {f'{first} {second}'!a}{suggestion}", file=sys.stderr)
        _print_help(help_text.group_help(first), sys.stdout if is_help and not second else sys.stderr)
        return exit_status.OK if is_help and not second else exit_status.USAGE
    if first:
        print(f"holdfast: unknown verb {first!a}{help_text.suggest(first)}", file=sys.stderr)
        print("usage: holdfast VERB …; `holdfast --help` lists every verb", file=sys.stderr)
    else:
        _print_help(help_text.overview(), sys.stderr)
    return exit_status.USAGE


def _print_help(text: str, stream: TextIO | None = None) -> None:
    """Print a help text, on a terminal in its width."""
    stream = stream or sys.stdout
    if stream.isatty():
        import shutil

        text = help_text.fit(text, shutil.get_terminal_size().columns)
    print(text, file=stream)


class _Parser(argparse.ArgumentParser):
    """Argparse with our help and error texts."""

    verb: Verb

    def print_help(self, file: Any = None) -> None:
        _print_help(help_text.verb_help(self.verb), file)

    def error(self, message: str) -> NoReturn:
        self.exit(self.verb.usage_status, f"holdfast: {message}\n{help_text.usage(self.verb)}\n")


def read_arguments(verb: Verb, words: list[str]) -> dict[str, Any]:
    """Parse the verb's fields. Words after `--` are the command to run, with flags that are not ours to parse."""
    parser = make_parser(verb)
    command = next((argument for argument in verb.arguments if argument.field == "command"), None)
    if command is None:
        return vars(parser.parse_intermixed_args(words))
    separator = words.index("--") if "--" in words else len(words)
    parsed, unknown = parser.parse_known_intermixed_args(words[:separator])
    if unknown:
        hint = "" if "--" in words else "; write the command to run after --"
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    arguments = vars(parsed)
    arguments["command"] = words[separator + 1 :]
    if not arguments["command"] and (command.required or "--" in words):
        parser.error("the command to run is missing: write it after --")
    return arguments


def make_parser(verb: Verb) -> argparse.ArgumentParser:
    """Parser of one verb; those of the others are never built."""
    parser = _Parser(prog=f"holdfast {verb.name}", allow_abbrev=False)
    parser.verb = verb
    for argument in arguments_of(verb):
        if argument.field == "command":
            continue
        flags = [] if argument.is_positional else argument.flags
        parser.add_argument(*flags, **_options(argument))
    return parser


def _options(argument: Argument) -> dict[str, Any]:
    """Keyword arguments of `add_argument`."""
    if argument.value is None:
        return {"dest": argument.field, "action": "store_const", "const": True}
    options: dict[str, Any] = {"dest": argument.field, "metavar": argument.value, "type": _value_parser(argument)}
    if argument.choices:
        options["choices"] = argument.choices
    if argument.is_positional:
        options["nargs"] = ("+" if argument.required else "*") if argument.many else None if argument.required else "?"
    elif argument.many:
        options["action"] = "append"
    if not argument.is_positional:
        options["required"] = argument.required
    return options


def _value_parser(argument: Argument) -> Any:
    """The argument's parser, with an error message that says what was expected."""

    def parse(text: str) -> Any:
        if argument.is_positional and not text:
            raise argparse.ArgumentTypeError("must not be empty")
        try:
            return argument.kind(text)
        except (ValueError, OSError) as error:
            reason = _NUMBERS.get(argument.kind) or error
            raise argparse.ArgumentTypeError(f"{text!a} is not valid: {reason}") from error

    return parse
