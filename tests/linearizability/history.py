"""Calls of concurrent clients with their answers, as a client sees them, with the log after them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.log_entry import LogEntry, short

FOREVER = 1 << 62
"""Later than any moment of a run."""
UNKNOWN_TIME = 0
"""As the earliest time of a call: the store's clock is set during the run, so times of calls cannot be compared."""


@dataclass(slots=True)
class Call:
    """One call of one client: what was asked, when, and what was answered; no answer means that the outcome is unknown.

    `called` and `returned` are nanoseconds of a clock that all clients of a run share: a call that returned before
    another was made must take effect before it. `earliest` and `latest` are microseconds of the store's clock: the
    call was decided between them.
    """

    id: str
    """Sent with the call, and found again in its events."""
    process: str
    group: str
    """Names that one call may touch together; groups are independent of each other."""
    verb: str
    args: dict[str, Any]
    called: int
    earliest: int
    returned: int = FOREVER
    latest: int = FOREVER
    answer: dict[str, Any] | None = None

    def __str__(self) -> str:
        given = " ".join(f"{name}={short(value)}" for name, value in self.args.items() if value is not None)
        if self.answer is None:
            answered = "unknown outcome"
        else:
            rest = {name: value for name, value in self.answer.items() if name != "is" and value is not None}
            answered = " ".join([str(self.answer["is"]), *(f"{name}={short(value)}" for name, value in rest.items())])
        return f"{self.process:>10}  {self.verb} {given}  ->  {answered}"


@dataclass(slots=True)
class History:
    """The calls of a run, and the store's log after it."""

    calls: list[Call] = field(default_factory=list)
    log: list[LogEntry] = field(default_factory=list)

    def groups(self) -> dict[str, list[Call]]:
        """The calls of each group, in the order in which they were made."""
        found: dict[str, list[Call]] = {}
        for call in sorted(self.calls, key=lambda call: call.called):
            found.setdefault(call.group, []).append(call)
        return found

    def save(self, path: Path) -> None:
        """Write it to a file that `load_history` reads."""
        lines = [json.dumps(asdict(each)) for each in (*self.calls, *self.log)]
        path.write_text("\n".join(lines) + "\n")


def load_history(path: Path) -> History:
    """The history that was written to a file."""
    history = History()
    for line in path.read_text().splitlines():
        fields = json.loads(line)
        if "seq" in fields:
            history.log.append(LogEntry(**fields))
        else:
            history.calls.append(Call(**fields))
    return history


def proof_of(lease_id: str) -> str:
    """What the log records instead of a lease id."""
    return hashlib.sha256(lease_id.encode()).hexdigest()


def describe(calls: list[Call]) -> str:
    """The calls as lines, with the microseconds after the first call at which each was made and answered."""
    start = min((call.called for call in calls), default=0)
    lines = []
    for call in sorted(calls, key=lambda call: call.called):
        until = "" if call.returned >= FOREVER else f"{(call.returned - start) // 1000}"
        lines.append(f"[{(call.called - start) // 1000:>9} {until:>9}] {call}")
    return "\n".join(lines)
