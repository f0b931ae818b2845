"""Three machines that each run etcd, Patroni and PostgreSQL: one primary and two standbys."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from tests.failover.network import Network

NODES = ("db1", "db2", "db3")
USER = "postgres"
"""The system user that Debian's PostgreSQL brings; PostgreSQL refuses to run as root."""
START_SECONDS = 300.0
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "ETCD_UNSUPPORTED_ARCH": "arm64"}
"""On arm64 Debian 12's etcd starts only if it is told that this is meant; elsewhere it ignores it."""
ETCD_DATA, DATA, SOCKET = "etcd-data", "data", "socket"
TTL_SECONDS = 20
"""How long Patroni waits for a primary that is silent: the shortest time that it accepts."""


class Cluster:
    """The machines of the database."""

    def __init__(self, network: Network, patroni: Path, folder: Path, *, synchronous: bool) -> None:
        self._network = network
        self._patroni = patroni
        self._folder = folder
        self._synchronous = synchronous
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start everything and wait until there are a primary and two standbys, and an empty database."""
        for node in NODES:
            for part in (ETCD_DATA, SOCKET, "log"):
                (self._folder / node / part).mkdir(parents=True)
            (self._folder / node / "patroni.json").write_text(json.dumps(self._configuration(node)))
            subprocess.run(["chown", "-R", USER, str(self._folder / node)], check=True)
            self._run(node, "etcd", "etcd", *self._etcd_options(node))
        for node in NODES:
            self.start_database(node)
        wait_for(self.is_complete, "a primary with two standbys", START_SECONDS)
        with self.connect("postgres") as connection:
            connection.execute("CREATE DATABASE holdfast")

    def start_database(self, node: str) -> None:
        """Start Patroni, which starts PostgreSQL."""
        programs = self._patroni / "bin"
        command = (programs / "python", programs / "patroni", self._folder / node / "patroni.json")
        self._run(node, "patroni", *map(str, command))

    def kill_database(self, node: str) -> None:
        """Kill Patroni and every process of PostgreSQL at once, without a word to anybody."""
        while victims := [process for process in self._network.processes(node) if _name(process) not in {"etcd", ""}]:
            for process in victims:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    def stop(self) -> None:
        """Kill everything on the machines."""
        for node in NODES:
            self.kill_database(node)
        for child in self._children:
            child.kill()
            child.wait()

    def primary(self, asked: tuple[str, ...] = NODES) -> str | None:
        """The machine that is the primary according to the first of these that answers."""
        for member in self.members(asked):
            if member["role"] == "leader" and member["state"] == "running":
                return str(member["name"])
        return None

    def members(self, asked: tuple[str, ...] = NODES) -> list[dict[str, Any]]:
        """What Patroni reports of each machine."""
        for node in asked:
            try:
                return list(self._request(node, "cluster")["members"])
            except (OSError, ValueError, KeyError):
                continue
        return []

    def is_complete(self) -> bool:
        """Whether there is a primary, and both others stream from it, one of them synchronously if that is wanted."""
        members = self.members()
        roles = sorted(member["role"] for member in members if member["state"] in {"running", "streaming"})
        return roles == (
            ["leader", "replica", "sync_standby"] if self._synchronous else ["leader", "replica", "replica"]
        )

    def switch_over(self, primary: str) -> None:
        """Ask Patroni to make another machine the primary; returns when it has done so."""
        self._request(primary, "switchover", {"leader": primary})

    def url(self) -> str:
        """The address of Holdfast's database: all machines, of which libpq takes the one that accepts writes."""
        hosts = ",".join(f"{self._network.address(node)}:5432" for node in NODES)
        return f"postgresql://{USER}@{hosts}/holdfast?target_session_attrs=read-write"

    def connect(self, database: str = "holdfast") -> psycopg.Connection[tuple[Any, ...]]:
        """A connection of the drill itself to the primary."""
        hosts = ",".join(self._network.control_address(node) for node in NODES)
        address = f"host={hosts} user={USER} dbname={database} target_session_attrs=read-write connect_timeout=3"
        return psycopg.connect(address, autocommit=True)

    def _run(self, node: str, part: str, *command: str) -> None:
        as_user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        with (self._folder / node / "log" / part).open("ab") as log:
            child = subprocess.Popen(
                self._network.command(node, *as_user, *command), cwd=self._folder, stdout=log, stderr=log,
                env=ENVIRONMENT | {"PATH": os.environ["PATH"]},
            )  # fmt: skip
        self._children.append(child)

    def _request(self, node: str, path: str, document: dict[str, Any] | None = None) -> Any:
        """Ask Patroni's REST API on a machine."""
        data = None if document is None else json.dumps(document).encode()
        url = f"http://{self._network.control_address(node)}:8008/{path}"
        headers = {"content-type": "application/json"}
        with urllib.request.urlopen(
            urllib.request.Request(url, data, headers), timeout=3 if data is None else 60
        ) as got:
            text = got.read()
        return json.loads(text) if data is None else text

    def _etcd_options(self, node: str) -> list[str]:
        peers = {node: f"http://{self._network.address(node)}:2380" for node in NODES}
        client = f"http://{self._network.address(node)}:2379"
        return [
            "--name", node, "--data-dir", str(self._folder / node / ETCD_DATA), "--logger", "zap",
            "--listen-peer-urls", peers[node], "--initial-advertise-peer-urls", peers[node],
            "--listen-client-urls", client, "--advertise-client-urls", client,
            "--initial-cluster", ",".join(f"{name}={url}" for name, url in peers.items()),
        ]  # fmt: skip

    def _configuration(self, node: str) -> dict[str, Any]:
        """Patroni's configuration of a machine. YAML includes JSON."""
        folder, address = self._folder / node, self._network.address(node)
        return {
            "scope": "holdfast",
            "name": node,
            "restapi": {"listen": "0.0.0.0:8008", "connect_address": f"{address}:8008"},
            "etcd3": {"hosts": [f"{self._network.address(other)}:2379" for other in NODES]},
            "bootstrap": {
                "dcs": {
                    "ttl": TTL_SECONDS,
                    "loop_wait": 5,
                    "retry_timeout": 5,
                    "synchronous_mode": self._synchronous,
                    "synchronous_mode_strict": self._synchronous,
                    "postgresql": {"use_pg_rewind": True, "parameters": {"max_wal_size": "256MB"}},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums"],
            },
            "postgresql": {
                "listen": "0.0.0.0:5432",
                "connect_address": f"{address}:5432",
                "bin_dir": str(newest_postgres()),
                "data_dir": str(folder / DATA),
                "use_unix_socket": True,
                "pgpass": str(folder / "pgpass"),
                "authentication": {"superuser": {"username": USER}, "replication": {"username": USER}},
                "parameters": {"unix_socket_directories": str(folder / SOCKET)},
                "pg_hba": [
                    f"{how} {what} all {where} trust"
                    for how, where in (("local", ""), ("host", "samenet"))
                    for what in ("all", "replication")
                ],
            },
        }


def _name(process: int) -> str:
    """The name of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


def newest_postgres() -> Path:
    """The folder of the programs of the newest PostgreSQL that Debian has installed."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    return versions[-1]


def wait_for(condition: Callable[[], object], what: str, seconds: float) -> None:
    """Ask until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}: is this machine busy with other work?")
        time.sleep(0.2)
