"""The first key: shown once on a terminal, else written to a private file; the store has only its hash."""

import hashlib
import os
import re
import subprocess
from pathlib import Path

import psycopg

from tests.faults.program import Program, command, environment
from tests.http.job_client import Agent, claimed, fresh, ok

KEY = re.compile(r"hf_live_[0-9A-Za-z]{32}_[0-9A-Za-z]{6}")


def test_the_first_key_is_shown_once_and_works_ever_after(store, new_store_url, new_server):
    url = new_store_url()
    server = bare(url).start()
    try:
        path = Path(re.search(r"key    in (\S+),", server.log())[1])
        key = path.read_text().strip()
        assert KEY.fullmatch(key)
        assert path.stat().st_mode & 0o777 == 0o600
        assert "hf_live_" not in server.log(), "stderr may be a log that others read"
        path.unlink()
        holder = Agent(server.port, {"Authorization": f"Bearer {key}"})
        job = fresh()
        claimed(holder.claim(job, "me"))
        ok(holder.force_release(job, "the first key has every scope"))
        server.kill()
        assert key.encode() not in everything(url)
        assert hashlib.sha256(key.encode()).hexdigest().encode() in everything(url)
        shown = len(server.log())
        server.start()
        assert "key    in" not in server.log()[shown:], "the second start has nothing to hand over"
        claimed(holder.claim(job, "me"))
        server.stop()
        assert key.encode() not in everything(url)
        assert key not in server.log()
    finally:
        server.close()


def test_a_terminal_shows_the_first_key(tmp_path):
    here, there = os.openpty()
    words = command("--port", "0", "--store", f"sqlite:///{tmp_path}/x.db")
    server = subprocess.Popen(words, env=environment({}), stdout=subprocess.DEVNULL, stderr=there)
    os.close(there)
    shown = b""
    try:
        with os.fdopen(here, "rb") as terminal:
            while b"/v1/jobs/hello/claim" not in shown:
                shown += terminal.read1(10_000)
    finally:
        server.terminate()
        server.wait(20)
    assert len(set(KEY.findall(shown.decode()))) == 1
    assert list(tmp_path.glob("first-key*")) == []


def test_no_first_key_is_created_if_keys_are_configured(new_store_url, new_server):
    server = new_server(new_store_url()).start()
    assert "hf_live_" not in server.log()
    for secret in (*server.tokens.split(","), server.settings["ROOT_KEY"]):
        assert secret.rpartition(":")[2] not in server.log()


def test_no_configured_secret_is_stored(new_store_url, new_server):
    server = new_server(new_store_url()).start()
    secrets = [entry.partition(":")[2] for entry in server.tokens.split(",")] + [server.settings["ROOT_KEY"]]
    server.kill()
    kept = everything(server.store)
    assert hashlib.sha256(secrets[0].encode()).hexdigest().encode() in kept
    assert not [secret for secret in secrets if secret.encode() in kept]


def test_a_lease_id_is_kept_only_as_its_hash(new_store_url, new_server, job):
    server = new_server(new_store_url()).start()
    holder = Agent(server.port, {"Authorization": f"Bearer {server.settings['ROOT_KEY']}"})
    lease = claimed(holder.claim(job, "me"))
    server.kill()
    assert lease["lease_id"].encode() not in everything(server.store)


def bare(url):
    """A server with no key at all in its settings."""
    return Program(url)


def everything(url):
    """All bytes of the store."""
    if url.startswith("sqlite:"):
        path = Path(url.removeprefix("sqlite:///"))
        return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        rows = [connection.execute(f'SELECT t::text FROM "{table}" t').fetchall() for (table,) in tables]
        return "\n".join(row for found in rows for (row,) in found).encode()
