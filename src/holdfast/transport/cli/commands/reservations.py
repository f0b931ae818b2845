"""Verbs about reservations that take paths: `files extend`, `files release`, `files check` and `files ls`."""

from __future__ import annotations

import os
from typing import Any

from holdfast.core.reservation.patterns import parse
from holdfast.operations import bounds
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.call import call
from holdfast.transport.cli.connection import client_for
from holdfast.transport.cli.display.answers import print_answer
from holdfast.transport.cli.display.table import print_table
from holdfast.transport.cli.hold.reserve import print_reserved
from holdfast.transport.cli.output import WIDE, is_document, print_document, print_message
from holdfast.transport.cli.repository import Repository, space_of, space_or_none
from holdfast.transport.cli.table import RESERVATION_LEASE
from holdfast.transport.cli.verbs.verb import Invocation


def extend(invocation: Invocation) -> int:
    """`files extend`."""
    arguments = _with_patterns(invocation)
    return print_reserved(client_for(arguments).call(invocation.verb.operation, **arguments), invocation)


def release(invocation: Invocation) -> int:
    """`files release`."""
    _with_patterns(invocation)
    return call(invocation)


def check(invocation: Invocation) -> int:
    """`files check`: print the reservations of others that cover one of the files."""
    arguments, repository = invocation.arguments, Repository()
    paths = [repository.file(path) for path in arguments.pop("paths")]
    space = space_of(arguments.pop("space"))
    own = os.environ.get(RESERVATION_LEASE)
    lease_ids = arguments.pop("lease_ids") or ([own] if own else [])
    client, most = client_for(arguments), bounds.CHECKED_PATHS.most
    answers = [
        client.call(invocation.verb.operation, space=space, paths=paths[start : start + most], lease_ids=lease_ids)
        for start in range(0, len(paths), most)
    ]
    answer = answers[0] | {
        "all_allowed": all(part["all_allowed"] for part in answers),
        "files": [file for part in answers for file in part["files"]],
    }
    others = [
        {"path": file["path"], **row} for file in answer["files"] for row in file["reserved_by"] if not row["yours"]
    ]
    if is_document(invocation.output):
        print_document(answer, invocation.output)
    elif others:
        print_table(others, invocation.fields or invocation.verb.columns, wide=invocation.output == WIDE)
    if answer["all_allowed"]:
        return exit_status.OK
    denied = sum(not file["allowed"] for file in answer["files"])
    print_message(f"holdfast: do not change what others have reserved: {denied} of {len(answer['files'])} files")
    return invocation.held_status(exit_status.NOT_ALLOWED)


def list_all(invocation: Invocation) -> int:
    """`reservations`: one line for each path; with --path, for those that cover it."""
    arguments = invocation.arguments
    arguments["owner"] = arguments.pop("held_by")
    if not arguments.pop("all_spaces"):
        arguments["space"] = space_or_none(arguments["space"])
    if arguments["path"] is not None:
        arguments["space"] = space_of(arguments["space"])
        arguments["path"] = Repository().file(arguments["path"])
    answer = client_for(arguments).call(invocation.verb.operation, **arguments)
    if not is_document(invocation.output):
        rows: list[dict[str, Any]] = answer["reservations"]
        wanted = arguments["path"]
        answer["reservations"] = [
            {**row, "path": path}
            for row in rows
            for path in row["paths"]
            if wanted is None or parse(path).matches(wanted)
        ]
    print_answer(answer, invocation)
    return exit_status.OK


def _with_patterns(invocation: Invocation) -> dict[str, Any]:
    """The arguments, with paths relative to the root of the repository."""
    repository = Repository()
    invocation.arguments["paths"] = [repository.pattern(path) for path in invocation.arguments["paths"]]
    return invocation.arguments
