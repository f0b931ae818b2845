"""An outage of PostgreSQL under load: correct errors meanwhile, nothing lost, recovery without a restart."""

import threading
import time

import psycopg
import pytest

from holdfast.store.contract import NotDurable
from holdfast.store.postgres import PostgresStore
from tests.cli.shell import Shell
from tests.compat.octostore.expect import eventually
from tests.compat.octostore.server import Server
from tests.http.job_client import ROOT_KEY, agent, claimed, fresh, held, ok, unavailable
from tests.postgres import Postgres
from tests.store_inspection import assert_store_is_consistent

pytestmark = pytest.mark.waits(20)

FAST_STOP, CRASH = 2, 3
RETURN_SECONDS = 8.0


@pytest.fixture(scope="module")
def database():
    """A private PostgreSQL: other tests use the shared one."""
    postgres = Postgres()
    yield postgres
    postgres.remove()


@pytest.fixture
def server(database):
    server = Server(database.new_database(), ROOT_KEY=ROOT_KEY).start()
    yield server
    server.kill()
    server.close_files()


class Load:
    """Callers that claim new jobs continuously and record every answer."""

    def __init__(self, server, size=4):
        self.acknowledged = {}
        self.refused = []
        self.strange = []
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(agent(server, f"alice-{n + 1}"),)) for n in range(size)]

    def run(self, caller):
        while not self.stop.is_set():
            job = fresh("load")
            try:
                self.note(job, caller.claim(job, "me", ttl_seconds=3600))
            except (AssertionError, OSError) as error:
                self.strange.append(repr(error))

    def note(self, job, answer):
        if answer.status == 200:
            self.acknowledged[job] = claimed(answer)
        else:
            self.refused.append((job, unavailable(answer)))
            time.sleep(0.02)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self.stop.set()
        for thread in self.threads:
            thread.join()


@pytest.mark.parametrize("how", [FAST_STOP, CRASH], ids=["stopped", "crashed"])
def test_an_outage_of_the_store_under_load_loses_nothing(database, server, how):
    with Load(server) as load:
        eventually(lambda: len(load.acknowledged), lambda count: count >= 40, within=10)
        database.stop(how)
        try:
            eventually(lambda: len(load.refused), lambda count: count >= 20, within=10)
            before = len(load.acknowledged)
            assert_answers_were_true(server)
            assert len(load.acknowledged) == before, "nobody is told yes while the database is gone"
        finally:
            database.start()
        back = time.monotonic()
        eventually(lambda: len(load.acknowledged), lambda count: count >= before + 40, within=RETURN_SECONDS)
        assert time.monotonic() - back < RETURN_SECONDS
    assert load.strange == []
    assert server.process.poll() is None
    assert agent(server).get("/readyz").status == 200
    assert_nothing_lost(server, load)


def assert_answers_were_true(server):
    assert agent(server).get("/health").status == 200
    assert agent(server).get("/healthz").status == 200
    ready = agent(server).get("/readyz")
    assert ready.status == 503
    assert int(ready.header("Retry-After") or 0) >= 1
    unavailable(agent(server).get("/v1/jobs"))
    lock = agent(server).acquire(fresh("lock"))
    assert (lock.status, lock.json["code"], lock.json["applied"]) == (503, "internal_error", "no")
    assert int(lock.header("Retry-After") or 0) >= 1
    stranger = agent(server, "bob-9").claim(fresh())
    assert stranger.status == 503, "a key that cannot be looked up is no wrong key"


def assert_nothing_lost(server, load):
    caller = agent(server)
    tokens = [lease["token"] for lease in load.acknowledged.values()]
    assert len(tokens) == len(set(tokens))
    for job, lease in load.acknowledged.items():
        assert caller.heartbeat(job, lease["lease_id"]).status == 200, job
    listed = {found["job_id"] for found in every_job(caller)}
    assert listed >= load.acknowledged.keys()
    for job, body in load.refused:
        if body["applied"] == "no":
            assert job not in listed, "a refusal that said no meant no"
    assert claimed(caller.claim(fresh()))["token"] > max(tokens)
    assert_store_is_consistent(server.store)


def every_job(caller):
    found, cursor = [], ""
    while True:
        page = caller.jobs(f"?limit=1000{cursor}")
        found += page["jobs"]
        if not page["hasMore"]:
            return found
        cursor = f"&cursor={page['nextCursor']}"


def test_a_read_only_database_refuses_writes_and_recovers(server, database, job):
    caller = agent(server)
    lease = claimed(caller.claim(job, "me", ttl_seconds=3600))
    read_only(database, on=True)
    try:
        answer = eventually(lambda: caller.heartbeat(job, lease["lease_id"]), lambda seen: seen.status != 200, within=5)
        assert unavailable(answer)["applied"] == "no"
        assert unavailable(caller.claim(fresh()))["applied"] == "no"
    finally:
        read_only(database, on=False)
    eventually(
        lambda: caller.heartbeat(job, lease["lease_id"]).status, lambda status: status == 200, within=RETURN_SECONDS
    )
    held(caller.claim(job), by="me")


def read_only(database, *, on):
    configure(database, "default_transaction_read_only", "on" if on else "off")
    time.sleep(0.2)


def configure(database, setting, value):
    with psycopg.connect(database.url("postgres"), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET {setting} = {value}")
        connection.execute("SELECT pg_reload_conf()")


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_database_that_can_lose_commits_in_a_crash_is_reported_and_not_opened(server, database, tmp_path, setting):
    configure(database, setting, "off")
    try:
        ready = eventually(lambda: agent(server).get("/readyz"), lambda seen: seen.status == 503, within=10)
        assert ready.json["reason"] == "not_durable"
        assert f"{setting} = off" in ready.json["message"]
        doctor = Shell(server.port, ROOT_KEY, tmp_path)("doctor")
        assert doctor.status != 0
        assert f"{setting} = off" in doctor.out
        with pytest.raises(NotDurable, match=f"{setting} = off"):
            PostgresStore(server.store).open()
        trusting = PostgresStore(server.store, durable_storage=True)
        trusting.open()
        trusting.check_durable()
        trusting.close()
    finally:
        configure(database, setting, "on")
    eventually(lambda: agent(server).get("/readyz").status, lambda status: status == 200, within=10)


def test_lost_connections_are_replaced(server, database, job):
    caller = agent(server)
    lease = claimed(caller.claim(job, "me", ttl_seconds=3600))
    for _ in range(3):
        with psycopg.connect(database.url("postgres"), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'"
            )
        eventually(lambda: caller.heartbeat(job, lease["lease_id"]).status, lambda status: status == 200, within=3)
        eventually(lambda: caller.get("/readyz").status, lambda status: status == 200, within=3)
        assert caller.owner_of(job)["owner"] == "me"


def test_a_waiter_survives_a_short_outage_or_gets_503(server, database, job):
    """It gets the job after the outage, or a 503; it never hangs."""
    caller = agent(server)
    lease = claimed(caller.claim(job, "holder", ttl_seconds=3600))
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(caller.claim(job, "next", wait_seconds=15)))
    waiter.start()
    eventually(lambda: ok(caller.claim(job))["waiting"], lambda count: count == 1, within=5)
    database.stop(FAST_STOP)
    time.sleep(1.5)
    database.start()
    eventually(
        lambda: caller.release_job(job, lease["lease_id"]).status, lambda status: status == 200, within=RETURN_SECONDS
    )
    waiter.join(10)
    assert len(answers) == 1
    if answers[0].status == 200:
        assert claimed(answers[0])["owner"] == "next"
    else:
        unavailable(answers[0])
        assert caller.owner_of(job)["status"] == "free"
