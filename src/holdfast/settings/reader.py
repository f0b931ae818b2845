"""Reads single values from flags and environment variables and collects what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from holdfast.addresses import url_problem
from holdfast.settings.field import PREFIX
from holdfast.settings.fields import BY_NAME, FIELDS, NOT_SETTINGS, NOT_SUPPORTED

_TRUE, _FALSE = {"1", "true", "on", "yes"}, {"0", "false", "off", "no"}


class Reader:
    """A flag wins over its variable; a value that is wrong becomes a line in `problems`, and the default is used."""

    def __init__(self, flags: Mapping[str, str | None], environ: Mapping[str, str]) -> None:
        self._flags = flags
        self.environ = environ
        self.problems: list[str] = []
        self.cautions: list[str] = []
        """What is accepted, but should not stay so."""

    def text(self, name: str) -> str | None:
        """The value as it was given, or None."""
        flag = self._flags.get(name)
        return flag if flag is not None else self.environ.get(PREFIX + name.upper())

    def label(self, name: str) -> str:
        """The flag or the variable, whichever the user gave."""
        return f"--{name.replace('_', '-')}" if self._flags.get(name) is not None else f"{PREFIX}{name.upper()}"

    def add_problem(self, name: str, problem: str) -> None:
        """Report a value that is wrong, once, however often it is read."""
        line = f"{self.label(name)}: {problem}"
        if line not in self.problems:
            self.problems.append(line)

    def number(self, name: str, default: int | None = None) -> int:
        """A whole number within the bounds of its field."""
        field, text = BY_NAME[name], self.text(name)
        fallback: int = field.default if default is None else default
        if text is None:
            return fallback
        if not re.fullmatch(r"[0-9]{1,12}", text) or not field.least <= int(text) <= field.most:
            self.add_problem(name, f"expected a whole number from {field.least} to {field.most}, got {text!r}")
            return fallback
        return int(text)

    def boolean(self, name: str) -> bool:
        """True or false, in any of the usual spellings."""
        text = self.text(name)
        if text is None:
            return bool(BY_NAME[name].default)
        if text.lower() not in _TRUE | _FALSE:
            self.add_problem(name, f"expected true or false, got {text!r}")
        return text.lower() in _TRUE

    def choice(self, name: str, known: Container[str] | None = None) -> str | None:
        """One of the field's choices, or of `known`."""
        text = self.text(name)
        if text is not None and text not in (BY_NAME[name].choices if known is None else known):
            self.add_problem(name, f"there is no {name} {text!r}")
        return BY_NAME[name].default if text is None else text

    def web_address(self, name: str) -> str | None:
        """An https address, or http on this machine, without a slash at its end."""
        url = self.text(name)
        problem = None if url is None else url_problem(url)
        if problem is not None:
            self.add_problem(name, problem)
        return None if url is None else url.rstrip("/")

    def warnings(self) -> list[str]:
        """What should not stay so, and one line for each HOLDFAST_ variable that is no setting."""
        known = {field.variable for field in FIELDS} | {PREFIX + name for name in NOT_SETTINGS | NOT_SUPPORTED}
        unknown = sorted(name for name in self.environ if name.startswith(PREFIX) and name not in known)
        return self.cautions + [f"{name} is not a setting of this version; it is ignored" for name in unknown]
