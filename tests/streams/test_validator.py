"""The validator: writers write, readers are cut, dawdle and come back. Nothing is missed, nothing comes twice."""

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
from tests.http.replies import done
from tests.proof_size import sized
from tests.streams.conftest import elsewhere
from tests.streams.reading import Ended, fields, follow

WRITERS = 3
ROUNDS = sized(12, 200)
READERS = sized(6, 30)
SECONDS = 90


def write(account, rounds=ROUNDS):
    """Each round is three events."""
    for _ in range(rounds):
        pending(account)
        done(account.complete(claimed(account.claim())["id"]))


class Reader:
    """Follows over any number of connections, cut at random, and keeps what it saw and how often it was cut."""

    def __init__(self, account, seed, query="", buffer=None):
        self._account, self._query, self._buffer = account, query, buffer
        self._dice = random.Random(seed)
        self.seen = []
        self.cursor = 0
        self.connections = 0

    def read(self, stop):
        """Until the log's end, which is known once everything is written."""
        deadline = time.monotonic() + SECONDS
        while not stop.done() or self.cursor < stop.result():
            assert time.monotonic() < deadline, f"came no further than {self.cursor}"
            with follow(self._account, self._query, last=self.cursor, buffer=self._buffer) as stream:
                self.connections += 1
                self._stretch(stream, stop)
        return self.seen

    def _stretch(self, stream, stop):
        """A few frames, sometimes with a pause between them; then the connection is cut in the middle of anything."""
        for _ in range(self._dice.randrange(1, 40)):
            if stop.done() and self.cursor >= stop.result():
                return
            try:
                found = fields(stream.frame(1.0))
            except (Ended, TimeoutError):
                return
            assert int(found["id"]) >= self.cursor, "the log goes on, never back"
            if "data" in found:
                self.seen.append(int(found["id"]))
            self.cursor = int(found["id"])
            if self._dice.random() < 0.1:
                time.sleep(self._dice.uniform(0, 0.02))


def validate(writers, readers):
    """Run them all; every reader has seen the log."""
    with ThreadPoolExecutor(len(writers) + len(readers) + 1) as pool:
        writing = [pool.submit(write, account) for account in writers]

        def end():
            for each in writing:
                each.result(SECONDS)
            return done(writers[0].get("/v1/events?request_id=-&limit=1"))["nextCursor"]

        stop = pool.submit(end)
        seen = [future.result(SECONDS) for future in [pool.submit(reader.read, stop) for reader in readers]]
    wanted = list(range(1, 2 + 3 * ROUNDS * len(writers) + 1))
    for each in seen:
        assert each == wanted
    assert all(reader.connections > 1 for reader in readers), "nobody was ever cut: this proves nothing"


def test_readers_that_are_cut_at_random_see_every_event_once_and_in_order(account):
    validate([account] * WRITERS, [Reader(account, seed) for seed in range(READERS)])


def test_so_do_readers_and_writers_on_two_servers_of_one_database(postgres_server, second_postgres_server):
    here = register(postgres_server.anyone)
    there = elsewhere(here, second_postgres_server)
    validate([here, there, there], [Reader(account, seed) for seed in range(READERS // 2) for account in (here, there)])


def test_so_do_readers_and_writers_in_two_processes_on_one_file(sqlite_server):
    """A second server beside the first, on the very same file."""
    beside = Server(sqlite_server.store, ROOT_KEY=ROOT_KEY).start()
    try:
        here = register(sqlite_server.anyone)
        there = elsewhere(here, beside)
        readers = [Reader(account, seed) for seed in range(READERS // 2) for account in (here, there)]
        validate([here, there, here], readers)
    finally:
        beside.close()


def test_a_program_with_the_file_open_is_heard_by_readers_of_the_server(sqlite_server):
    root = Account(sqlite_server.port, {"Authorization": f"Bearer {ROOT_KEY}"})
    with holdfast.open(sqlite_server.store) as embedded, follow(root, "subject=lease:from-a-program") as stream:
        stream.frame()
        lease = embedded.claim_job("from-a-program", "me")
        assert stream.event()["event"] == "lease.claimed"
        embedded.release_job("from-a-program", lease["lease_id"])
        assert stream.event()["event"] == "lease.released"


def test_a_reader_that_stands_still_is_cut_and_finds_the_rest(server):
    """It takes nothing while large events come in; cut, it comes back and has missed none."""
    account = register(server.anyone)
    with follow(account, buffer=4096) as stream:
        cursor = int(fields(stream.frame())["id"])
        seen = []
        fill(account)
        with pytest.raises(Ended):
            while True:
                seen.append(int(stream.event(5)["id"]))
        assert not stream.was_finished, "it was cut, and not told that this is the end"
    last = done(account.get("/v1/events?request_id=-&limit=1"))["nextCursor"]
    assert len(seen) < last - cursor, "it was cut before it had everything"
    with follow(account, last=seen[-1] if seen else cursor) as stream:
        while not seen or seen[-1] < last:
            seen.append(int(stream.event()["id"]))
    assert seen == list(range(cursor + 1, last + 1))


def fill(account):
    """More than the network's buffers and the stream's own can hold: letters that take six bytes each in ASCII."""
    wide = dict.fromkeys(("createdBy", "reviewedBy", "source", "tag"), "é" * 255)
    for _ in range(sized(6, 20)):
        items = [{"op": "create", "type": "x", "payload": {}, **wide} for _ in range(250)]
        answered = done(account.post("/v1/tasks/batch", {"items": items}))
        assert {result["status"] for result in answered["results"]} == {201}
