"""Writes the settings page: `python -m holdfast.settings.page > docs/reference/settings.md`."""

from __future__ import annotations

import sys

from holdfast.settings.field import BOOLEAN, CHOICE, NUMBER, Field
from holdfast.settings.fields import GROUPS

_HEAD = """\
# Settings

A flag of `holdfast serve` wins over its variable, and the variable over the default. Wrong values are refused before
anything starts: one line for each problem, exit status 2. Secrets are never repeated. A `HOLDFAST_` variable that is
not in these tables is ignored with a warning.

This page is written by `python -m holdfast.settings.page`; a test compares the two.
"""
_TABLE_HEAD = "| variable | flag | values | default | description |\n| --- | --- | --- | --- | --- |\n"
_LARGE = 10**6


def settings_page() -> str:
    """The page as Markdown: one table for each group of settings."""
    parts = [_HEAD]
    for group, fields in GROUPS.items():
        parts += [f"\n## {group}\n\n", _TABLE_HEAD]
        parts += [_row(field) for field in fields]
    return "".join(parts)


def _row(field: Field) -> str:
    flag = f"`{field.flag}`" if field.has_flag else ""
    description = field.description
    if field.alias_of:
        names = " and ".join(f"`{name.strip()}`" for name in field.alias_of.split(","))
        description += f" Sets {names}."
    return f"| `{field.variable}` | {flag} | {_values(field)} | {_default(field)} | {description} |\n"


def _values(field: Field) -> str:
    if field.choices:
        return ", ".join(f"`{choice}`" for choice in field.choices)
    if field.kind == NUMBER:
        bounds = f"{field.least} or more" if field.most > _LARGE else f"{field.least} to {field.most:,}"
        return f"{bounds}, {field.unit}" if field.unit else bounds
    return f"{field.kind}, {field.unit}" if field.unit else field.kind


def _default(field: Field) -> str:
    if field.default_text:
        return field.default_text
    if field.kind == BOOLEAN:
        return "`true`" if field.default else "`false`"
    if field.kind == CHOICE and field.default is None:
        return "`text` on a terminal, else `json`"
    if isinstance(field.default, tuple):
        return ", ".join(f"{number:g}" for number in field.default) if field.default else "none"
    return "none" if field.default is None else f"`{field.default}`"


if __name__ == "__main__":
    sys.stdout.write(settings_page())
