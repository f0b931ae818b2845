"""Starts the server that is measured, and sends single requests to it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil

KEY = "bench-root-key-0123456789abcdef"


@contextmanager
def server(url: str, **settings: str) -> Iterator[tuple[int, psutil.Process]]:
    """Run a Holdfast server on a store; gives its port and its process."""
    port = free_port()
    command = [sys.executable, "-m", "holdfast", "serve", "--port", str(port), "--store", url]
    environment = os.environ | {"HOLDFAST_ROOT_KEY": KEY} | settings
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_until_listening(port)
        yield port, psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def free_port() -> int:
    """A port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_until_listening(port: int) -> None:
    """Wait until a server accepts connections on the port, at most 20 seconds."""
    deadline = time.monotonic() + 20
    while not _is_listening(port):
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.05)


def _is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


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
