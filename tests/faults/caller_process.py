"""A caller in a separate process, which a test can kill in the middle of a request.

    python -m tests.faults.caller_process PORT KEY

It reads requests from stdin, one JSON array [path, Idempotency-Key, body] in each line. Before it sends one it writes
`sending` to stdout, and when the answer has come [status, body].
"""

from __future__ import annotations

import http.client
import json
import sys
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from tests.compat.octostore.server import bearer

DEAD = (OSError, http.client.HTTPException, AttributeError)
"""The last is what `http.client` makes of a server that dies while the connection is being made."""


class CallerProcess:
    """The process, from the side of the test."""

    def __init__(self, port: int, key: str) -> None:
        command = [sys.executable, "-m", "tests.faults.caller_process", str(port), key]
        folder = Path(__file__).parents[2]
        self._process: Popen[str] = Popen(command, cwd=folder, stdin=PIPE, stdout=PIPE, text=True)

    def send(self, path: str, key: str, body: dict[str, Any]) -> None:
        """Returns when the request is about to be sent."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([path, key, body]) + "\n")
        self._process.stdin.flush()
        assert self._line() == "sending\n"

    def answer(self) -> tuple[int, dict[str, Any]] | None:
        """(status, body); None if there was no answer, or if the process was killed."""
        line = self._line()
        answered = json.loads(line) if line else None
        return None if answered is None else (answered[0], answered[1])

    def kill(self) -> None:
        self._process.kill()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def main(port: str, key: str) -> None:
    """Send what is read."""
    caller = bearer(int(port), key)
    for line in sys.stdin:
        path, idempotency_key, body = json.loads(line)
        _say("sending")
        try:
            answer = caller.with_headers(Idempotency_Key=idempotency_key).post(path, body)
            _say(json.dumps([answer.status, answer.json]))
        except DEAD:
            _say("null")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
