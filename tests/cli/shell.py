"""Runs `holdfast` as a process: its exit status, stdout and stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from tests.compat.octostore.forked_process import Forked
from tests.proof_size import FULL

PROGRAM = [sys.executable, "-m", "holdfast"]
TIMEOUT_SECONDS = 30


@dataclass
class Result:
    """Exit status and output of a verb."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def fields(self) -> dict[str, str]:
        """Text output as a script reads it: a name, a tab and a value a line."""
        return dict(line.split("\t", 1) for line in self.out.splitlines())


@dataclass
class Shell:
    """Environment in which verbs are run."""

    port: int
    key: str | None
    home: Path
    more: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "OCTOSTORE_"))}
        ours |= {"HOLDFAST_URL": f"http://127.0.0.1:{self.port}", "HOME": str(self.home), "USER": "tester"}
        ours |= {"XDG_STATE_HOME": str(self.home / "state"), "XDG_CONFIG_HOME": str(self.home / "config")}
        ours |= {} if self.key is None else {"HOLDFAST_API_KEY": self.key}
        return ours | self.more

    def __call__(self, *words: object, stdin: str = "") -> Result:
        """Run a verb to its end."""
        with TemporaryFile("w+") as given, TemporaryFile("w+") as out, TemporaryFile("w+") as err:
            given.write(stdin)
            given.seek(0)
            process = self._begin([*map(str, words)], given, out, err)
            try:
                status = process.wait(TIMEOUT_SECONDS)
            finally:
                process.kill()
            out.seek(0)
            err.seek(0)
            return Result(status, out.read(), err.read())

    def _begin(self, words: list[str], given: IO[str], out: IO[str], err: IO[str]) -> subprocess.Popen[bytes] | Forked:
        """A fork, which starts faster. Verbs that hold a lease need a new process for signals, and so does one with
        PYTHONPATH, because a fork has already imported its modules."""
        holds = words[:1] == ["run"] or words[:2] == ["lock", "hold"] or (words[:1] == ["reserve"] and "--" in words)
        if FULL or holds or "PYTHONPATH" in self.more:
            return subprocess.Popen(
                [*PROGRAM, *words], env=self.environment, cwd=self.home, stdin=given, stdout=out, stderr=err
            )
        return Forked(words, self.environment, out=out, err=err, stdin=given, folder=self.home)

    def start(self, *words: object, **more: Any) -> subprocess.Popen[str]:
        """Start a verb and leave it running."""
        given: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [*PROGRAM, *map(str, words)], env=self.environment, cwd=self.home, text=True, **(given | more)
        )


def until(true: Any, seconds: float = 10.0) -> Any:
    """The first truthy result of a function; fails after the deadline."""
    deadline = time.monotonic() + seconds
    while not (answer := true()):
        assert time.monotonic() < deadline, f"still waiting after {seconds} s"
        time.sleep(0.02)
    return answer
