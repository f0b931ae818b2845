"""Runs `holdfast serve` with exactly these flags and variables."""

import os
import subprocess
import sys
from dataclasses import dataclass
from tempfile import TemporaryFile

from tests.compat.octostore.forked_process import Forked
from tests.compat.octostore.server import Server
from tests.proof_size import FULL


@dataclass(frozen=True)
class Ended:
    status: int
    lines: list[str]
    """What it said on stderr."""


def run(*flags: str, seconds: float = 20, **variables: str) -> Ended:
    """Run the program to its end: a fork, but a new interpreter in `make prove` or where PYTHONPATH chooses modules."""
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        process: subprocess.Popen[bytes] | Forked
        if FULL or "PYTHONPATH" in os.environ:
            process = subprocess.Popen(command(*flags), env=environment(variables), stdout=out, stderr=err)
        else:
            process = Forked(["serve", *flags], environment(variables), out=out, err=err)
        try:
            status = process.wait(seconds)
        finally:
            process.kill()
        out.seek(0)
        err.seek(0)
        assert out.read() == "", "results go to stdout, and a server that did not start has none"
        assert status is not None
        return Ended(status, err.read().splitlines())


class Program(Server):
    """A server without keys, unless the test sets them."""

    def launch(self) -> None:
        address = ["--host", "127.0.0.1", "--port", str(self.port), "--store", self.store]
        self.process = self.begin(["serve", *address], environment(self.settings))


def command(*flags: str) -> list[str]:
    return [sys.executable, "-m", "holdfast", "serve", *flags]


def environment(variables: dict[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return inherited | {f"HOLDFAST_{name}": value for name, value in variables.items()}
