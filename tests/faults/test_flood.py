"""Ten times what a server can take, from new claimers, wrong keys and large bodies in turn: holders keep their leases.

Holders renew at a third of their TTL, and repeat a renewal that was refused. The full size floods for a minute each.
"""

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import dataclass, field

import psutil
import pytest

from tests.compat.octostore.server import TOKENS
from tests.faults.flood import CLAIMS, KINDS, LARGE_BODIES, WRONG_KEYS, post
from tests.http.job_client import agent, fresh
from tests.proof_size import FULL, sized

pytestmark = pytest.mark.waits(10)

HOLDER_KEY, FLOOD_KEY = TOKENS["alice-1"], TOKENS["bob-1"]
TTLS = (5, 15) if FULL else (5,)
HOLDERS = sized(25, 50)
"""For each TTL."""
SECONDS = sized(2, 60)
"""How long each flood takes; in the small form every holder renews once."""
CONNECTIONS = {
    "sqlite": {CLAIMS: sized(400, 5_000), WRONG_KEYS: sized(200, 5_000), LARGE_BODIES: sized(10, 400)},
    "postgres": {CLAIMS: 1_500, WRONG_KEYS: 1_500, LARGE_BODIES: 400},
}
RETRY_SECONDS = 0.2
RECOVERY_SECONDS = 5.0
MORE_MEMORY = 400 * 1024 * 1024
"""How much a flood may add to the memory of the server."""
REFUSALS = {400, 401, 429, 503}
"""400 is for a large body with unknown fields."""


@dataclass
class Record:
    """What happened to all holders."""

    lost: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """From the moment a renewal was due until it succeeded."""
    refused: int = 0

    def p99(self) -> float:
        assert self.seconds, "no lease was renewed during the flood"
        return sorted(self.seconds)[int(len(self.seconds) * 0.99)]


class Holder:
    """One worker with a connection of its own."""

    def __init__(self, port: int, ttl: int, record: Record) -> None:
        self._port, self._ttl, self._record = port, ttl, record
        self._job = fresh(f"held-{ttl}")
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def claim(self) -> None:
        status, body = await self._call("claim", {"owner": "holder", "ttl_seconds": self._ttl})
        assert status == 200, body
        self._lease_id = body["lease_id"]
        self._renewed = time.monotonic()

    async def hold(self, until: float) -> None:
        """Renew until then, or until the lease is lost."""
        while (due := self._renewed + self._ttl / 3) < until:
            await asyncio.sleep(due - time.monotonic())
            if not await self._renew(due):
                self._record.lost.append(self._job)
                return
        await asyncio.sleep(until - time.monotonic())

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            await self._streams[1].wait_closed()

    async def _renew(self, due: float) -> bool:
        while time.monotonic() < self._renewed + self._ttl:
            sent = time.monotonic()
            status, _ = await self._call("heartbeat", {"lease_id": self._lease_id})
            if status == 200:
                self._record.seconds.append(time.monotonic() - due)
                self._renewed = sent
                return True
            if status == 409:
                return False
            self._record.refused += 1
            await asyncio.sleep(RETRY_SECONDS)
        return False

    async def _call(self, verb: str, document: dict) -> tuple[int, dict]:
        """Send one request; status 0 if the connection broke or the lease ended meanwhile."""
        try:
            async with asyncio.timeout(self._ttl):
                if self._streams is None:
                    self._streams = await asyncio.open_connection("127.0.0.1", self._port)
                reader, writer = self._streams
                writer.write(post(f"/v1/jobs/{self._job}/{verb}", json.dumps(document).encode(), HOLDER_KEY))
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
        except (OSError, EOFError, TimeoutError):
            if self._streams is not None:
                self._streams[1].close()
            self._streams = None
            return 0, {}
        return int(head[9:12]), body


def flood(port: int, kind: str, connections: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.faults.flood", kind, str(port), str(connections), str(SECONDS), FLOOD_KEY]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


@pytest.mark.parametrize("store", ["sqlite", *(["postgres"] if FULL else [])], indirect=True)
@pytest.mark.parametrize("kind", KINDS)
def test_holders_keep_their_leases_in_every_flood(new_store_url, new_server, store, kind, capsys):
    server = new_server(new_store_url()).start()
    assert agent(server, "bob-1").claim(fresh()).status == 200  # its key is known, as that of any worker
    figures = asyncio.run(hold_through(server, kind, CONNECTIONS[store][kind]))
    with capsys.disabled():
        sys.stdout.write(f"\n{store}, {kind}: {figures}\n")
    assert figures["lost"] == 0, figures
    assert FULL or not figures["renewals refused"], figures  # in so short a flood a refusal could cost no lease
    assert set(figures["statuses"]) <= {"200", *map(str, REFUSALS)}, figures
    assert figures["memory added, MB"] < MORE_MEMORY / 1e6, figures
    assert figures["recovered after, s"] < RECOVERY_SECONDS, figures


async def hold_through(server, kind, connections):
    """Hold leases during one flood; returns the figures."""
    process = psutil.Process(server.process.pid)
    record = Record()
    holders = [Holder(server.port, ttl, record) for ttl in TTLS for _ in range(HOLDERS)]
    for holder in holders:
        await holder.claim()
    before, peak = process.memory_info().rss, 0
    program = flood(server.port, kind, connections)
    until = time.monotonic() + SECONDS
    holding = [asyncio.create_task(holder.hold(until)) for holder in holders]
    while program.poll() is None:
        peak = max(peak, process.memory_info().rss)
        await asyncio.sleep(0.05)
    ended = time.monotonic()
    await asyncio.to_thread(wait_for_a_claim, server)
    recovered = time.monotonic() - ended
    await asyncio.gather(*holding)
    for holder in holders:
        await holder.close()
    counted = json.loads(program.communicate()[0])
    return {
        **counted,
        "renewals": len(record.seconds),
        "renewals refused": record.refused,
        "p99 of renewals, s": round(record.p99(), 2),
        "lost": len(record.lost),
        "memory before, MB": before // 10**6,
        "memory added, MB": (peak - before) // 10**6,
        "memory after, MB": process.memory_info().rss // 10**6,
        "recovered after, s": round(recovered, 2),
    }


def wait_for_a_claim(server):
    """Return when a new claim succeeds again."""
    deadline = time.monotonic() + 30
    while agent(server, "bob-1").claim(fresh()).status != 200:
        assert time.monotonic() < deadline
        time.sleep(RETRY_SECONDS)
