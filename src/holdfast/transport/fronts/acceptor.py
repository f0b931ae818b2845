"""Accepting connections on a socket that several processes share, with pauses."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from ssl import SSLContext

ACCEPTED_AT_ONCE = 64
PAUSE_SECONDS = 1.0
"""How long it accepts nothing after an error, for instance because too many files are open."""

log = logging.getLogger("holdfast.server")


class Acceptor:
    """Accepts connections while it is not paused."""

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        ssl: SSLContext | None,
        handshake_seconds: float | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._make_protocol = make_protocol
        self._ssl = ssl
        self._handshake_seconds = handshake_seconds
        self._is_wanted = False
        self._is_paused = False
        self._is_stopped = False
        self._is_accepting = False
        self._opening: set[asyncio.Task[None]] = set()
        listener.setblocking(False)  # noqa: FBT003 - its only argument

    def accept(self, *, accept: bool) -> None:
        """Accept connections from now on, or leave them to other processes."""
        self._is_wanted = accept
        self._update()

    def stop(self) -> None:
        """Accept nothing any more."""
        self._is_stopped = True
        self._update()

    def _set_paused(self, *, paused: bool) -> None:
        self._is_paused = paused
        self._update()

    def _update(self) -> None:
        accepts = self._is_wanted and not self._is_paused and not self._is_stopped
        if accepts and not self._is_accepting:
            self._loop.add_reader(self._listener.fileno(), self._accept)
        elif self._is_accepting and not accepts:
            self._loop.remove_reader(self._listener.fileno())
        self._is_accepting = accepts

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                connection, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("no connection can be accepted: %s", error)
                self._set_paused(paused=True)
                self._loop.call_later(PAUSE_SECONDS, lambda: self._set_paused(paused=False))
                return
            opening = self._loop.create_task(self._open(connection))
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)
            if not self._is_accepting:  # this connection was one too many
                return

    async def _open(self, connection: socket.socket) -> None:
        connection.setblocking(False)  # noqa: FBT003 - its only argument
        try:
            await self._loop.connect_accepted_socket(
                self._make_protocol, connection, ssl=self._ssl, ssl_handshake_timeout=self._handshake_seconds
            )
        except OSError:  # the peer is gone, or its TLS handshake failed
            connection.close()
