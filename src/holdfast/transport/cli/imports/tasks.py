"""Verb `import tasks`: creates the tasks of a file, in JSON lines or CSV."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

import msgspec

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError as CallFailed
from holdfast.core.errors import HoldfastError, Invalid
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.imports.task_files import Line, UnreadableTasks, format_of, read_lines
from holdfast.operations.bounds import BATCH_BODY_BYTES, BATCH_ITEMS
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.connection import client_for
from holdfast.transport.cli.output import escape, is_document, print_document, print_message
from holdfast.transport.cli.verbs.verb import Invocation, WrongUsage
from holdfast.transport.http.bodies.parsing import parse_body
from holdfast.transport.http.orchestrion.tasks import CreateBody, checked_task

REFUSED = 1
FIRST_ERROR = 400
ITEM_BYTES = 64
"""What the batch adds to an item, at most."""

Item = dict[str, Any]
Batch = list[tuple[int, Item]]
"""(line, item) of tasks that are created in one request."""


class Report(msgspec.Struct):
    """What became of the lines of a file."""

    file: str
    dry_run: bool
    created: int = 0
    existing: int = 0
    """Tasks that are there already: their unique key has a live task, or the line was imported before."""
    refused: list[dict[str, Any]] = []
    """Line and message of each line that was refused."""


def run(invocation: Invocation) -> int:
    """Create the tasks and report; exit status 1 if lines were refused. The others are created all the same."""
    arguments = invocation.arguments
    path, dry_run = arguments.pop("file"), bool(arguments.pop("dry_run"))
    kind, default_type = arguments.pop("format") or format_of(path), arguments.pop("type")
    client = None if dry_run else client_for(arguments)
    report = Report("stdin" if path == "-" else path, dry_run)
    with ExitStack() as files:
        try:
            lines = read_lines(_open(path, files), kind)
            _import(client, check_lines(lines, default_type, report), report)
        except (UnreadableTasks, UnicodeDecodeError) as error:
            raise WrongUsage(f"{report.file}: {error}") from error
        except CallFailed:
            print_message(f"holdfast: stopped after {report.created} new tasks; run it again to continue")
            raise
        finally:
            report.refused.sort(key=lambda refusal: int(refusal["line"]))
    _print_report(report, invocation.output)
    return REFUSED if report.refused else exit_status.OK


def _open(path: str, files: ExitStack) -> TextIO:
    if path == "-":
        return sys.stdin
    try:
        return files.enter_context(Path(path).open(encoding="utf-8", newline=""))
    except OSError as error:
        raise WrongUsage(f"cannot read {path}: {error.strerror}") from error


def check_lines(lines: Iterable[Line], default_type: str | None, report: Report) -> Iterator[tuple[int, Item]]:
    """The lines that the server would accept; the others are reported."""
    for line in lines:
        fields = ({} if default_type is None else {"type": default_type}) | {"payload": {}} | line.fields
        problem = line.problem or _problem(fields)
        if problem:
            report.refused.append({"line": line.number, "message": problem})
        else:
            yield line.number, {"op": "create"} | _with_key(fields)


def _problem(fields: Item) -> str:
    """What is wrong with the fields of a task, by the rules of the server; empty if nothing is."""
    try:
        body, warnings = parse_body(msgspec.json.encode(fields), CreateBody)
        checked_task(body, DEFAULT_ACCOUNT, "")
    except Invalid as refusal:
        return "; ".join(error["message"] for error in refusal.errors) or refusal.message
    except (HoldfastError, ValueError, TypeError) as error:
        return str(error)
    return "; ".join(warnings)


def _with_key(fields: Item) -> Item:
    """A line with a unique key gets an idempotency key too: importing it again is safe when its task is finished."""
    if fields.get("uniqueKey") is None or fields.get("idempotencyKey") is not None:
        return fields
    content = msgspec.json.encode(fields, order="sorted")
    return fields | {"idempotencyKey": f"import-{hashlib.sha256(content).hexdigest()}"}


def _import(client: Client | None, items: Iterable[tuple[int, Item]], report: Report) -> None:
    for batch in batches(items):
        if client is None:
            report.created += len(batch)
            continue
        results = client.call("batch_tasks", items=[item for _, item in batch])["results"]
        for (line, _), result in zip(batch, results, strict=True):
            if result["status"] >= FIRST_ERROR:
                report.refused.append({"line": line, "message": result["message"]})
            elif result.get("deduplicated") or result.get("replayed"):
                report.existing += 1
            else:
                report.created += 1


def batches(items: Iterable[tuple[int, Item]]) -> Iterator[Batch]:
    """The items in order, as many at once as the server takes."""
    batch: Batch = []
    size = 0
    for line, item in items:
        length = len(msgspec.json.encode(item)) + ITEM_BYTES
        if batch and (len(batch) == BATCH_ITEMS.most or size + length > BATCH_BODY_BYTES // 2):
            yield batch
            batch, size = [], 0
        batch.append((line, item))
        size += length
    if batch:
        yield batch


def _print_report(report: Report, output: str) -> None:
    if is_document(output):
        print_document(msgspec.to_builtins(report), output)
        return
    for refusal in report.refused:
        print_message(f"holdfast: line {refusal['line']}: {escape(refusal['message'])}")
    if report.dry_run:
        print(f"{report.created} tasks would be created, {len(report.refused)} lines refused; nothing was changed")
    else:
        print(f"{report.created} tasks created, {report.existing} there already, {len(report.refused)} lines refused")
