"""Plain tables on PostgreSQL, as a team would write them, driven by PostgreSQL's own load generator pgbench."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg

from bench.baseline import TABLE as QUEUE_TABLE
from bench.peers.peer import LOCKS, QUEUES, Measure, Outcome, Peer
from bench.scripts import PAYLOAD
from bench.serving import cpu_seconds
from bench.stores import main_process, private_postgres
from tests.postgres import Postgres

LEASE_TABLE = """
CREATE TABLE plain_leases (name bigint PRIMARY KEY, owner text NOT NULL, token bigint NOT NULL,
                           expires_at timestamptz NOT NULL);
CREATE SEQUENCE tokens;
"""
LEASE_CYCLE = """
\\set name random(1, 1000000000000)
INSERT INTO plain_leases AS held VALUES (:name, 'bench', nextval('tokens'), now() + interval '60 s')
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = excluded.token, expires_at = excluded.expires_at
    WHERE held.expires_at < now() RETURNING token \\aset
DELETE FROM plain_leases WHERE name = :name AND token = :token;
"""
QUEUE_CYCLE = f"""
\\set id 0
INSERT INTO plain_queue (type, payload) VALUES ('bench', '{PAYLOAD}');
UPDATE plain_queue SET status = 'claimed', attempts = attempts + 1, worker = 'w', lease_until = now() + interval '300 s'
    WHERE id = (SELECT id FROM plain_queue WHERE type = 'bench' AND status = 'pending' ORDER BY id LIMIT 1
                FOR UPDATE SKIP LOCKED) RETURNING id \\aset
UPDATE plain_queue SET status = 'completed', result = '{{}}' WHERE id = :id AND status = 'claimed';
"""


def opener(table: str, cycle: str) -> Callable[[Path], AbstractContextManager[Measure]]:
    """Runs a PostgreSQL of its own with this table, and measures this cycle."""

    @contextmanager
    def open_table(folder: Path) -> Iterator[Measure]:
        with private_postgres() as database:
            url = database.new_database()
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(table)
            (folder / "cycle.sql").write_text(cycle)
            yield lambda connections, seconds: measure(database, url, folder / "cycle.sql", connections, seconds)

    return open_table


def measure(database: Postgres, url: str, script: Path, connections: int, seconds: float) -> Outcome:
    """Cycles per second as pgbench reports them; it counts whole seconds."""
    server = main_process(database)
    before = cpu_seconds(server)
    done = subprocess.run(
        [database._programs / "pgbench", "-n", "-M", "prepared", "-f", script, "-c", str(connections), "-j", "2",
         "-T", str(max(round(seconds), 1)), url],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    count = re.search(r"actually processed: (\d+)", done.stdout)
    rate = re.search(r"tps = ([\d.]+) ", done.stdout)
    assert count, done.stdout
    assert rate, done.stdout
    return Outcome(float(rate[1]), (cpu_seconds(server) - before) / int(count[1]))


PEERS = (
    Peer("a PostgreSQL table of leases", LOCKS, opener(LEASE_TABLE, LEASE_CYCLE)),
    Peer("a PostgreSQL table with SKIP LOCKED", QUEUES, opener(QUEUE_TABLE, QUEUE_CYCLE)),
)
