"""Connections that do not read, stall in the TLS handshake, or send the next request too early or incompletely."""

import json
import socket
import time

import pytest

from holdfast.core.event import Cause
from holdfast.core.task import Task
from holdfast.engine.verbs.tasks.creating import CreateTask
from holdfast.transport.http import context, protocol, server
from holdfast.transport.http.overload import unread_answers
from tests.compat.octostore.expect import eventually
from tests.faults.raw_socket import parse, read_answer
from tests.http.network_servers import make_certificate
from tests.http.served_app import ServedApp, request

pytestmark = pytest.mark.waits(1)

MIB = 1024 * 1024
PAGE = request("GET", "/v1/tasks?limit=100")


def fill(app):
    """Create tasks that make a page of 2.8 MiB."""
    payload = json.dumps({"text": "x" * 30_000})
    for number in range(100):
        task = Task("default", f"tsk_{number}", type="work", payload=payload)
        app.engine.call(CreateTask(account="default", cause=Cause("test", ""), task=task))


def test_a_connection_that_does_not_read_its_answer_is_closed(monkeypatch):
    monkeypatch.setattr(unread_answers, "WRITE_SECONDS", 0.3)
    with ServedApp() as app:
        fill(app)
        readers = [app.connect(receive_bytes=4096) for _ in range(3)]
        for reader in readers:
            reader.sendall(PAGE)
        eventually(lambda: app.ctx.unread_answers.size, lambda size: size > 2 * MIB, within=10)
        eventually(app.connections, lambda count: count == 0, within=10)
        assert app.ctx.unread_answers.size == 0
        for reader in readers:
            reader.close()


def test_a_slow_reader_that_goes_on_reading_gets_all(monkeypatch):
    monkeypatch.setattr(unread_answers, "WRITE_SECONDS", 0.3)
    monkeypatch.setattr(unread_answers, "LEAST_READ", 1)
    with ServedApp() as app, app.connect(receive_bytes=65_536) as reader:
        fill(app)
        reader.sendall(PAGE)
        received = b""
        while b"\r\n\r\n" not in received or len(received) < size_of(received):
            received += reader.recv(100_000, socket.MSG_WAITALL if len(received) < MIB else 0)
            time.sleep(0.1 if len(received) < MIB else 0)
        assert received.endswith(b"}")


def size_of(received):
    """The size of an answer, by its head."""
    head, _, _ = received.partition(b"\r\n\r\n")
    return len(head) + 4 + int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])


def test_an_account_that_reads_no_answers_gets_no_more_of_them_but_may_write(monkeypatch):
    monkeypatch.setattr(context, "ANSWER_BUDGET", 12 * MIB)
    with ServedApp() as app, app.connect() as other:
        fill(app)
        readers = [app.connect(receive_bytes=4096) for _ in range(8)]
        for reader in readers:
            reader.sendall(PAGE)
        eventually(lambda: app.ctx.unread_answers.size, lambda size: size > 2 * MIB, within=10)
        other.sendall(PAGE)
        refused = read_answer(other)
        assert (refused.status, refused.header("Retry-After")) == (503, "1")
        assert app.ctx.unread_answers.size < 7 * MIB  # half of the budget, and a page
        other.sendall(request("POST", "/v1/jobs/x/claim", b'{"owner": "me"}'))
        assert read_answer(other).status == 200
        for reader in readers:
            reader.close()
        eventually(lambda: app.ctx.unread_answers.size, lambda size: size == 0, within=10)


# -- pipelining --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("early", "status"),
    [(b"GET /healthz HTTP/1.1\r\nHo", 408), (b"no http at all\r\n\r\n", 400), (b"GET /healthz HTTP/1.1\r\nX: ", 431)],
    ids=["partial head", "no http", "head too large"],
)
def test_what_follows_a_long_poll_does_not_answer_it(monkeypatch, early, status):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    with ServedApp() as app, app.connect() as caller:
        caller.sendall(request("GET", "/v1/events?after=1&wait_seconds=1"))
        time.sleep(0.1)
        caller.sendall(early + (b"x" * 40_000 if status == 431 else b""))
        first, second = read_all_answers(caller)
        assert first.status == 200
        assert first.json["events"] == []
        assert (second.status, second.header("Connection")) == (status, "close")


def test_a_pipelined_request_completed_during_a_long_poll_is_answered_after_it(monkeypatch):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    with ServedApp() as app, app.connect() as caller:
        caller.sendall(request("GET", "/v1/events?after=1&wait_seconds=1") + b"GET /healthz HTTP/1.1\r\n")
        time.sleep(0.5)
        caller.sendall(b"Host: x\r\nConnection: close\r\n\r\n")
        first, second = read_all_answers(caller)
        assert "events" in first.json
        assert second.status == 200


def read_all_answers(connection):
    """Every answer until the server closes the connection."""
    received = b"".join(iter(lambda: connection.recv(65_536), b""))
    answers = []
    while received:
        answers.append(parse(received[: size_of(received)]))
        received = received[size_of(received) :]
    return answers


# -- TLS ---------------------------------------------------------------------------------------------------------


def test_a_stalled_tls_handshake_is_ended(monkeypatch, tmp_path):
    assert server.HANDSHAKE_SECONDS == 10.0
    monkeypatch.setattr(server, "HANDSHAKE_SECONDS", 0.3)
    cert, key = make_certificate(tmp_path)
    with ServedApp(tls_cert=str(cert), tls_key=str(key)) as app, app.connect() as silent:
        silent.settimeout(10)
        assert silent.recv(1) == b""
