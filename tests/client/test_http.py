"""Address, key and certificate of the server."""

import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

import holdfast
from holdfast.client.errors import AuthError, Unreachable
from holdfast.client.http import HttpTransport, auth_headers, server_url
from holdfast.client.request import Request
from tests.client.ways import KEY, url_of
from tests.http.network_servers import make_certificate
from tests.support import wait_until


def test_address_and_key_default_to_the_environment(monkeypatch, sqlite_server, name):
    for variable in ("HOLDFAST_URL", "HOLDFAST_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    assert (server_url(None), auth_headers(None)) == ("http://127.0.0.1:7700", {})
    assert server_url("http://x/base/") == "http://x/base"
    monkeypatch.setenv("HOLDFAST_URL", url_of(sqlite_server))
    monkeypatch.setenv("HOLDFAST_API_KEY", KEY)
    with holdfast.Client() as client:
        assert client.claim_job(name, "me")["status"] == "claimed"
    with holdfast.Client(key="not a key that anybody has") as client, pytest.raises(AuthError) as caught:
        client.get_job_owner(name)
    assert (caught.value.status, caught.value.code) == (401, "invalid_api_key")


def test_an_address_of_another_machine_without_its_scheme_is_refused_at_once(monkeypatch):
    holdfast.Client("127.0.0.1:7700").close()  # of this machine: http
    monkeypatch.setenv("HOLDFAST_URL", "holdfast.example")
    with pytest.raises(ValueError, match=r"holdfast\.example"):
        holdfast.Client()


def test_an_untrusted_certificate_is_refused(tmp_path, new_server, monkeypatch):
    cert, key = make_certificate(tmp_path)
    server = new_server(f"sqlite:///{tmp_path}/x.db", TLS_CERT=str(cert), TLS_KEY=str(key))
    server.launch()
    wait_until(lambda: _listens(server.port), 20)
    url = f"https://127.0.0.1:{server.port}"
    with holdfast.Client(url, KEY, deadline=3) as client, pytest.raises(Unreachable) as caught:
        client.health()
    assert "certificate" in caught.value.message.lower()
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    with holdfast.Client(url, KEY) as client:
        assert client.health()["status"] == "ok"


def test_many_threads_share_one_client_and_its_connections(sqlite_server, name):
    with holdfast.Client(url_of(sqlite_server), KEY) as client, ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda number: client.claim_job(name, f"agent-{number}")["status"], range(40)))
    assert (statuses.count("claimed"), statuses.count("held")) == (1, 39)


def test_a_connection_that_opens_while_its_client_closes_is_closed(sqlite_server, monkeypatch):
    """A background renewal may connect at the moment at which the client is closed."""
    connect, is_connecting, is_closed, opened = socket.create_connection, threading.Event(), threading.Event(), []

    def connect_late(*args, **more):
        is_connecting.set()
        assert is_closed.wait(10)
        opened.append(connect(*args, **more))
        return opened[0]

    monkeypatch.setattr(socket, "create_connection", connect_late)
    transport = HttpTransport(url_of(sqlite_server), KEY)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(transport.send, Request("GET", "/health", {}, b""), 10)
        assert is_connecting.wait(10)
        transport.close()
        is_closed.set()
        assert answer.result(10).status == 200
    assert opened[0].fileno() == -1


def test_a_request_that_is_sent_while_its_connection_is_closed_stays_encrypted(monkeypatch):
    """A thread may send at the moment at which another one shuts the connection down."""
    ours, theirs = socket.socketpair()
    encrypted = ssl.create_default_context().wrap_socket(
        ours, server_hostname="holdfast.example", do_handshake_on_connect=False
    )
    encrypted.setblocking(False)
    shut_down = socket.socket.shutdown

    def send_and_shut_down(sock, how):
        with suppress(ssl.SSLWantReadError):  # it sends the beginning of a handshake
            sock.send(KEY.encode())
        shut_down(sock, how)

    transport = HttpTransport("https://holdfast.example", KEY).separate()
    transport._sockets.add(encrypted)
    with monkeypatch.context() as patched, encrypted, theirs:
        patched.setattr(socket.socket, "shutdown", send_and_shut_down)
        transport.close()
        sent = theirs.recv(65536)
    assert sent
    assert KEY.encode() not in sent


def _listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
