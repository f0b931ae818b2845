"""A Holdfast server in a separate process, reached by its port."""

import os
import socket
import subprocess
import sys
import tempfile
import time

from tests.compat.octostore.forked_process import Forked
from tests.compat.octostore.wire import Caller
from tests.proof_size import FULL

OPEN_TO_TESTS = {"REGISTRATION": "open", "MACHINE_KEY": "false"}
"""Tests register accounts of their own, and find no key that another server wrote."""
START_SECONDS = 30
STOP_SECONDS = 15

ALLOWED_ORIGIN = "https://pages.example"
ADMIN_KEY = "the-admin-key-of-the-wire-tests"
# Each test takes the next pair, so that no user reaches the quota of 100 locks by accident. An odd
# number: tests alternate between the stores, and each store must use every pair.
PAIRS = 25

TOKENS = {
    name: f"{name}-secret-for-the-wire-tests"
    for name in [
        *(f"{who}-{number}" for number in range(1, PAIRS + 1) for who in ("alice", "bob")),
        *("hoarder", "packrat", "sleeper", "lapser"),
    ]
}


class Server:
    """A server that can be stopped, killed and started again on the same store and port."""

    def __init__(self, store: str, tokens: str | None = None, **settings: str) -> None:
        self.store = store
        self._reserved = reserve_port()
        self.port: int = self._reserved.getsockname()[1]
        self.tokens = static_tokens() if tokens is None else tokens
        self.settings = settings
        self.output = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the server)

    def start(self) -> "Server":
        self.launch()
        deadline = time.monotonic() + START_SECONDS
        while not self.is_healthy():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"no server on {self.store} (exit {self.process.returncode}):\n{self.log()}")
            time.sleep(0.02)
        return self

    def launch(self) -> None:
        """Start the process without waiting for it to be ready."""
        ours = {key: value for key, value in os.environ.items() if not key.startswith("HOLDFAST_")}
        given = {"STATIC_TOKENS": self.tokens, "ADMIN_KEY": ADMIN_KEY, **OPEN_TO_TESTS, **self.settings}
        ours.update({f"HOLDFAST_{key}": value for key, value in given.items()})
        words = ["serve", "--host", "127.0.0.1", "--port", str(self.port), "--store", self.store]
        self.process = self.begin(words, ours)

    def begin(self, words: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes] | Forked:
        """Start the process: a new interpreter in `make prove`, else a fork of a parent with imported modules."""
        if not FULL:
            return Forked(words, environment, out=self.output, err=self.output)
        return self.spawn(words, environment)

    def spawn(self, words: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start the process in a new interpreter."""
        program = [sys.executable, "-m", "holdfast", *words]
        return subprocess.Popen(program, env=environment, stdout=self.output, stderr=self.output)

    def is_healthy(self) -> bool:
        try:
            return self.anyone.get("/health").status == 200
        except OSError:
            return False

    def stop(self) -> None:
        """Send SIGTERM; a server that does not drain in time is killed."""
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """Kill it. A parent of workers gets SIGTERM, because its workers would keep running."""
        self.stop() if "WORKERS" in self.settings else self.kill()
        self.close_files()

    def close_files(self) -> None:
        """Close what belongs to a server that does not run."""
        self.output.close()
        self._reserved.close()

    def log(self) -> str:
        self.output.seek(0)
        return self.output.read().decode(errors="replace")[-4000:]

    @property
    def anyone(self) -> Caller:
        """A caller without credentials."""
        return Caller(self.port)

    @property
    def admin(self) -> Caller:
        return Caller(self.port, {"X-Admin-Key": ADMIN_KEY}, "admin")

    def user(self, name: str) -> Caller:
        return bearer(self.port, TOKENS[name], name)


def bearer(port: int, token: str, name: str = "") -> Caller:
    return Caller(port, {"Authorization": f"Bearer {token}"}, name, token)


def static_tokens(*without: str) -> str:
    """The list of static tokens, without the given users."""
    return ",".join(f"{name}:{token}" for name, token in TOKENS.items() if name not in without)


def reserve_port() -> socket.socket:
    """A socket that keeps its port from other programs, also while the server that listens on it is away."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the server may listen on the same port
    reserved.bind(("127.0.0.1", 0))
    return reserved


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
