"""Most answers are sent in one step; they must equal those that uvicorn sends part by part."""

import re

from holdfast.transport.http import protocol
from tests.faults.raw_socket import read_answer
from tests.http.served_app import ServedApp, request

REQUESTS = [
    request("GET", "/v1/jobs"),
    request("POST", "/v1/jobs/a/claim", b'{"owner": "me"}'),
    request("GET", "/v1/jobs/a"),
    request("GET", "/health"),
    request("GET", "/nowhere"),
]
CHANGING = re.compile(rb"[0-9][0-9A-Za-z.:-]*|req_[0-9a-f]+|[0-9a-f-]{36}")
"""Times, numbers and ids, which differ from one run to the next."""


def ask_all(app):
    """The answers on one connection: status, headers, and the body without what changes."""
    answers = []
    with app.connect() as connection:
        for each in REQUESTS:
            connection.sendall(each)
            answer = read_answer(connection)
            headers = {name.lower(): value for name, value in answer.headers.items()}
            assert headers.pop("x-request-id")
            assert headers.pop("date")
            assert int(headers.pop("content-length")) == len(answer.raw)
            answers.append((answer.status, headers, CHANGING.sub(b"", answer.raw)))
    return answers


def test_an_answer_sent_in_one_step_has_the_same_headers_and_body(monkeypatch):
    sent = []

    def send_whole_and_note(*arguments):
        sent.append(send_whole(*arguments))
        return sent[-1]

    send_whole = protocol.send_whole
    monkeypatch.setattr(protocol, "send_whole", send_whole_and_note)
    with ServedApp() as app:
        whole = ask_all(app)
    assert sent == [True] * 3  # the last two have headers of their own
    monkeypatch.setattr(protocol, "send_whole", lambda *_: False)
    with ServedApp() as app:
        assert ask_all(app) == whole


def test_two_requests_sent_at_once_are_answered_in_their_order():
    received = b""
    with ServedApp() as app, app.connect() as connection:
        connection.sendall(request("GET", "/nowhere") + request("GET", "/health"))
        while received.count(b"HTTP/1.1 ") < 2:
            received += connection.recv(65536)
    assert re.findall(rb"HTTP/1.1 (\d+)", received) == [b"404", b"200"]


def test_a_connection_that_the_caller_wants_closed_is_closed_after_the_answer():
    with ServedApp() as app, app.connect() as connection:
        connection.sendall(request("GET", "/health").replace(b"Host: x", b"Host: x\r\nConnection: close"))
        answer = read_answer(connection)
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert connection.recv(1) == b""
