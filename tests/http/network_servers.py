"""Servers on a network: on a reachable address, with a certificate, or behind a proxy."""

import http.client
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from tests.compat.octostore.wire import Answer
from tests.faults.program import Program, environment


def outer_address() -> str:
    """An address of this machine that is not its loopback; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("203.0.113.1", 9))
        except OSError:
            # No other machine can connect then; test_network.py checks the same in process for peers of every kind.
            pytest.skip("this machine is on no network: it has no address but its loopback")
        address: str = probe.getsockname()[0]
        return address


class NetworkServer(Program):
    """A server started with these flags and called at `address`."""

    def __init__(self, *flags: str, address: str = "127.0.0.1", store: str = "memory:", **settings: str) -> None:
        super().__init__(store, **settings)
        self.flags = flags
        self.address = address
        self.certificate: Path | None = None

    def launch(self) -> None:
        address = ["--port", str(self.port), "--store", self.store, *self.flags]
        self.process = self.begin(["serve", *address], environment(self.settings))

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """One request on one connection, encrypted if the server has a certificate."""
        if self.certificate is None:
            connection = http.client.HTTPConnection(self.address, self.port, timeout=10)
        else:
            trust = ssl.create_default_context(cafile=self.certificate)
            connection = http.client.HTTPSConnection(self.address, self.port, timeout=10, context=trust)
        try:
            more = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, headers=more)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def is_healthy(self) -> bool:
        try:
            return self.ask("/health").status == 200
        except OSError:
            return False


def make_certificate(
    folder: Path, name: str = "server", *, address: str = "127.0.0.1", password: str | None = None
) -> tuple[Path, Path]:
    """A self-signed certificate for an address, and its key."""
    program = shutil.which("openssl")
    assert program is not None, "the tests of TLS need the program openssl"
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    lock = ["-nodes"] if password is None else ["-passout", f"pass:{password}"]
    subprocess.run(
        [program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2",
         "-subj", "/CN=localhost", "-addext", f"subjectAltName=IP:{address}", "-keyout", key, "-out", cert, *lock],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return cert, key
