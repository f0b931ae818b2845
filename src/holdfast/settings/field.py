"""What a setting is: its variable, flag, kind, bounds, unit, default and description."""

from __future__ import annotations

from typing import Any

import msgspec

PREFIX = "HOLDFAST_"
NUMBER = "whole number"
BOOLEAN = "true or false"
CHOICE = "choice"
TEXT = "text"
FILE = "file"
URL = "address"
LIST = "list"
CONFIDENTIAL = "secret"


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One setting, or one more variable for a setting (`alias_of`)."""

    name: str
    kind: str
    description: str
    default: Any = None
    default_text: str = ""
    """The default as the page shows it, where the value itself does not say enough."""
    least: int = 0
    most: int = 0
    choices: tuple[str, ...] = ()
    unit: str = ""
    has_flag: bool = False
    alias_of: str = ""

    @property
    def variable(self) -> str:
        """The environment variable."""
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str:
        """Name of the flag of `holdfast serve`; used only if `has_flag`."""
        return "--" + self.name.replace("_", "-")
