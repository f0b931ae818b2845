"""Machines on one machine: network namespaces, joined by bridges that can be cut.

Each machine has two network cards. One leads to the switch that the machines use among themselves. Beside it is a
second switch: a machine that is moved there loses all that stay behind, as silently as with a broken cable. The other
card is the drill's own and always works.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable

TOGETHER, APART, CONTROL = "together", "apart", "control"
PREFIX, CONTROL_PREFIX = "10.77.0", "10.78.0"


class Network:
    """Namespaces with addresses 10.77.0.N for each other and 10.78.0.N for the drill."""

    def __init__(self, machines: Iterable[str]) -> None:
        self._numbers = {machine: number for number, machine in enumerate(machines, 1)}
        for bridge in (TOGETHER, APART, CONTROL):
            _ip("link", "add", bridge, "type", "bridge")
            _ip("link", "set", bridge, "up")
        _ip("addr", "add", f"{CONTROL_PREFIX}.254/24", "dev", CONTROL)
        for machine in self._numbers:
            _ip("netns", "add", machine)
            _ip("-n", machine, "link", "set", "lo", "up")
            self._plug(machine, machine, "eth0", TOGETHER, self.address(machine))
            self._plug(machine, f"{machine}-control", "eth1", CONTROL, self.control_address(machine))

    def address(self, machine: str) -> str:
        """Where other machines reach it."""
        return f"{PREFIX}.{self._numbers[machine]}"

    def control_address(self, machine: str) -> str:
        """Where the drill reaches it, also while it is cut off."""
        return f"{CONTROL_PREFIX}.{self._numbers[machine]}"

    def command(self, machine: str, *command: str) -> list[str]:
        """The command that runs another one on a machine."""
        return ["ip", "netns", "exec", machine, *command]

    def processes(self, machine: str) -> list[int]:
        """The ids of everything that runs on a machine."""
        return [int(line) for line in _ip("netns", "pids", machine).split()]

    def separate(self, *machines: str) -> None:
        """Cut these machines off from all others; among themselves they stay connected."""
        for machine in machines:
            _ip("link", "set", machine, "master", APART)

    def join(self, *machines: str) -> None:
        """Connect these machines with all others again."""
        for machine in machines:
            _ip("link", "set", machine, "master", TOGETHER)

    def _plug(self, machine: str, port: str, card: str, bridge: str, address: str) -> None:
        _ip("link", "add", port, "type", "veth", "peer", "name", card, "netns", machine)
        _ip("link", "set", port, "master", bridge, "up")
        _ip("-n", machine, "addr", "add", f"{address}/24", "dev", card)
        _ip("-n", machine, "link", "set", card, "up")


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout
