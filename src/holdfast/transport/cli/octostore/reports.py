"""Events that `hold` and `watch` print: one JSON object a line for supervisors, or one line of text."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

from holdfast.client.leases.clock import now
from holdfast.transport.cli.output import escape

_VERSION = 1


class Reports:
    """Prints numbered events."""

    def __init__(self, kind: str, name: str, server: str, *, as_json: bool, candidate: str | None = None) -> None:
        self._kind, self._name, self._server = kind, name, server
        self._json, self._candidate = as_json, candidate
        self._sequence = 0

    def event(self, event: str, *, deadline: float | None = None, **facts: Any) -> None:
        """Print an event. With a deadline, also how long authority lasts from now, on two clocks."""
        authority = {} if deadline is None else _authority(deadline)
        self._print(event, {**facts, **authority})

    def snapshot(self, document: dict[str, Any]) -> None:
        """Print the current status of the lock or election."""
        self._print("snapshot", {"snapshot": dict(sorted(document.items()))})

    def _print(self, event: str, facts: dict[str, Any]) -> None:
        self._sequence += 1
        fields = {"schema_version": _VERSION, "sequence": self._sequence, "event": event, "kind": self._kind}
        fields |= {"name": self._name, "server": self._server, "candidate_id": self._candidate, **facts}
        fields["observed_at"] = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields = {field: value for field, value in fields.items() if value is not None}
        if self._json:
            print(json.dumps(fields), flush=True)
            return
        detail = " ".join(f"{field}={_text(value)}" for field, value in facts.items() if value is not None)
        print(" · ".join(filter(None, (self._kind, escape(self._name), event, detail))), flush=True)


def _authority(deadline: float) -> dict[str, int]:
    """Read the wall clock first and the remaining time last: their sum is then never after the true deadline."""
    wall = time.time_ns() // 1_000_000
    continuous = int(now() * 1000)
    remaining = int((deadline - now()) * 1000)
    return {
        "authority_remaining_ms": max(remaining, 1),
        "authority_observed_unix_ms": wall,
        "authority_observed_continuous_ms": continuous,
    }


def _text(value: Any) -> str:
    return escape(value) if isinstance(value, str) else json.dumps(value)
