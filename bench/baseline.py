"""Baseline for tasks: a plain queue table, as a team would write it, with one row per transaction and durable commits.

`python -m bench.baseline URL CONNECTIONS SECONDS` prints create-claim-complete cycles per second on PostgreSQL. It is
written for speed: prepared statements, autocommit (every statement is one transaction), no ORM, and one process for
every four connections, so that Python's global lock does not limit it.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import apsw
import psycopg

from bench.scripts import PAYLOAD

CONNECTIONS_PER_PROCESS = 4

TABLE = """
CREATE TABLE IF NOT EXISTS plain_queue (
    id bigserial PRIMARY KEY, type text NOT NULL, payload jsonb NOT NULL, status text NOT NULL DEFAULT 'pending',
    attempts int NOT NULL DEFAULT 0, worker text, lease_until timestamptz, result jsonb,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS plain_queue_pending ON plain_queue (type, id) WHERE status = 'pending';
"""
CREATE = "INSERT INTO plain_queue (type, payload) VALUES (%s, %s)"
CLAIM = """
UPDATE plain_queue SET status = 'claimed', attempts = attempts + 1, worker = %s,
    lease_until = now() + interval '300 s'
WHERE id = (SELECT id FROM plain_queue WHERE type = %s AND status = 'pending' ORDER BY id LIMIT 1
            FOR UPDATE SKIP LOCKED)
RETURNING id, payload
"""
COMPLETE = "UPDATE plain_queue SET status = 'completed', result = %s WHERE id = %s AND status = 'claimed'"


def cycles_per_second(url: str, connections: int, seconds: float) -> float:
    """Cycles per second of all processes together, on PostgreSQL."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(TABLE)
    begin = time.time() + 1.5
    command = [sys.executable, "-m", "bench.baseline", url, str(CONNECTIONS_PER_PROCESS), str(seconds), str(begin)]
    count = connections // CONNECTIONS_PER_PROCESS
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return sum(float(process.communicate()[0]) for process in processes)


def one_process(url: str, connections: int, seconds: float, begin: float) -> float:
    """Cycles per second of the connections of this process."""
    counts = [0] * connections
    started = begin

    def work(number: int) -> None:
        with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection, connection.cursor() as cursor:
            worker = f"w{number}"
            time.sleep(max(begin - time.time(), 0))
            while time.time() - started < seconds:
                cursor.execute(CREATE, ("bench", PAYLOAD))
                cursor.execute(CLAIM, (worker, "bench"))
                row = cursor.fetchone()
                if row is not None:
                    cursor.execute(COMPLETE, ('{"ok":true}', row[0]))
                    counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.time() - started)


def sqlite_cycles_per_second(folder: Path, seconds: float) -> float:
    """The same loop on an SQLite file: one writer, one row per transaction."""
    connection = apsw.Connection(str(folder / f"plain-{uuid.uuid4().hex}.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute(
        "CREATE TABLE queue (id INTEGER PRIMARY KEY, type TEXT, payload TEXT, status TEXT, worker TEXT, result TEXT);"
        "CREATE INDEX pending ON queue (type, id) WHERE status = 'pending'"
    )
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        connection.execute("INSERT INTO queue (type, payload, status) VALUES ('bench', ?, 'pending')", (PAYLOAD,))
        claimed = connection.execute(
            "UPDATE queue SET status = 'claimed', worker = 'w' WHERE id = (SELECT id FROM queue WHERE type = 'bench'"
            " AND status = 'pending' ORDER BY id LIMIT 1) RETURNING id"
        ).fetchone()
        connection.execute("UPDATE queue SET status = 'completed', result = '{}' WHERE id = ?", claimed)
        done += 1
    return done / (time.perf_counter() - started)


if __name__ == "__main__":
    print(one_process(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])))
