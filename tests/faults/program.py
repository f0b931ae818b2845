"""Runs `holdfast serve` with exactly these flags and variables."""

import os
import subprocess
import sys
from dataclasses import dataclass

from tests.compat.octostore.server import Server


@dataclass(frozen=True)
class Ended:
    status: int
    lines: list[str]
    """What it said on stderr."""


def run(*flags: str, seconds: float = 20, **variables: str) -> Ended:
    """Run the program to its end."""
    done = subprocess.run(
        command(*flags), env=environment(variables), capture_output=True, timeout=seconds, check=False, text=True
    )
    assert done.stdout == "", "results go to stdout, and a server that did not start has none"
    return Ended(done.returncode, done.stderr.splitlines())


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
