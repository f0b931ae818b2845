"""Reads the events of `hold --json` as a supervisor does, and checks each of them."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

AUTHORITY = {"leader", "acquired", "renewed"}
ENDS = {"released", "lost", "uncertain", "error"}
ORDER = [
    "schema_version",
    "sequence",
    "event",
    "kind",
    "name",
    "server",
    "candidate_id",
    "term",
    "expires_at",
    "retry_after_ms",
    "reason_code",
    "authority_remaining_ms",
    "authority_observed_unix_ms",
    "authority_observed_continuous_ms",
    "observed_at",
]


class Supervisor:
    """Reads the events of one holder."""

    def __init__(self, process: subprocess.Popen[str], kind: str, name: str, candidate: str | None = None) -> None:
        self.process, self.kind, self.name, self.candidate = process, kind, name, candidate
        self.events: list[dict[str, Any]] = []
        self.term: int | None = None

    def until(self, *wanted: str) -> dict[str, Any]:
        """The next event of these kinds; all events before it are checked too."""
        while True:
            line = self.process.stdout.readline()
            assert line, f"the stream ended before {wanted}: {self.process.communicate()} {self.events}"
            event = json.loads(line)
            self._check(event)
            self.events.append(event)
            if event["event"] in wanted:
                return event
            assert event["event"] not in ENDS, f"{event} came before {wanted}"

    def end(self, seconds: float = 20) -> int:
        """Exit status of the holder."""
        out, err = self.process.communicate(timeout=seconds)
        assert not out, f"events after the last one: {out}"
        assert "Traceback" not in err
        return self.process.returncode

    def _check(self, event: dict[str, Any]) -> None:
        assert list(event) == [field for field in ORDER if field in event], "fields are in their order"
        assert event["schema_version"] == 1
        assert event["sequence"] == len(self.events) + 1
        assert (event["kind"], event["name"], event.get("candidate_id")) == (self.kind, self.name, self.candidate)
        if event["event"] not in AUTHORITY:
            return
        assert self.term in {None, event["term"]}, "authority never changes its term"
        assert (self.term is None) == (event["event"] != "renewed"), "authority starts once"
        self.term = event["term"]
        continuous = time.clock_gettime(time.CLOCK_BOOTTIME) * 1000
        age = max(time.time() * 1000 - event["authority_observed_unix_ms"],
                  continuous - event["authority_observed_continuous_ms"])  # fmt: skip
        assert age >= -1, "the event is from the future"
        assert 0 < event["authority_remaining_ms"] <= 300_000
