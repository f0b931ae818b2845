"""Rows as lines: columns that fit the terminal, or tabs for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.transport.cli.display.styles import STATE_FIELDS, bold, coloured
from holdfast.transport.cli.display.times import is_countdown, is_time, relative, span
from holdfast.transport.cli.output import is_terminal, text_of

Row = dict[str, Any]
TEXTS = ("changes", "note", "reason", "error", "next_action", "url", "scopes", "events")
NAMES = ("owner", "who", "claimedBy", "name", "by", "type", "space", "prefix")
SUBJECTS = ("subject", "path", "job_id", "shown")
_GIVE_WAY = (
    (TEXTS, 20),
    (NAMES, 12),
    (SUBJECTS, 16),
    (TEXTS, 12),
    (SUBJECTS, 12),
    (NAMES, 7),
    (TEXTS, 8),
    (SUBJECTS, 10),
)
"""Which columns are cut to which width, in this order, until a line fits. Then titles are, and at last everything."""
_SHORTEST = "title"
_TITLES = {"attemptCount": "attempts", "claimedBy": "worker"}
_GAP = "  "


def print_table(rows: Sequence[Row], columns: Sequence[str], *, wide: bool = False) -> None:
    """Print one row a line: columns with a header on a terminal, tabs elsewhere. `wide`: all columns, nothing cut."""
    if wide:
        columns = tuple(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    if not is_terminal():
        for row in rows:
            print("\t".join(text_of(row.get(column)) for column in columns))
        return
    for line in format_table(rows, columns, width=None if wide else terminal_width()):
        print(line)


def format_table(rows: Sequence[Row], columns: Sequence[str], *, width: int | None) -> list[str]:
    """A header and a line a row, cut to `width`. None: nothing is cut, and times are exact.

    A column that no row has is left out, and if a line would be too long, one without a value in any row.
    """
    exact = width is None
    columns = [column for column in columns if not rows or any(column in row for row in rows)]
    table = [_column(column, rows, exact=exact) for column in columns]
    if width is not None:
        table = fit(table, width)
    lines = [bold(_join([cut(column.title, column.width).ljust(column.width) for column in table]))]
    return lines + [_join([column.show(number) for column in table]) for number in range(len(rows))]


class Column(NamedTuple):
    """One column of a table."""

    name: str
    title: str
    cells: list[str]
    width: int
    is_empty: bool
    """Whether no row has a value."""

    def show(self, row: int) -> str:
        """The cell of a row, in the width of the column and in the colour of its state."""
        shorten = cut_middle if self.name in SUBJECTS else cut
        shown = shorten(self.cells[row], self.width).ljust(self.width)
        return coloured(shown, self.cells[row]) if self.name in STATE_FIELDS else shown


def _column(name: str, rows: Sequence[Row], *, exact: bool) -> Column:
    values = [row.get(name) for row in rows]
    cells = [cell_text(name, value, exact=exact) for value in values]
    title = name if exact else title_of(name)
    return Column(name, title, cells, max(map(len, [title, *cells])), not any(values))


def fit(table: Sequence[Column], total: int) -> list[Column]:
    """Columns whose line is not longer than `total`. Text gives way first, then names; ids, states and numbers last."""
    fitted = list(table)
    for column in reversed(table):
        if _excess(fitted, total) > 0 and column.is_empty and len(fitted) > 1:
            fitted.remove(column)
    for names, least in _GIVE_WAY:
        fitted = _shrink(fitted, total, [least if column.name in names else column.width for column in fitted])
    fitted = _shrink(fitted, total, [max(map(len, [*column.cells, _SHORTEST])) for column in fitted])
    return _shrink(fitted, total, [len(_SHORTEST)] * len(fitted))


def _shrink(table: Sequence[Column], total: int, least: Sequence[int]) -> list[Column]:
    """Columns cut down to their least width until a line fits, from the right: what identifies a row is at the left."""
    shrunk: list[Column] = []
    for number in range(len(table) - 1, -1, -1):
        column = table[number]
        excess = _excess([*table[: number + 1], *shrunk], total)
        spare = max(column.width - least[number], 0)
        shrunk.insert(0, column._replace(width=column.width - max(min(spare, excess), 0)))
    return shrunk


def _excess(table: Sequence[Column], total: int) -> int:
    return sum(column.width for column in table) + len(_GAP) * (len(table) - 1) - total


def title_of(column: str) -> str:
    """The name of a field as a title: without the unit or kind of time that the cells show."""
    if column in _TITLES:
        return _TITLES[column]
    if is_countdown(column):
        return column.removesuffix("_in_seconds")
    return column.removesuffix("_at").removesuffix("At") if is_time(column) else column


def cell_text(column: str, value: Any, *, exact: bool = False) -> str:
    """A value for people: times are relative and seconds have units, unless `exact`."""
    if not exact and isinstance(value, str) and is_time(column):
        return relative(value)
    if not exact and isinstance(value, int | float) and is_countdown(column):
        return span(value)
    if not exact and isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return " ".join(map(text_of, value))
    return text_of(value)


def cut(text: str, width: int) -> str:
    """Text of at most `width` characters; `…` stands for what was cut."""
    return text if len(text) <= width else text[: width - 1] + "…"


def cut_middle(text: str, width: int) -> str:
    """The same without the middle: ids and paths differ at their ends."""
    end = (width - 1) // 2
    return text if len(text) <= width else f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def terminal_width() -> int:
    """Columns of the terminal, or of $COLUMNS."""
    import shutil  # slow to import, and not needed by scripts

    return shutil.get_terminal_size().columns


def _join(cells: Sequence[str]) -> str:
    return _GAP.join(cells).rstrip()
