"""Cycles of persist-queue: threads put, get and acknowledge.

Runs in .venv/peers: `python persist_queue_cycles.py FOLDER CALLERS SECONDS`.
"""

from __future__ import annotations

import json
import sys
import threading
import time

import persistqueue

PAYLOAD = {"document": "doc-1842", "pages": [1, 2, 3]}


def main(folder: str, callers: int, seconds: float) -> None:
    """Run all threads until the time is over."""
    queue = persistqueue.SQLiteAckQueue(folder, multithreading=True)
    counts = [0] * callers
    began, before = time.perf_counter(), time.process_time()

    def work(number: int) -> None:
        while not counts[number] or time.perf_counter() - began < seconds:
            queue.put(PAYLOAD)
            queue.ack(queue.get())
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed, cpu = time.perf_counter() - began, time.process_time() - before
    print(json.dumps({"cycles_rate": sum(counts) / elapsed, "cpu": cpu / sum(counts)}))


main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
