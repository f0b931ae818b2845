"""TCP proxy in front of a server that drops, delays or cuts answers on purpose."""

import random
import socket
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress

PASS, LOSE, HANG, CUT, SLOW = "pass", "lose", "hang", "cut", "slow"
"""Forward; drop the answer and the connection; drop the answer and say nothing; drop the request; forward late."""
SLOW_SECONDS = 0.5
TOGETHER = "together"
"""Not a fate: an answered request that renewed several leases."""


class Proxy:
    """`fate` decides for each request, after the server has answered it (for CUT, before the server receives it)."""

    def __init__(self, port, fate=lambda: PASS):
        self.target = port
        self.fate = fate
        self.fates = []
        self.happened = Counter()
        """How often each fate came about: an answer that never was cannot be lost."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open = set()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        with suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller):
        """One connection. Our clients send one request at a time, each in one piece or two."""
        server = None
        self._open.add(caller)
        try:
            server = socket.create_connection(("127.0.0.1", self.target))
            self._open.add(server)
            while request := caller.recv(1 << 20):
                fate = self.fate()
                self.fates.append(fate)
                if fate == CUT:
                    self.happened[fate] += 1
                    return
                server.sendall(request + _rest(caller, request))
                answer = _answer(server)
                if not answer:
                    return
                self.happened[fate] += 1
                self.happened[TOGETHER] += request.startswith(b"POST /v1/heartbeats ")
                if fate == LOSE:
                    return
                if fate == SLOW:
                    time.sleep(SLOW_SECONDS)
                if fate in {PASS, SLOW}:
                    caller.sendall(answer)
        except OSError:
            return
        finally:
            for end in (caller, server):
                if end is not None:
                    self._open.discard(end)
                    end.close()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()

    def hang_up(self):
        """End every connection; new ones are welcome."""
        for end in list(self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _length(head):
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _rest(caller, request):
    """The rest of a request's body."""
    while b"\r\n\r\n" not in request:
        request += caller.recv(1 << 20)
    head, _, body = request.partition(b"\r\n\r\n")
    rest = b""
    while len(body) + len(rest) < _length(head):
        rest += caller.recv(1 << 20)
    return rest


def _answer(server):
    """A whole answer; empty if the server closed the connection."""
    found = b""
    while b"\r\n\r\n" not in found:
        piece = server.recv(1 << 20)
        if not piece:
            return b""
        found += piece
    head, _, body = found.partition(b"\r\n\r\n")
    while len(body) < _length(head):
        piece = server.recv(1 << 20)
        if not piece:
            return b""
        body += piece
    return head + b"\r\n\r\n" + body


@contextmanager
def between(server, fate=lambda: PASS):
    proxy = Proxy(server.port, fate)
    try:
        yield proxy
    finally:
        proxy.close()


def every(number, fate):
    """This fate for every n-th request, counted over all connections."""
    count = [0]

    def choose():
        count[0] += 1
        return fate if count[0] % number == 0 else PASS

    return choose


def deck(seed, counts):
    """Fates in a random order that depends only on the seed; every fate occurs."""
    dealer, cards, mutex = random.Random(seed), [], threading.Lock()

    def choose():
        with mutex:
            if not cards:
                cards.extend(dealer.sample(list(counts), sum(counts.values()), counts=list(counts.values())))
            return cards.pop()

    return choose
