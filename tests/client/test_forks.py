"""Clients in child processes: own connections after a fork, clear errors for what stays in the parent."""

import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import threading
import traceback
import warnings

import pytest

import holdfast
from holdfast.client import default_client
from holdfast.client.errors import HoldfastError
from tests.client.child_process import read_jobs
from tests.client.ways import KEY, url_of
from tests.proof_size import sized
from tests.support import in_background

CHILDREN, CALLS = 3, sized(8, 60)
CHILD_SECONDS = 20


@pytest.fixture
def url(sqlite_server):
    return url_of(sqlite_server)


@pytest.fixture
def http_client(url):
    with holdfast.Client(url, KEY) as client:
        client.get_job_owner("opens/a/connection")
        yield client


def in_child(action):
    """Start a forked child that runs `action`; returns a function that waits for its result, a JSON value."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fork beside threads is what is tested
        child = os.fork()
    if child == 0:
        try:
            result = {"result": action()}
        except HoldfastError as error:
            result = {"error": type(error).__name__, "code": error.code, "text": str(error)}
        except BaseException:
            result = {"crash": traceback.format_exc()}
        os.write(writing, json.dumps(result).encode())
        os._exit(0)
    os.close(writing)

    def wait():
        with os.fdopen(reading, "rb") as pipe:
            document = json.loads(pipe.read() or "{}")
        os.waitpid(child, 0)
        assert "crash" not in document, document["crash"]
        return document

    return wait


def owners(client, place):
    """Read jobs of its own many times: which names the answers were about."""
    return [client.get_job_owner(f"job-of/{place}-{number}")["job_id"] for number in range(CALLS)]


def expected(place):
    return [f"job-of/{place}-{number}" for number in range(CALLS)]


def test_forked_children_and_their_parent_get_their_own_answers(http_client):
    waiting = [in_child(lambda place=place: owners(http_client, place)) for place in range(CHILDREN)]
    assert owners(http_client, "parent") == expected("parent")
    assert [wait()["result"] for wait in waiting] == [expected(place) for place in range(CHILDREN)]


def test_children_forked_beside_busy_threads_get_their_own_answers(http_client):
    stop = threading.Event()

    def call():
        while not stop.is_set():
            http_client.get_job_owner("busy")

    busy = [threading.Thread(target=call) for _ in range(3)]
    for thread in busy:
        thread.start()
    try:
        waiting = [in_child(lambda place=place: owners(http_client, place)) for place in range(CHILDREN)]
        assert [wait()["result"] for wait in waiting] == [expected(place) for place in range(CHILDREN)]
    finally:
        stop.set()
        for thread in busy:
            thread.join()


def test_the_functions_of_the_package_work_in_forked_children(url, monkeypatch):
    monkeypatch.setenv("HOLDFAST_URL", url)
    monkeypatch.setenv("HOLDFAST_API_KEY", KEY)
    default_client.client.cache_clear()
    holdfast.get_job_owner("opens/a/connection")
    waiting = [in_child(lambda place=place: owners(holdfast, place)) for place in range(CHILDREN)]
    assert owners(holdfast, "parent") == expected("parent")
    assert [wait()["result"] for wait in waiting] == [expected(place) for place in range(CHILDREN)]
    default_client.client().close()
    default_client.client.cache_clear()


def test_an_asyncio_client_has_connections_of_its_own_in_a_child(url):
    async def call(client, place):
        return [(await client.get_job_owner(name))["job_id"] for name in expected(place)]

    async def parent():
        client = holdfast.AsyncClient(url, KEY)
        await client.get_job_owner("opens/a/connection")
        waiting = [in_child(lambda place=place: in_new_loop(call, client, place)) for place in range(CHILDREN)]
        own = await call(client, "parent")
        await client.close()
        return own, [wait()["result"] for wait in waiting]

    own, children = asyncio.run(parent())
    assert own == expected("parent")
    assert children == [expected(place) for place in range(CHILDREN)]


def in_new_loop(call, client, place):
    """A child that was forked inside a running loop begins a new one in another thread."""
    results = []
    thread = threading.Thread(target=lambda: results.append(asyncio.run(call(client, place))))
    thread.start()
    thread.join()
    return results[0]


def test_a_stream_of_the_parent_goes_on_after_a_child_closed_the_client(http_client):
    http_client.claim_job("followed-over-a-fork", "me")
    events = http_client.follow(after=0, subject="lease:followed-over-a-fork")
    assert next(events).kind == "lease.claimed"
    assert in_child(http_client.close)() == {"result": None}
    http_client.force_release_job("followed-over-a-fork", "to see the next event")
    assert next(events).kind == "lease.forced"


def test_a_child_that_reads_on_in_a_stream_of_its_parent_takes_no_event_from_it(http_client):
    http_client.claim_job("read-over-a-fork", "me")
    events = http_client.follow(after=0, subject="lease:read-over-a-fork")
    assert next(events).kind == "lease.claimed"
    http_client.force_release_job("read-over-a-fork", "to see the next event")
    assert in_child(lambda: next(events).kind)() == {"result": "lease.forced"}
    assert in_background(lambda: next(events).kind).result(5) == "lease.forced"


@pytest.mark.parametrize("opened", [holdfast.open, holdfast.open_async])
def test_an_embedded_store_refuses_at_once_in_a_child(tmp_path, opened):
    client = opened(tmp_path / "x.db")
    refused = in_child(lambda: complete(client.get_job_owner("job")))()
    assert refused["code"] == "forked"
    assert "holdfast.open" in refused["text"]
    assert in_child(lambda: complete(client.close()))() == {"result": None}
    assert complete(client.get_job_owner("job"))["status"] == "free"
    complete(client.close())


def complete(result):
    """The result of a call, awaited if it is that of an asyncio client."""
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


DRAWING = """
import json, os, sys
import holdfast
from holdfast.transport.ids import ids

def draw():
    with holdfast.open(sys.argv[1]) as client:
        claimed = client.claim_job(f"job-{os.getpid()}", "child")
        made = client.create_task("work", {})
        return [claimed["lease_id"], made["id"], ids.uuid()]

ids.draw()
for _ in range(2):
    os.fork()
os.write(1, json.dumps(draw()).encode() + b"\\n")
try:
    while True:
        os.wait()
except ChildProcessError:
    pass  # none is left
"""
"""Each of four processes draws: the first one, its two children and the child of the first of them."""


def test_a_store_opened_again_in_a_child_draws_other_ids_than_its_parent(tmp_path):
    """In a program of its own: a thread of another test may use SQLite at the moment of the fork and keep it locked."""
    done = subprocess.run(
        [sys.executable, "-c", DRAWING, tmp_path / "x.db"], capture_output=True, text=True, timeout=60, check=True
    )
    drawn = [each for line in done.stdout.splitlines() for each in json.loads(line)]
    assert len(drawn) == 4 * 3
    assert len(set(drawn)) == len(drawn)


def test_a_child_neither_uses_nor_releases_the_lease_of_its_parent(http_client):
    with http_client.job("held/over-a-fork", "parent", ttl=60) as job:

        def leave_the_block():
            job.__exit__(None, None, None)
            return [job.remaining, job.token]

        assert in_child(leave_the_block)() == {"result": [0.0, job.token]}
        for action in (job.check, job.renew):
            refused = in_child(action)()
            assert (refused["error"], refused["code"]) == ("LeaseLost", "forked")
        job.check()
        assert http_client.get_job_owner("held/over-a-fork")["owner"] == "parent"


def test_a_child_does_not_report_the_outcome_of_the_task_of_its_parent(http_client):
    made = http_client.create_task("forked-task", {})
    with http_client.task("forked-task") as task:
        assert in_child(lambda: task.complete({"by": "child"}))()["error"] == "LeaseLost"
        assert in_child(lambda: task.__exit__(None, None, None))() == {"result": None}
        task.result = {"by": "parent"}
    assert http_client.check_task_status(made["id"])["result"] == {"by": "parent"}


def test_a_worker_made_before_the_fork_runs_in_every_child_under_a_name_of_its_own(http_client):
    worker = holdfast.Worker(http_client, concurrency=1)
    for _ in range(2):
        http_client.create_task("prefork", {})

    def work():
        names = []

        @worker.task("prefork")
        def handle(context):
            names.append(context.document["claimedBy"])
            worker.stop()

        worker.run()
        return names

    waiting = [in_child(work) for _ in range(2)]
    names = [name for wait in waiting for name in wait()["result"]]
    assert len(set(names)) == 2


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_children_of_multiprocessing_get_their_own_answers(url, method, monkeypatch):
    monkeypatch.setenv("HOLDFAST_URL", url)
    monkeypatch.setenv("HOLDFAST_API_KEY", KEY)
    default_client.client.cache_clear()
    holdfast.get_job_owner("opens/a/connection")
    context = multiprocessing.get_context(method)
    reading, writing = context.Pipe(duplex=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = context.Process(target=read_jobs, args=(url, KEY, expected(method), writing))
        child.start()
    assert owners(holdfast, "parent") == expected("parent")
    assert reading.poll(CHILD_SECONDS)
    assert reading.recv() == expected(method)
    child.join(CHILD_SECONDS)
    default_client.client().close()
    default_client.client.cache_clear()
