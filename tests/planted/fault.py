"""A planted fault: one edit of the product that breaks a promise, and the tests that must find it.

Files named *.diff in this folder list them. A fault is written like a hunk of a diff, without line numbers:

    P2: a lease is still live at its deadline
    file: core/lease/row.py
    -    return lease.expires_at is not None and lease.expires_at > now
    +    return lease.expires_at is not None and lease.expires_at >= now
    test: core/test_lease.py::test_a_lease_is_over_at_its_deadline_and_not_a_microsecond_before

The first word is the row of docs/explanation/promises.md that the fault breaks. `file` is below src/holdfast, `test`
below tests/; there may be several tests. `runs: 3` runs a test up to three times until it fails, for a fault that
needs luck to show. Lines that begin with `#` are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = Path("src/holdfast")


class Outdated(Exception):
    """The text to replace is not in the file exactly once: the fault must follow the source."""


@dataclass
class Fault:
    """A small, realistic bug. It is planted in a copy of the source, never in the checkout."""

    promise: str
    breaks: str
    """What the broken product does."""
    listed_in: str
    file: str = ""
    tests: list[str] = field(default_factory=list)
    runs: int = 1
    old: str = ""
    new: str = ""

    def plant(self, tree: Path) -> None:
        """Edit the source below `tree`."""
        path = tree / SOURCE / self.file
        path.write_text(self.edit(path.read_text()))

    def edit(self, text: str) -> str:
        """The text of the fault's file with the fault in it."""
        lines, old = text.splitlines(keepends=True), self.old.splitlines(keepends=True)
        places = [place for place in range(len(lines)) if old and lines[place : place + len(old)] == old]
        if len(places) != 1:
            raise Outdated(
                f"tests/planted/{self.listed_in}: the fault {self.breaks!r} replaces lines that are {len(places)} times"
                f" in {SOURCE / self.file} instead of once. Make its lines follow the source:\n{self.old}"
            )
        (place,) = places
        return "".join([*lines[:place], self.new, *lines[place + len(old) :]])


def read_faults(path: Path) -> Iterator[Fault]:
    """The faults that a file lists."""
    fault: Fault | None = None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        mark, rest = line[:1], f"{line[1:]}\n"
        word, _, value = line.partition(": ")
        if mark in {"", "#"}:
            continue
        if fault is not None and mark in {"-", "+", " "}:
            fault.old += rest if mark != "+" else ""
            fault.new += rest if mark != "-" else ""
        elif fault is not None and word == "file":
            fault.file = value
        elif fault is not None and word == "test":
            fault.tests.append(value)
        elif fault is not None and word == "runs":
            fault.runs = int(value)
        elif value and (word == "race" or word.startswith("P")):
            if fault is not None:
                yield fault
            fault = Fault(word, value, path.name)
        else:
            raise ValueError(f"{path}:{number}: this line is no part of a fault: {line}")
    if fault is not None:
        yield fault


def all_faults() -> list[Fault]:
    """Every planted fault, in the order of the promises."""
    faults = [fault for path in sorted(Path(__file__).parent.glob("*.diff")) for fault in read_faults(path)]
    return sorted(faults, key=lambda fault: int(fault.promise[1:]) if fault.promise[1:].isdigit() else 1_000)


def promised_tests() -> dict[str, list[str]]:
    """The names of the tests in each row of docs/explanation/promises.md."""
    page = (ROOT / "docs/explanation/promises.md").read_text()
    rows = re.findall(r"^\| (P\d+) \| .+? \| (.+?) \|$", page, re.MULTILINE)
    return {promise: re.findall(r"`(test_\w+)`", proven_by) for promise, proven_by in rows}
