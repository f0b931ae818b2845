"""Servers from Debian that speak a protocol of lines or JSON: Redis, etcd and beanstalkd."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.peer import LOCKS, QUEUES, Measure, Peer, measured_by_load, process
from bench.scripts import FIRST, NUMBER, PAYLOAD, Load, Step
from bench.serving import free_port

RELEASE = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
TTL = 600


@contextmanager
def open_redis(folder: Path) -> Iterator[Measure]:
    """Redis that flushes its log at every write. A lock is a key with a lifetime; it has no token and no history."""
    port = free_port()
    options = {"port": port, "bind": "127.0.0.1", "dir": folder, "save": "", "appendonly": "yes",
               "appendfsync": "always"}  # fmt: skip
    command = ["redis-server", *(word for name, value in options.items() for word in (f"--{name}", str(value)))]
    with process(command, folder) as server:
        wait_for_port(port)
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(f'SCRIPT LOAD "{RELEASE}"\r\n'.encode())
            assert connection.recv(100).startswith(b"$40")
        yield measured_by_load(port, [server], redis_load)


def redis_load() -> Load:
    """SET NX with a lifetime, then a script that deletes the key if it still has this value."""
    name, script = f"lock:{uuid.uuid4().hex[:8]}:{NUMBER}", hashlib.sha1(RELEASE.encode()).hexdigest()  # noqa: S324
    acquire = Step(f"SET {name} {NUMBER} NX PX 60000\r\n", expected="+OK", lines=1)
    release = Step(f"EVALSHA {script} 1 {name} {NUMBER}\r\n", expected=":1", lines=1)
    return Load([(acquire, release)])


@contextmanager
def open_etcd(folder: Path) -> Iterator[Measure]:
    """One member of etcd, through its JSON gateway. A lock is a key of a lease; its revision is a token."""
    port, peer_port = free_port(), free_port()
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    command = [
        "etcd", "--data-dir", str(folder / "data"), "--listen-client-urls", client, "--advertise-client-urls", client,
        "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
    ]  # fmt: skip
    with process(command, folder) as server:
        wait_for_port(port)
        lease = _grant(client)
        yield measured_by_load(port, [server], lambda: etcd_load(lease))


def _grant(client: str) -> str:
    deadline = time.monotonic() + 20
    while True:  # its port is open before it has elected itself
        try:
            with urllib.request.urlopen(f"{client}/v3/lease/grant", json.dumps({"TTL": TTL}).encode()) as answer:
                return str(json.load(answer)["ID"])
        except OSError:
            assert time.monotonic() < deadline, "etcd did not start"
            time.sleep(0.05)


def etcd_load(lease: str) -> Load:
    """A transaction that puts the key if nobody has it, and one that deletes it if it still has this value."""
    # Keys are base64: 8 digits are two groups of it, so that the number can be put in as it is.
    key = base64.b64encode(uuid.uuid4().bytes[:9]).decode().replace("/", "a") + NUMBER
    free = {"key": key, "target": "CREATE", "create_revision": "0"}
    put = {"requestPut": {"key": key, "value": NUMBER, "lease": lease}}
    own = {"key": key, "target": "VALUE", "value": NUMBER}
    delete = {"requestDeleteRange": {"key": key}}
    head = "POST /v3/kv/txn HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
    acquire, release = ({"compare": [free], "success": [put]}, {"compare": [own], "success": [delete]})
    return Load([tuple(Step(head, _json(document), expected="HTTP/1.1 200") for document in (acquire, release))])


def _json(document: object) -> str:
    return json.dumps(document, ensure_ascii=False).replace("\\u0001", NUMBER)


@contextmanager
def open_beanstalkd(folder: Path) -> Iterator[Measure]:
    """A beanstalkd that flushes its log at every write."""
    port = free_port()
    with process(["beanstalkd", "-b", str(folder), "-f0", "-l", "127.0.0.1", "-p", str(port)], folder) as server:
        wait_for_port(port)
        yield measured_by_load(port, [server], beanstalkd_load)


def beanstalkd_load() -> Load:
    """Put, reserve and delete."""
    put = Step(f"put 0 0 300 {len(PAYLOAD)}\r\n{PAYLOAD}\r\n", expected="INSERTED ", lines=1)
    reserve = Step("reserve\r\n", expected="RESERVED ", lines=2)
    return Load([(put, reserve, Step(f"delete {FIRST}\r\n", expected="DELETED", lines=1))], markers=("RESERVED ",))


def wait_for_port(port: int) -> None:
    """Wait until something listens on the port."""
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.02)
        else:
            return


PEERS = (
    Peer("Redis, appendfsync always", LOCKS, open_redis, ("redis-server",), "redis-server"),
    Peer("etcd, one member, JSON gateway", LOCKS, open_etcd, ("etcd",), "etcd-server"),
    Peer("beanstalkd, fsync always", QUEUES, open_beanstalkd, ("beanstalkd",), "beanstalkd"),
)
