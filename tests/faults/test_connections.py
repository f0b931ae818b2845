"""Hostile connections: slow, oversized or not HTTP. They are answered or closed, and the server stays available."""

import json
import threading
import time
from types import SimpleNamespace

import pytest

from tests.compat.octostore.expect import assert_agent_contract, malformed
from tests.compat.octostore.server import TOKENS, Server
from tests.faults.raw_socket import connect, parse, talk
from tests.http.job_client import agent, fresh, job_path, ok, problem
from tests.proof_size import FULL

pytestmark = pytest.mark.waits(10)

HEAD_SECONDS = 10.0
BODY_SECONDS = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The limits are the protocol's: one store is enough."""
    server = Server(f"sqlite:///{tmp_path_factory.mktemp('connections')}/x.db").start()
    yield server
    server.close()


@pytest.fixture(scope="module", autouse=True)
def slow_callers(server):
    """Started with the first test and checked by the last ones."""
    callers = SimpleNamespace(seen={}, threads=[])
    for name, slow in SLOW.items():
        thread = threading.Thread(target=watch, args=(callers.seen, name, server, slow))
        thread.start()
        callers.threads.append(thread)
    yield callers
    for thread in callers.threads:
        thread.join()


def watch(seen, name, server, slow):
    with connect(server.port, BODY_SECONDS + 10) as connection:
        began = time.monotonic()
        try:
            received = slow(connection)
        except OSError as error:
            received = error
        seen[name] = (received, time.monotonic() - began)


def say_nothing(connection):
    return connection.recv(65536)


def stop_in_the_first_line(connection):
    connection.sendall(b"GET /hea")
    return connection.recv(65536)


def stop_after_a_header(connection):
    connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
    return connection.recv(65536)


def dribble(connection):
    """Sending single bytes does not extend the time limit."""
    connection.settimeout(0.5)
    connection.sendall(b"GET /health HTTP/1.1\r\n")
    while True:
        connection.sendall(b"X")
        try:
            return connection.recv(65536)
        except TimeoutError:
            continue


def be_slow_the_second_time(connection):
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    first = connection.recv(65536)
    assert b" 200 " in first
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHo")
    return connection.recv(65536)


def stop_in_the_body(connection):
    head = f"POST /v1/jobs/x/claim HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['alice-1']}\r\n"
    connection.sendall(f'{head}Content-Length: 100\r\n\r\n{{"owner": "m'.encode())
    return connection.recv(65536)


SLOW = {
    "silent": say_nothing,
    "stopped in the first line": stop_in_the_first_line,
    "stopped after a header": stop_after_a_header,
    "dribbling": dribble,
    "slow the second time": be_slow_the_second_time,
    **({"stopped in the body": stop_in_the_body} if FULL else {}),
}


def refused(answer, status):
    """An answer in the common error format, after which the connection is closed."""
    assert answer is not None
    assert answer.status == status, str(answer)
    assert answer.header("Connection") == "close"
    assert answer.json["request_id"] == answer.header("X-Request-Id")
    assert_agent_contract(answer.json, error=True)


@pytest.fixture(autouse=True)
def unharmed(server):
    """The next request is answered, whatever was sent before."""
    yield
    assert agent(server).get("/healthz").status == 200
    assert server.process.poll() is None


# -- too large ---------------------------------------------------------------------------------------------------


def test_a_url_of_8_kib_passes_and_a_longer_one_is_414(server):
    room = 8192 - len("/v1/jobs?prefix=")
    ok(agent(server).get("/v1/jobs?prefix=" + "x" * room))
    refused(talk(server.port, b"GET /v1/jobs?prefix=%s HTTP/1.1\r\nHost: x\r\n\r\n" % (b"x" * (room + 1))), 414)
    refused(talk(server.port, b"GET /" + b"x" * 1_000_000), 414)


@pytest.mark.parametrize(
    "headers",
    [
        b"X: " + b"x" * 16384 + b"\r\n",
        b"".join(b"X-%d: %s\r\n" % (number, b"x" * 1000) for number in range(17)),
        b"".join(b"X-%d: x\r\n" % number for number in range(101)),
        b"x" * 20_000 + b": x\r\n",
    ],
    ids=["one long value", "many long ones", "too many lines", "one long name"],
)
def test_a_head_over_its_limits_is_431(server, headers):
    refused(talk(server.port, b"GET /healthz HTTP/1.1\r\n" + headers + b"\r\n"), 431)


@pytest.mark.parametrize("start", [b"X: ", b""], ids=["value", "name"])
def test_an_endless_header_is_refused_before_the_timeout(server, start):
    before = time.monotonic()
    refused(talk(server.port, b"GET /healthz HTTP/1.1\r\n" + start + b"x" * 4_000_000), 431)
    assert time.monotonic() - before < HEAD_SECONDS / 2


def test_a_head_just_within_its_limits_passes(server):
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 150) for number in range(95))
    answer = talk(server.port, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + lines + b"\r\n")
    assert answer is not None
    assert answer.status == 200


@pytest.mark.parametrize(("path", "limit"), [("/v1/jobs/x/claim", 1024**2), ("/locks/x/acquire", 2 * 1024**2)])
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "chunked"])
def test_a_body_over_its_limit_is_413(server, path, limit, declared):
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['alice-1']}\r\n"
    head += "Content-Type: application/json\r\n"
    if declared:
        request = f"{head}Content-Length: {limit + 1}\r\n\r\n".encode() + b"x" * 1000
    else:
        chunk = b"%x\r\n%s\r\n" % (65536, b"x" * 65536)
        request = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk * (limit // 65536 + 1)
    answer = talk(server.port, request)
    assert answer is not None
    assert answer.header("Connection") == "close"
    if path.startswith("/v1/"):
        problem(answer, 413, "too_large")
    else:
        malformed(answer, 413)


def test_a_chunked_body_within_its_limit_is_read(server):
    job = fresh()
    body = json.dumps({"owner": "in pieces"}).encode()
    pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    head = f"POST {job_path(job, '/claim')} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['alice-1']}\r\n"
    answer = talk(server.port, f"{head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + pieces)
    assert answer is not None
    assert ok(answer)["owner"] == "in pieces"


# -- no HTTP -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        bytes(1000),
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET / FTP/1.1\r\nHost: x\r\n\r\n",
        b"G@T / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nX : space\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\0b\r\n\r\n",
        b"POST /locks/x/acquire HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /locks/x/acquire HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /locks/x/acquire HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /locks/x/acquire HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST /locks/x/acquire HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_bytes_that_are_no_http_are_refused_and_the_connection_closed(server, data):
    answer = talk(server.port, data)
    assert answer is None or 400 <= answer.status < 500, str(answer)
    if answer is not None:
        assert_agent_contract(answer.json, error=True)


@pytest.mark.parametrize("hosts", [0, 1, 2])
def test_a_request_has_exactly_one_host(server, hosts):
    answer = talk(server.port, b"GET /healthz HTTP/1.1\r\n" + b"Host: x\r\n" * hosts + b"Connection: close\r\n\r\n")
    assert answer.status == (200 if hosts == 1 else 400)
    if hosts != 1:
        assert f"one Host header, this one has {hosts}" in answer.json["details"]


def test_http_1_0_needs_no_host(server):
    assert talk(server.port, b"GET /healthz HTTP/1.0\r\n\r\n").status == 200


def test_a_caller_that_disconnects_does_not_affect_others(server):
    for cut in (b"GET /hea", b"POST /v1/jobs/x/claim HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{"):
        with connect(server.port) as connection:
            connection.sendall(cut)
    assert "traceback" not in server.log().lower()


def test_spaces_around_a_header_value_are_removed(server):
    key = f"Authorization:  Bearer {TOKENS['alice-1']} \t \r\n"
    asked = f"GET /locks HTTP/1.1\r\nHost: x\r\n{key}Connection: close\r\n\r\n"
    assert talk(server.port, asked.encode()).status == 200


def test_an_unknown_method_is_405(server):
    answer = talk(server.port, b"PURGE /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer is not None
    assert answer.status in {400, 405}


# -- too slow (these come last: their ten seconds have passed meanwhile) ------------------------------------------


def answer_of(slow_callers, name):
    for thread in slow_callers.threads:
        thread.join()
    received, seconds = slow_callers.seen[name]
    assert isinstance(received, bytes), received
    return received, seconds


@pytest.mark.parametrize(
    "name", ["stopped in the first line", "stopped after a header", "dribbling", "slow the second time"]
)
def test_a_head_that_takes_longer_than_ten_seconds_is_408(slow_callers, name):
    received, seconds = answer_of(slow_callers, name)
    refused(parse(received), 408)
    assert HEAD_SECONDS - 0.5 < seconds < HEAD_SECONDS + 2


def test_a_silent_connection_is_closed(slow_callers):
    received, seconds = answer_of(slow_callers, "silent")
    assert received == b""
    assert HEAD_SECONDS - 0.5 < seconds < HEAD_SECONDS + 2


@pytest.mark.skipif(not FULL, reason="waits 30 s: part of make prove")
def test_a_body_that_takes_longer_than_thirty_seconds_is_408(slow_callers):
    received, seconds = answer_of(slow_callers, "stopped in the body")
    assert b"408 Request Timeout" in received
    assert b"body did not arrive within 30 seconds" in received
    assert BODY_SECONDS - 0.5 < seconds < BODY_SECONDS + 3
