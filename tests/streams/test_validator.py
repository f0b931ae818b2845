"""Writers write while readers disconnect, pause and reconnect: every event is received once and in order."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import holdfast
from tests.compat.octostore.server import Server
from tests.compat.orchestrion.account import Account, register
from tests.compat.orchestrion.expect import claimed
from tests.compat.orchestrion.states import pending
from tests.http.job_client import ROOT_KEY
from tests.http.metrics_parser import scrape
from tests.http.replies import done
from tests.proof_size import sized
from tests.streams.conftest import same_account_on
from tests.streams.reading import StreamEnded, fields, follow
from tests.support import wait_until

WRITERS = 3
ROUNDS = sized(8, 200)
READERS = sized(6, 30)
SECONDS = 300


def write(account, rounds=ROUNDS):
    """Write three events in each round."""
    for _ in range(rounds):
        pending(account)
        done(account.complete(claimed(account.claim())["id"]))


class Reader:
    """Follows over many connections that it closes at random; records events and disconnects."""

    def __init__(self, account, seed, query="", buffer=None):
        self._account, self._query, self._buffer = account, query, buffer
        self._dice = random.Random(seed)
        self.received = []
        self.cursor = 0
        self.connections = 0

    def read(self, stop):
        """Read to the end of the log, which is known when all writers have ended."""
        deadline = time.monotonic() + SECONDS
        while not stop.done() or self.cursor < stop.result():
            assert time.monotonic() < deadline, f"came no further than {self.cursor}"
            with follow(self._account, self._query, last=self.cursor, buffer=self._buffer) as stream:
                self.connections += 1
                self._read_some(stream, stop)
        return self.received

    def _read_some(self, stream, stop):
        """Read some frames, at random with pauses; then close the connection at any point."""
        for _ in range(self._dice.randrange(1, 40)):
            if stop.done() and self.cursor >= stop.result():
                return
            try:
                found = fields(stream.frame(1.0))
            except (StreamEnded, TimeoutError):
                return
            assert int(found["id"]) >= self.cursor, "the log goes on, never back"
            if "data" in found:
                self.received.append(int(found["id"]))
            self.cursor = int(found["id"])
            if self._dice.random() < 0.1:
                time.sleep(self._dice.uniform(0, 0.02))


def validate(writers, readers):
    """Run writers and readers; check that every reader received the whole log."""
    with ThreadPoolExecutor(len(writers) + len(readers) + 1) as pool:
        writing = [pool.submit(write, account) for account in writers]

        def end():
            for each in writing:
                each.result(SECONDS)
            return done(writers[0].get("/v1/events?request_id=-&limit=1"))["nextCursor"]

        stop = pool.submit(end)
        received = [future.result(SECONDS) for future in [pool.submit(reader.read, stop) for reader in readers]]
    wanted = list(range(1, 2 + 3 * ROUNDS * len(writers) + 1))
    for each in received:
        assert each == wanted
    assert all(reader.connections > 1 for reader in readers), "nobody was ever cut: this proves nothing"


def test_readers_disconnected_at_random_get_every_event_once_and_in_order(account):
    validate([account] * WRITERS, [Reader(account, seed) for seed in range(READERS)])


def test_readers_and_writers_on_two_servers_of_one_database_miss_no_event(postgres_server, second_postgres_server):
    here = register(postgres_server.anyone)
    there = same_account_on(here, second_postgres_server)
    validate([here, there, there], [Reader(account, seed) for seed in range(READERS // 2) for account in (here, there)])


def test_readers_and_writers_in_two_processes_on_one_file_miss_no_event(sqlite_server):
    """A second server on the same file."""
    beside = Server(sqlite_server.store, ROOT_KEY=ROOT_KEY).start()
    try:
        here = register(sqlite_server.anyone)
        there = same_account_on(here, beside)
        readers = [Reader(account, seed) for seed in range(READERS // 2) for account in (here, there)]
        validate([here, there, here], readers)
    finally:
        beside.close()


def test_events_written_by_an_embedded_engine_reach_readers_of_the_server(sqlite_server):
    root = Account(sqlite_server.port, {"Authorization": f"Bearer {ROOT_KEY}"})
    with holdfast.open(sqlite_server.store) as embedded, follow(root, "subject=lease:from-a-program") as stream:
        stream.frame()
        lease = embedded.claim_job("from-a-program", "me")
        assert stream.event()["event"] == "lease.claimed"
        embedded.release_job("from-a-program", lease["lease_id"])
        assert stream.event()["event"] == "lease.released"


def test_a_reader_that_pauses_is_disconnected_and_misses_nothing_after_reconnecting(server):
    """It reads nothing while large events arrive, is disconnected, reconnects, and gets all of them."""
    account = register(server.anyone)
    with follow(account, buffer=4096) as stream:
        cursor = int(fields(stream.frame())["id"])
        received = []
        wait_until(lambda: open_streams(server) == 1)
        fill(account)
        wait_until(lambda: open_streams(server) == 0)
        with pytest.raises(StreamEnded):
            while True:
                received.append(int(stream.event(5)["id"]))
        assert not stream.was_finished, "the connection was closed, and the body did not end"
    last = done(account.get("/v1/events?request_id=-&limit=1"))["nextCursor"]
    assert len(received) < last - cursor, "it was cut before it had everything"
    with follow(account, last=received[-1] if received else cursor) as stream:
        while not received or received[-1] < last:
            received.append(int(stream.event()["id"]))
    assert received == list(range(cursor + 1, last + 1))


def open_streams(server):
    """How many streams the server has open, the streams of earlier tests included until it notices their end."""
    return scrape(server.admin.get("/metrics/prometheus").raw, openmetrics=False).value("holdfast_streams")


def fill(account):
    """Write more than the buffers of network and stream hold: characters with six bytes each in ASCII."""
    wide = dict.fromkeys(("createdBy", "reviewedBy", "source", "tag"), "é" * 255)
    for _ in range(sized(6, 20)):
        items = [{"op": "create", "type": "x", "payload": {}, **wide} for _ in range(250)]
        answered = done(account.post("/v1/tasks/batch", {"items": items}))
        assert {result["status"] for result in answered["results"]} == {201}
