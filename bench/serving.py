"""Starts the servers that are measured, reads their processor time and memory, and sends single requests to them."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import psutil

from bench.scripts import KEY
from bench.tree import PRESENT, Tree

START_SECONDS = 20


class Server(msgspec.Struct, frozen=True):
    """A running server: its port, its first process, and how long it took until its first answer."""

    port: int
    process: psutil.Process
    start_seconds: float = 0.0

    def cpu_seconds(self) -> float:
        """User and system time of all of its processes."""
        return cpu_seconds(self.process)

    def memory(self) -> int:
        """Resident bytes of its largest process."""
        return max(process.memory_info().rss for process in family(self.process))


def family(process: psutil.Process) -> list[psutil.Process]:
    """The process and all that it started."""
    return [process, *process.children(recursive=True)]


def cpu_seconds(process: psutil.Process) -> float:
    """User and system time of a process and all that it started, with those that have ended."""
    total = 0.0
    for member in family(process):
        with suppress(psutil.NoSuchProcess):
            total += sum(member.cpu_times()[:4])  # user, system, and both of children that have ended
    return total


@contextmanager
def server(url: str, *flags: str, tree: Tree = PRESENT, **settings: str) -> Iterator[Server]:
    """Run a Holdfast server on a store."""
    port = free_port()
    command = [sys.executable, "-m", "holdfast", "serve", "--port", str(port), "--store", url, *flags]
    defaults = {
        "HOLDFAST_ROOT_KEY": KEY,
        "HOLDFAST_MAX_LOCKS_PER_USER": "1000000",
        "HOLDFAST_REGISTRATION": "open",
        "HOLDFAST_MACHINE_KEY": "false",
    }
    with running(command, port, tree.environment(**defaults | settings)) as started:
        yield started


@contextmanager
def echo_server(kind: str) -> Iterator[Server]:
    """Run one of the servers of `bench.echoes`."""
    port = free_port()
    with running([sys.executable, "-m", "bench.echoes", kind, str(port)], port, PRESENT.environment()) as started:
        yield started


@contextmanager
def running(command: list[str], port: int, environment: dict[str, str]) -> Iterator[Server]:
    """Run a server that answers HTTP on the port."""
    began = time.perf_counter()
    process = subprocess.Popen(command, env=environment, cwd=PRESENT.folder, stderr=subprocess.DEVNULL)
    try:
        wait_for_answer(port)
        yield Server(port, psutil.Process(process.pid), time.perf_counter() - began)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def free_port() -> int:
    """A port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_for_answer(port: int) -> None:
    """Wait until a server answers HTTP on the port."""
    deadline = time.monotonic() + START_SECONDS
    while not _answers(port):
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.005)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.settimeout(1)
            connection.sendall(b"GET /health HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n")
            return connection.recv(12) == b"HTTP/1.1 200"
    except OSError:
        return False


def get_json(port: int, path: str) -> dict[str, Any]:
    """The answer to a GET request."""
    return _send(urllib.request.Request(f"http://127.0.0.1:{port}{path}"))


def post_json(port: int, path: str, body: object) -> dict[str, Any]:
    """The answer to a POST request."""
    return _send(urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=json.dumps(body).encode()))


def _send(request: urllib.request.Request) -> dict[str, Any]:
    request.add_header("authorization", f"Bearer {KEY}")
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request) as answer:
        document: dict[str, Any] = json.load(answer)
        return document
