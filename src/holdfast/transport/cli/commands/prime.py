"""`holdfast prime`: what an agent should know as it begins, on one page."""

from __future__ import annotations

from typing import Any

from holdfast.transport.cli import exit_status
from holdfast.transport.cli.agent_rules import RULES
from holdfast.transport.cli.commands.call import client_for
from holdfast.transport.cli.output import document, escape, is_document
from holdfast.transport.cli.overview import Standing, look
from holdfast.transport.cli.verbs.verb import Verb


def run(verb: Verb, arguments: dict[str, Any]) -> int:  # noqa: ARG001 - every room has this shape
    """Print the rules, then how things stand. The rules are worth having also when no server answers."""
    output = arguments.pop("output")
    if not is_document(output):
        print(RULES, flush=True)
    standing = look(client_for(arguments))
    if is_document(output):
        document(standing._asdict(), output)
    else:
        print(_page(standing))
    return exit_status.OK


def _page(standing: Standing) -> str:
    """Names were written by other agents: they are quoted, escaped and never more than names."""
    lines = ["## Owned right now", ""]
    lines += [f'- "{escape(job["job_id"])}" by "{escape(job["owner"] or "")}"' for job in standing.jobs]
    lines += ["- and more: `holdfast ls`"] if standing.more_jobs else []
    lines += ["", "## Work that waits", ""]
    for queue in standing.queues:
        counts = f"{queue['pending']} ready, {queue['claimed']} in hand, {queue['dead']} dead letters"
        lines.append(f'- "{escape(queue["type"])}": {counts}')
    return "\n".join(lines)
