"""Cycles of PgQueuer: callers enqueue one job each time, then a worker takes and finishes all of them.

Runs in .venv/peers: `python pgqueuer_cycles.py URL CALLERS SECONDS`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import asyncpg
from pgqueuer import AsyncpgPoolDriver, Job, PgQueuer, Queries
from pgqueuer.types import QueueExecutionMode

PAYLOAD = b'{"document":"doc-1842","pages":[1,2,3]}'


async def main(url: str, callers: int, seconds: float) -> None:
    """Enqueue for half of the time, then finish everything; the rate is that of both together."""
    async with asyncpg.create_pool(url, min_size=2, max_size=min(callers, 32) + 2) as pool:
        driver = AsyncpgPoolDriver(pool)
        queries, worker = Queries(driver), PgQueuer(driver)
        await queries.install()
        counts = [0] * callers

        @worker.entrypoint("bench")
        async def finish(_job: Job) -> None:
            pass

        async def enqueue(number: int, until: float) -> None:
            while not counts[number] or time.perf_counter() < until:
                await queries.enqueue("bench", PAYLOAD)
                counts[number] += 1

        began, before = time.perf_counter(), time.process_time()
        await asyncio.gather(*(enqueue(number, began + seconds / 2) for number in range(callers)))
        await worker.run(batch_size=max(callers, 10), mode=QueueExecutionMode.drain)
        elapsed, cpu = time.perf_counter() - began, time.process_time() - before
    print(json.dumps({"cycles_rate": sum(counts) / elapsed, "cpu": cpu / sum(counts)}))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
