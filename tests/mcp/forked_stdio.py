"""`holdfast mcp` as a fork of the test's own process, which has imported the SDK: that takes most of a start."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from holdfast.transport.cli.main import main


@asynccontextmanager
async def forked_stdio(words: list[str], environment: dict[str, str], folder: Path | None) -> AsyncIterator[Any]:
    """A transport for the SDK's client: messages are lines, as between a host and its program."""
    pid, to_program, from_program = _start(words, environment, folder)
    arrived, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, waiting = anyio.create_memory_object_stream[SessionMessage](0)
    async with arrived, received, sent, waiting, anyio.create_task_group() as tasks:
        tasks.start_soon(_write, waiting, to_program)
        tasks.start_soon(_read, from_program, arrived)
        try:
            yield received, sent
        finally:
            tasks.cancel_scope.cancel()
            _end(pid, to_program, from_program)


def _start(words: list[str], environment: dict[str, str], folder: Path | None) -> tuple[int, int, int]:
    its_input, to_program = os.pipe()
    from_program, its_output = os.pipe()
    pid = os.fork()
    if pid == 0:
        _run(words, environment, folder, its_input, its_output)
    os.close(its_input)
    os.close(its_output)
    return pid, to_program, from_program


def _run(words: list[str], environment: dict[str, str], folder: Path | None, source: int, target: int) -> None:
    """The whole life of the program."""
    status = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(source, 0)
        os.dup2(target, 1)
        os.closerange(3, 4096)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - until it ends
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder or Path.cwd())
        sys.argv = ["holdfast", *words]
        status = int(main() or 0)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(status)


def _end(pid: int, to_program: int, from_program: int) -> None:
    """Close its input, with which it ends, and wait for it."""
    os.close(to_program)
    os.close(from_program)
    os.waitpid(pid, 0)


async def _write(messages: Any, target: int) -> None:
    async for each in messages:
        os.write(target, each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")


async def _read(source: int, messages: Any) -> None:
    buffered = b""
    while True:
        await anyio.wait_readable(source)
        data = os.read(source, 65536)
        if not data:
            await messages.aclose()
            return
        *lines, buffered = (buffered + data).split(b"\n")
        for line in lines:
            await messages.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))
