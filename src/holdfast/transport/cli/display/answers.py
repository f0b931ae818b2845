"""Prints the answer to a verb: columns on a terminal, tabs for scripts, JSON or YAML for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.transport.cli.display.fields import missing, select
from holdfast.transport.cli.display.styles import STATE_FIELDS, bold, coloured
from holdfast.transport.cli.display.table import print_table
from holdfast.transport.cli.display.times import is_time, relative
from holdfast.transport.cli.output import WIDE, escape, is_document, is_terminal, print_document, print_message, text_of
from holdfast.transport.cli.verbs.verb import Invocation

Row = dict[str, Any]
HIDDEN = ("agent_contract", "warnings", "task")
"""Fields left out of text output: advice for agents, and the second copy of a claimed task."""
_PAGE_FIELDS = ("nextCursor", "hasMore")


def print_answer(answer: Row, invocation: Invocation) -> None:
    """Print the answer to a verb on stdout, and its warnings on stderr."""
    verb, output = invocation.verb, invocation.output
    for warning in answer.get("warnings") or ():
        print_message(f"holdfast: {escape(str(warning))}")
    if invocation.fields:
        _print_selected(answer, invocation)
    elif is_document(output):
        from holdfast.transport.cli.advice import in_commands  # reads the table of operations

        print_document(in_commands(answer, verb), output)
    elif verb.rows:
        print_rows(answer.get(verb.rows) or [], invocation)
    else:
        print_fields(answer, wide=output == WIDE)
    if verb.rows and answer.get("hasMore") and not is_document(output):
        print_message(f"there are more: --cursor {answer.get('nextCursor')}")


def print_rows(rows: Sequence[Row], invocation: Invocation) -> None:
    """Print a list in the columns of its verb. On a terminal an empty one is a message."""
    if not rows and is_terminal():
        print_message("nothing to list")
    else:
        print_table(rows, invocation.verb.columns, wide=invocation.output == WIDE)


def print_fields(answer: Row, *, wide: bool = False) -> None:
    """Print one field a line. Without `wide`, fields that are null or HIDDEN are left out."""
    visible = [(name, value) for name, value in answer.items() if wide or (value is not None and name not in HIDDEN)]
    width = max((len(name) for name, _ in visible), default=0)
    for name, value in visible:
        if is_terminal():
            print(f"{bold(name)}{' ' * (width - len(name))}  {_for_people(name, value)}")
        else:
            print(f"{name}\t{text_of(value)}")


def _for_people(name: str, value: Any) -> str:
    text = text_of(value)
    if isinstance(value, str) and is_time(name) and relative(value) != value:
        return f"{text} ({relative(value)})"
    return coloured(text) if name in STATE_FIELDS else text


def _print_selected(answer: Row, invocation: Invocation) -> None:
    """Print the fields that --fields names: of each row of a list, or of the answer."""
    rows_name = invocation.verb.rows
    rows: list[Row] = (answer.get(rows_name) or []) if rows_name else [answer]
    report_missing(rows, invocation)
    selected = [select(row, invocation.fields) for row in rows]
    if not is_document(invocation.output):
        print_selected_rows(selected, invocation)
    elif rows_name:
        pages = {name: answer[name] for name in _PAGE_FIELDS if name in answer}
        print_document({rows_name: selected} | pages, invocation.output)
    else:
        print_document(selected[0], invocation.output)


def print_selected_rows(selected: Sequence[Row], invocation: Invocation) -> None:
    """Print values alone, a row a line, separated by tabs; a list on a terminal as a table, with exact values."""
    if invocation.verb.rows and is_terminal():
        print_table(selected, invocation.fields, wide=True)
        return
    for row in selected:
        print("\t".join(map(text_of, row.values())), flush=True)


def report_missing(rows: Sequence[Row], invocation: Invocation) -> None:
    """Print a message about fields that are in none of the rows: they may be misspelled."""
    unknown = missing(rows, invocation.fields)
    if unknown:
        known = ", ".join(name for name in rows[0] if name not in HIDDEN)
        print_message(f"holdfast: the answer has no field {escape(', '.join(unknown))}; it has {escape(known)}")
