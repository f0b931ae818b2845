"""What a person can do next about an error of a verb: lines that name commands, variables and keys."""

from __future__ import annotations

from holdfast.client.errors import HoldfastError, Invalid, Unreachable
from holdfast.private_files import UnusableFile
from holdfast.server_keys import Servers
from holdfast.transport.advice.wording import Document
from holdfast.transport.cli.advice import next_step
from holdfast.transport.cli.verbs.verb import Verb

MISSING_KEY, UNKNOWN_KEY, FORBIDDEN = "missing_api_key", "invalid_api_key", "forbidden"
_GET_KEY = (
    "set HOLDFAST_API_KEY to a key, or name a file that has it: `--key-file FILE`",
    "The operator of the server makes one: `holdfast key create NAME --scope jobs --scope tasks`.",
    "On the server's machine, the user who runs `holdfast serve` needs none.",
    "`holdfast doctor` says which server and key are used.",
)
START_SERVER = "start a server with `holdfast serve`, or set --url or HOLDFAST_URL"
_OTHER_KEY = (
    "set HOLDFAST_API_KEY to a key with the scope {}: the one that the server's first start showed has every scope",
    "If that key is lost, start the server with HOLDFAST_ROOT_KEY set to a new one of 24 characters or more.",
)


def next_steps(error: HoldfastError, document: Document, verb: Verb) -> tuple[str, ...]:
    """The lines; `document` is the server's answer with its advice as commands."""
    if error.code in {MISSING_KEY, UNKNOWN_KEY}:
        return (*_GET_KEY, *(known_servers() if error.code == MISSING_KEY else ()))
    if isinstance(error, Unreachable):
        return (START_SERVER, *known_servers())
    if error.code == FORBIDDEN and isinstance(document.get("scope"), str):
        return tuple(line.format(document["scope"]) for line in _OTHER_KEY)
    if isinstance(error, Invalid) and document.get("errors"):
        return (f"`holdfast {verb.name} --help` describes the arguments",)
    hint = next_step(document) or error.hint
    return (hint.removeprefix("Next: "),) if hint else ()


def known_servers() -> tuple[str, ...]:
    """A line about the servers that the user's configuration has keys for, if there are any."""
    try:
        urls = Servers().urls
    except UnusableFile:
        return ()
    found = f"Your configuration has keys for {', '.join(urls)}: --url or HOLDFAST_URL chooses one of these."
    return (found,) if urls else ()
