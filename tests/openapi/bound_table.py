"""The table of bounds in `docs/reference/api.md`."""

from __future__ import annotations

from holdfast.operations.bound_kinds import Range
from holdfast.operations.bounds import FIELDS


def markdown_table() -> str:
    """The table of `docs/reference/api.md`: one row for each bounded field of each operation."""
    rows = ["| operation | field | bound | default |", "| --- | --- | --- | --- |"]
    for operation, fields in FIELDS.items():
        for name, bound in fields.items():
            default = bound.if_omitted if isinstance(bound, Range) and bound.if_omitted is not None else ""
            rows.append(f"| `{operation}` | `{name}` | {bound} | {default} |")
    return "\n".join(rows) + "\n"
