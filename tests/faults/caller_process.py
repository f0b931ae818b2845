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

TIMEOUT_SECONDS = 20
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
    authorized = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    for line in sys.stdin:
        path, idempotency_key, body = json.loads(line)
        _say("sending")
        try:
            _say(json.dumps(_post(int(port), path, body, {"Idempotency-Key": idempotency_key, **authorized})))
        except DEAD:
            _say("null")


def _post(port: int, path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any]:
    """(status, body) of the answer. The client of the other tests imports much, and a caller is started often."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
