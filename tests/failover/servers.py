"""Holdfast servers of the drill, each on a machine of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from tests.failover.cluster import wait_for
from tests.failover.network import Network

SERVERS = ("hf1", "hf2")
KEY = "failover-drill-root-key-of-no-use-elsewhere"
PORT = 7700
START_SECONDS = 300.0


class HoldfastServer:
    """One `holdfast serve` on the cluster's database."""

    def __init__(self, network: Network, machine: str, store: str, folder: Path, *, synchronous: bool) -> None:
        self.machine = machine
        self.host = network.control_address(machine)
        folder.mkdir(parents=True)
        settings = {
            "HOLDFAST_HOST": self.host,
            "HOLDFAST_PORT": str(PORT),
            "HOLDFAST_STORE": store,
            "HOLDFAST_ROOT_KEY": KEY,
            "HOLDFAST_POSTGRES_REQUIRE_STANDBY": str(synchronous).lower(),
            "HOLDFAST_ALLOW_INSECURE_HTTP": "true",
            "XDG_CONFIG_HOME": str(folder),
            "XDG_STATE_HOME": str(folder),
        }
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "PG"))}
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                network.command(machine, str(Path(sys.executable).parent / "holdfast"), "serve"),
                env=inherited | settings, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        wait_for(self._answers, f"an answer of the Holdfast server on {machine}", START_SECONDS)

    def stop(self) -> None:
        """End it as an operator would."""
        self._process.terminate()
        self._process.wait()

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError(f"the Holdfast server on {self.machine} ended: {self.log.read_text()}")
        connection = HTTPConnection(self.host, PORT, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()
