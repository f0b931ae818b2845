"""The drill: rounds of one fault under load, with every check after each round."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.failover.checks import Findings, check, read_events
from tests.failover.clients import Client, start_clients
from tests.failover.cluster import NODES, Cluster, wait_for
from tests.failover.history import History
from tests.failover.network import Network
from tests.failover.servers import SERVERS, HoldfastServer

CUT_OFF = SERVERS[0]
"""The server that is cut off together with the primary, with its clients: half of all."""
CALM_SECONDS = 3.0
"""Load before and after each fault."""
FAILOVER_SECONDS = 600.0
"""Long enough for a machine that is busy with other work."""
EVENTS = "SELECT seq, subject, version, kind, at, request_id, data FROM events WHERE account = 'default' ORDER BY seq"


@dataclass
class Result:
    """What the rounds of one fault have shown."""

    fault: str
    rounds: int
    findings: Findings
    lost_leases: int
    longest_outage: float
    unexpected: list[str]
    differences: str


class Drill:
    """A cluster, two Holdfast servers, and their clients."""

    def __init__(self, network: Network, patroni: Path, folder: Path, *, synchronous: bool) -> None:
        self._network = network
        self._cluster = Cluster(network, patroni, folder, synchronous=synchronous)
        self._cluster.start()
        self._servers = [
            HoldfastServer(network, machine, self._cluster.url(), folder / machine, synchronous=synchronous)
            for machine in SERVERS
        ]
        self._history = History()
        self._clients: list[Client] = []

    def run(self, fault: str, rounds: int, report: Callable[[str], None]) -> Result:
        """Run the rounds, each of which begins and ends with a complete cluster that serves all clients."""
        self._clients = start_clients(self._servers, self._history)
        longest = 0.0
        for number in range(1, rounds + 1):
            self._wait_until_served()
            began = time.monotonic()
            time.sleep(CALM_SECONDS)
            FAULTS[fault](self)
            self._wait_until_served()
            time.sleep(CALM_SECONDS)
            outage = self._outage(fault, began)
            longest = max(longest, outage)
            report(f"{fault} {number}: outage {outage:.1f} s, {_summary(self._check(), self._lost_leases(fault))}")
        for client in self._clients:
            client.stop()
        for client in self._clients:
            client.join()
        findings = self._check()
        return Result(
            fault, rounds, findings, self._lost_leases(fault), longest, self._history.unexpected, self._verify()
        )

    def stop(self) -> None:
        """End the servers and the cluster."""
        for server in self._servers:
            server.stop()
        self._cluster.stop()

    def switch_over(self) -> None:
        """An administrator makes another machine the primary."""
        self._cluster.switch_over(self._primary())

    def kill(self) -> None:
        """The primary dies: Patroni and PostgreSQL are killed, and started again when another machine took over."""
        primary = self._primary()
        self._cluster.kill_database(primary)
        self._wait_for_another(primary)
        self._cluster.start_database(primary)

    def partition(self) -> None:
        """The primary and one Holdfast server with its clients are cut off from all others."""
        primary = self._primary()
        self._network.separate(primary, CUT_OFF)
        self._wait_for_another(primary)
        time.sleep(CALM_SECONDS)
        self._network.join(primary, CUT_OFF)

    def _primary(self) -> str:
        primary = self._cluster.primary()
        assert primary is not None
        return primary

    def _wait_for_another(self, primary: str) -> None:
        others = tuple(node for node in NODES if node != primary)
        wait_for(lambda: self._cluster.primary(others) in others, "a new primary", FAILOVER_SECONDS)

    def _wait_until_served(self) -> None:
        """Wait until the cluster is complete and both servers acknowledge."""
        wait_for(self._cluster.is_complete, "a complete cluster", FAILOVER_SECONDS)
        asked_at = time.monotonic()
        for server in SERVERS:
            wait_for(
                lambda server=server: self._acknowledged_since(server, asked_at),
                f"an answer of {server}",
                FAILOVER_SECONDS,
            )

    def _acknowledged_since(self, server: str, since: float) -> bool:
        return any(call.server == server and call.sent_at > since for call in self._history.acknowledged()[-100:])

    def _outage(self, fault: str, since: float) -> float:
        """How long a client that could reach the new primary was not served."""
        reachable = SERVERS[1:] if fault == "partition" else SERVERS
        now = time.monotonic()
        return max(self._history.longest_outage(server, since, now) for server in reachable)

    def _lost_leases(self, fault: str) -> int:
        """Leases lost in an outage, except where the holder was cut off while others were served."""
        excused = CUT_OFF if fault == "partition" else "none"
        return sum(excused not in name for name in self._history.lost_leases)

    def _check(self) -> Findings:
        """Check every call that has been answered until now."""
        calls = list(self._history.calls)
        with self._cluster.connect() as connection:
            return check(calls, read_events(connection.execute(EVENTS)))

    def _verify(self) -> str:
        """Fold the log and compare it with the rows; empty if they agree."""
        program = str(Path(sys.executable).parent / "holdfast")
        command = self._network.command(SERVERS[1], program, "verify", "--store", self._cluster.url())
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        return "" if done.returncode == 0 else done.stdout + done.stderr


FAULTS: dict[str, Callable[[Drill], None]] = {
    "switchover": Drill.switch_over,
    "kill": Drill.kill,
    "partition": Drill.partition,
}


def _summary(findings: Findings, lost_leases: int) -> str:
    return (
        f"{findings.acknowledged} acknowledged, {findings.unknown} unknown, {len(findings.lost)} lost,"
        f" {len(findings.tokens_reused)} tokens reused, {len(findings.two_holders)} times two holders,"
        f" {len(findings.gaps)} gaps, {lost_leases} leases lost"
    )
