"""What `hold` and `watch` tell: one JSON object a line for supervisors, one line of words for people."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

from holdfast.transport.cli.hold.renewal import clock
from holdfast.transport.cli.output import escape

_VERSION = 1


class Reports:
    """Numbers what is told."""

    def __init__(self, kind: str, name: str, server: str, *, as_json: bool, candidate: str | None = None) -> None:
        self._kind, self._name, self._server = kind, name, server
        self._json, self._candidate = as_json, candidate
        self._sequence = 0

    def tell(self, event: str, *, deadline: float | None = None, **facts: Any) -> None:
        """One event. With a deadline, how long authority lasts, counted from now on two clocks."""
        authority = {} if deadline is None else _authority(deadline)
        self._put(event, {**facts, **authority})

    def snapshot(self, document: dict[str, Any]) -> None:
        """How something stands."""
        self._put("snapshot", {"snapshot": dict(sorted(document.items()))})

    def _put(self, event: str, facts: dict[str, Any]) -> None:
        self._sequence += 1
        told = {"schema_version": _VERSION, "sequence": self._sequence, "event": event, "kind": self._kind}
        told |= {"name": self._name, "server": self._server, "candidate_id": self._candidate, **facts}
        told["observed_at"] = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        told = {field: value for field, value in told.items() if value is not None}
        if self._json:
            print(json.dumps(told), flush=True)
            return
        detail = " ".join(f"{field}={_words(value)}" for field, value in facts.items() if value is not None)
        print(" · ".join(filter(None, (self._kind, escape(self._name), event, detail))), flush=True)


def _authority(deadline: float) -> dict[str, int]:
    """The wall clock first, the remaining time last: whoever adds them up gets less than there is, never more."""
    wall = time.time_ns() // 1_000_000
    continuous = int(clock() * 1000)
    remaining = int((deadline - clock()) * 1000)
    return {
        "authority_remaining_ms": max(remaining, 1),
        "authority_observed_unix_ms": wall,
        "authority_observed_continuous_ms": continuous,
    }


def _words(value: Any) -> str:
    return escape(value) if isinstance(value, str) else json.dumps(value)
