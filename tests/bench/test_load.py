"""The load generators in C and in Python do the same: they fill in requests, check every answer and count."""

import itertools
import shutil
import socketserver
import threading

import pytest

from bench import load, python_load
from bench.load import Unexpected, run
from bench.scripts import FIRST, NUMBER, SECOND, Load, Step, post


class Answering(socketserver.ThreadingTCPServer):
    """Keeps what it receives; answers with two ids, or with what it is told to."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.received = []
        self.ids = itertools.count(1)
        self.status = b"200 OK"
        self.port = self.server_address[1]

    def handle_error(self, request, client_address):
        """A load generator that has failed leaves at once."""


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            if b"HTTP" not in line:
                self.server.received.append(line)
                self.wfile.write(b"RESERVED %d 5\r\nhello\r\n" % next(self.server.ids))
                continue
            length = 0
            while (header := self.rfile.readline()) != b"\r\n":
                name, _, value = header.partition(b":")
                length = int(value) if name == b"content-length" else length
            self.server.received.append((line.split()[1], self.rfile.read(length)))
            body = b'{"lease_id":"L%d","id":"T"}' % next(self.server.ids)
            head = b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n" % (self.server.status, len(body))
            self.wfile.write(head)
            self.wfile.flush()
            self.wfile.write(body)


@pytest.fixture(params=["c", "python"])
def generator(request, monkeypatch):
    if request.param == "python":
        monkeypatch.setattr(load, "program", lambda: python_load.COMMAND)
    elif shutil.which("cc") is None:
        pytest.skip("without cc the load generator in Python is used, which the other case tests")
    else:
        assert load.program() != python_load.COMMAND


@pytest.fixture
def server():
    with Answering() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.usefixtures("generator")
def test_a_script_uses_what_earlier_answers_said(server):
    first = post(f"/claim/{NUMBER}", "{}")
    second = post(f"/release/{NUMBER}", f"{FIRST}-{SECOND}")
    twice = Load([(first, second)] * 2, ('"lease_id":"', '"id":"'), is_once=True, keeps_captures=True)
    result = run(server.port, twice, connections=1, seconds=20)
    assert server.received == [
        (b"/claim/00000000", b"{}"),
        (b"/release/00000000", b"L1-T"),
        (b"/claim/00000001", b"{}"),
        (b"/release/00000001", b"L3-T"),
    ]
    assert (result.answered, result.finished) == (4, 2)
    assert [step.count for step in result.steps] == [2, 2]
    assert result.captures == [("00000000", "L2"), ("00000001", "L4")]
    assert 0 < result.all.p50 <= result.all.p99 < result.seconds


@pytest.mark.usefixtures("generator")
def test_scripts_are_taken_in_turn_and_once_if_asked(server):
    scripts = [(post(f"/{number}", ""),) for number in range(20)]
    result = run(server.port, Load(scripts, is_once=True), connections=3, seconds=20)
    assert sorted(path for path, _ in server.received) == sorted(b"/%d" % number for number in range(20))
    assert result.finished == 20
    assert result.seconds < 10


@pytest.mark.usefixtures("generator")
def test_an_answer_that_is_no_success_ends_the_run(server):
    server.status = b"404 Not Found"
    with pytest.raises(Unexpected, match="404"):
        run(server.port, Load([(post("/", ""),)]), connections=2, seconds=20)


@pytest.mark.usefixtures("generator")
def test_an_overloaded_server_is_measured_again_with_other_names(server, monkeypatch, capsys):
    monkeypatch.setattr(load, "PAUSE", 0.01)
    server.status = b"503 Service Unavailable"
    with pytest.raises(Unexpected, match="503"):
        run(server.port, Load([(post(f"/{NUMBER}", ""),)]), connections=1, seconds=20)
    assert [path for path, _ in server.received] == [b"/00000000", b"/20000000", b"/40000000", b"/60000000"]
    assert capsys.readouterr().err.count("measured again") == load.ATTEMPTS - 1


@pytest.mark.usefixtures("generator")
def test_answers_of_lines_are_read_whole(server):
    reserve = Step("reserve\r\n", expected="RESERVED ", lines=2)
    delete = Step(f"delete {FIRST}\r\n", expected="RESERVED ", lines=2)
    run(server.port, Load([(reserve, delete)] * 2, ("RESERVED ",), is_once=True), connections=1, seconds=20)
    assert server.received == [b"reserve\r\n", b"delete 1\r\n", b"reserve\r\n", b"delete 3\r\n"]
