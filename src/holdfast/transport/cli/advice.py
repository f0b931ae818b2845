"""Advice in the words of the command line: commands and their flags."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from holdfast.operations.operation import Operation
from holdfast.transport.advice.wording import Document, advise
from holdfast.transport.cli.table import VERBS
from holdfast.transport.cli.verbs.verb import Argument, Verb


class CommandWording:
    """The verbs of the command line."""

    def __init__(self) -> None:
        self._verbs: dict[str, Verb] = {}
        for verb in VERBS.values():
            self._verbs.setdefault(verb.operation, verb)

    def call(self, operation: Operation, values: Mapping[str, str], _: Document, __: str) -> Document | None:
        """The command line, with the names of the arguments that are not known."""
        verb = self._verbs.get(operation.name)
        if verb is None:
            return None
        words = ["holdfast", *verb.name.split()]
        for argument in verb.arguments:
            known = values.get(argument.field)
            if argument.is_positional and (known is not None or argument.required):
                words.append(argument.flags[0] if known is None else shlex.quote(known))
            elif not argument.is_positional and argument.value is not None and known is not None:
                words += [_long(argument), shlex.quote(known)]
        return {"command": " ".join(words)}

    def names(self, operation: str) -> Mapping[str, str]:
        """The flags of an operation's verb."""
        verb = self._verbs.get(operation)
        return {} if verb is None else {argument.field: _long(argument) for argument in verb.arguments}

    def operations(self) -> Mapping[str, str]:
        """The verb of each operation."""
        return {name: verb.name for name, verb in self._verbs.items() if name}


def in_commands(document: Document, verb: Verb, arguments: Mapping[str, Any] | None = None) -> Document:
    """An answer to a verb with its advice as commands; `arguments` are those of the verb."""
    values = (arguments or {}).get
    subject = next((name for name in (values("job_id"), values("id")) if isinstance(name, str)), "")
    return advise(document, CommandWording(), verb.operation, subject)


def next_step(document: Document) -> str:
    """The recommended action of such an answer, as one line."""
    steps = (document.get("agent_contract") or {}).get("next_actions") or []
    step = next((step for step in steps if step["recommended"]), None)
    if step is None:
        return ""
    parts = [step.get("description", ""), f"`{step['command']}`" if "command" in step else ""]
    if step.get("retry_after_seconds"):
        parts.append(f"after {step['retry_after_seconds']} s")
    return " ".join(part for part in parts if part) or step["action"]


def _long(argument: Argument) -> str:
    return argument.flags[-1]
