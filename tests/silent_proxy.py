"""TCP proxy in front of PostgreSQL that can fall silent, as a host does that loses its power or its network."""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import suppress
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict


class SilentProxy:
    """Forwards connections to the database at `url`. While it is silent it forwards nothing and closes nothing.

    Connections that were open while it was silent stay silent for ever; new ones work when it speaks again.
    """

    def __init__(self, url: str) -> None:
        parts = conninfo_to_dict(url)
        self._target = str(Path(str(parts["host"])) / ".s.PGSQL.5432")
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{port}/{parts['dbname']}?sslmode=disable&gssencmode=disable"
        self.silent_at: bytes | None = None
        """It falls silent when it sees these bytes on their way to the database, after it has forwarded them."""
        self.accepted = 0
        self._is_silent = False
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def fall_silent(self) -> None:
        self._is_silent = True

    def speak(self) -> None:
        """New connections are served again."""
        self.silent_at = None
        self._is_silent = False

    def close(self) -> None:
        for each in [self._listener, *self._sockets]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.accepted += 1
                self._sockets.append(client)
                if not self._is_silent:
                    threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        self._sockets.append(server)
        with suppress(OSError), selectors.DefaultSelector() as selector:
            server.connect(self._target)
            for source, target in ((client, server), (server, client)):
                selector.register(source, selectors.EVENT_READ, target)
            while True:
                for key, _ in selector.select():
                    assert isinstance(key.fileobj, socket.socket)
                    data = key.fileobj.recv(65536)
                    if self._is_silent:
                        return  # without closing anything
                    if not data:
                        client.close()
                        server.close()
                        return
                    key.data.sendall(data)
                    if key.fileobj is client and self.silent_at is not None and self.silent_at in data:
                        self._is_silent = True
                        return
