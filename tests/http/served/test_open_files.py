"""Callers that connect and send nothing: others still get in, and what happened is logged and counted."""

import resource

import pytest

from holdfast.telemetry import metric_names
from holdfast.telemetry.registry import Registry
from holdfast.transport.http import server
from holdfast.transport.http.overload import open_connections
from holdfast.transport.http.overload.open_connections import OpenConnections, max_connections, raise_file_limit
from tests.compat.octostore.expect import eventually
from tests.faults.raw_socket import read_answer
from tests.http.served_app import ServedApp, request

LIMIT = 6
HEALTH = request("GET", "/health")
WAITING_CLAIM = b'{"owner": "me", "wait_seconds": 20}'


@pytest.fixture
def app(monkeypatch):
    monkeypatch.setattr(server, "max_connections", lambda: LIMIT)
    with ServedApp() as app:
        yield app


def ask(connection):
    connection.sendall(HEALTH)
    return read_answer(connection).status


def closed(registry, which):
    """How many connections were counted."""
    return registry.cells[metric_names.CLOSED_CONNECTIONS.at(which)]


def is_closed(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_idle_connections_give_way_to_callers(app, caplog):
    with app.connect() as holder, app.connect() as waiting:
        holder.sendall(request("POST", "/v1/jobs/x/claim", b'{"owner": "me"}'))
        assert read_answer(holder).status == 200
        waiting.sendall(request("POST", "/v1/jobs/x/claim", WAITING_CLAIM))
        eventually(app.engine.name_waiters.size, lambda size: size == 1, within=10)
        idle = [app.connect() for _ in range(2 * LIMIT)]
        with app.connect() as caller:
            assert ask(caller) == 200
        assert is_closed(idle[0]), "the one that was idle for the longest"
        assert is_closed(holder), "between two requests it is idle too"
        assert app.connections() <= LIMIT
        waiting.settimeout(0.1)
        with pytest.raises(TimeoutError):
            waiting.recv(1)  # a connection with a request under way stays open
        for connection in idle:
            connection.close()
    assert "as many as the limit of open files allows" in caplog.text
    assert closed(app.engine.registry, "idle") >= LIMIT


def test_an_incomplete_head_does_not_keep_a_place(app):
    idle = [app.connect() for _ in range(LIMIT)]
    for connection in idle:
        connection.sendall(b"GET /health HTTP/1.1\r\nX: ")
    with app.connect() as caller:
        assert ask(caller) == 200
    assert is_closed(idle[0])
    for connection in idle:
        connection.close()


def test_a_connection_that_nobody_uses_is_closed(app, monkeypatch):
    monkeypatch.setattr(open_connections, "IDLE_SECONDS", 0.5)
    unused, used, asking, waiting = (app.connect() for _ in range(4))
    for connection in (used, asking):
        assert ask(connection) == 200
    asking.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
    for _ in range(2):  # the second one waits for the first
        waiting.sendall(request("POST", "/v1/jobs/x/claim", WAITING_CLAIM))
    for connection in (unused, used):
        connection.settimeout(10)
        assert is_closed(connection)
    asking.sendall(b"\r\n")
    assert read_answer(asking).status == 200, "its head had begun to arrive"
    assert read_answer(waiting).status == 200
    eventually(app.engine.name_waiters.size, lambda size: size == 1, within=10)
    for connection in (unused, used, asking, waiting):
        connection.close()


class Closable:
    is_closed = False

    def abort(self):
        self.is_closed = True


def test_a_new_connection_is_closed_if_no_other_is_idle():
    registry, connections = Registry(), [Closable() for _ in range(3)]
    opened = OpenConnections(2, registry)
    for connection in connections[:2]:
        opened.add(connection)
        opened.begin_request(connection)
    opened.add(connections[2])
    assert [connection.is_closed for connection in connections] == [False, False, True]
    opened.end_request(connections[1])
    opened.add(Closable())
    assert connections[1].is_closed
    assert closed(registry, "new") == closed(registry, "idle") == 1


def test_a_closed_connection_frees_its_place():
    opened, connections = OpenConnections(1, Registry()), [Closable(), Closable()]
    opened.add(connections[0])
    opened.remove(connections[0])
    opened.end_request(connections[0])
    opened.add(connections[1])
    assert not connections[1].is_closed


def test_the_limit_of_open_files_is_raised_and_a_part_is_kept(monkeypatch):
    limits = {"now": (1024, 4096)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: limits.update(now=both))
    assert max_connections() == 768
    raise_file_limit()
    assert limits["now"] == (4096, 4096)
    assert max_connections() == 3072
    limits["now"] = (1024, resource.RLIM_INFINITY)
    raise_file_limit()
    assert max_connections() == open_connections.WANTED_FILES - 1024


def test_a_limit_that_cannot_be_raised_is_reported(monkeypatch, caplog):
    def refuse(*_):
        raise ValueError("not allowed")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_file_limit()
    assert "at most 256 files can be open" in caplog.text
