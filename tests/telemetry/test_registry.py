"""Metrics in shared memory: counters of all workers are summed, those of ended workers once."""

import os
import subprocess
import sys
import tempfile
import threading

import pytest

from holdfast.telemetry import metric_names, shared_memory
from holdfast.telemetry.registry import Minute, Registry, observe_at
from holdfast.telemetry.shared_memory import METRICS_FD, METRICS_ROW, SharedRegistry, open_registry
from holdfast.transport.http.system.stats import Stats
from holdfast.transport.http.workers import record_minute


@pytest.fixture
def shared():
    create = SharedRegistry.create(2)
    yield create
    os.close(create.descriptor)


def worker(shared, number):
    return Registry(shared.row(number), shared)


def test_counters_and_gauges_are_summed_and_the_oldest_loop_time_counts(shared):
    for number in (0, 1):
        one = worker(shared, number)
        one.add(metric_names.CREATED, by=number + 1)
        one.set(metric_names.LANES, to=2)
        one.set(metric_names.LOOP_SUCCESS, "sweep", to=100.0 + number)
        observe_at(one.cells, metric_names.LATENESS.at("job"), metric_names.LATENESS.bounds, 0.02)
        one.cells[metric_names.LONGEST.at("job")] = 1.0 + number
        one.cells[metric_names.SHORTEST.at("job")] = 0.5 + number
    cells = worker(shared, 0).read()
    assert (cells[metric_names.CREATED.at()], cells[metric_names.LANES.at()]) == (3, 4)
    assert cells[metric_names.LOOP_SUCCESS.at("sweep")] == 100.0
    assert (cells[metric_names.SHORTEST.at("job")], cells[metric_names.LONGEST.at("job")]) == (0.5, 2.0)
    place = metric_names.LATENESS.at("job")
    assert cells[place : place + metric_names.LATENESS.width][2] == 2, "two in the bucket of 25 ms"


def test_counters_of_ended_workers_stay_and_their_gauges_are_dropped(shared):
    for life in range(3):
        one = worker(shared, 1)
        one.add(metric_names.CREATED, by=10)
        one.set(metric_names.LANES, to=2)
        one.cells[metric_names.LONGEST.at("job")] = 3.0 - life
        shared.retire(1)
    cells = worker(shared, 0).read()
    assert (cells[metric_names.CREATED.at()], cells[metric_names.LANES.at()]) == (30, 0)
    assert cells[metric_names.LONGEST.at("job")] == 3.0


def test_a_counter_never_falls_or_jumps_while_an_ended_worker_is_merged(shared):
    one, seen, done = worker(shared, 0), [], threading.Event()

    def look():
        while not done.is_set():
            seen.append(one.read()[metric_names.CREATED.at()])

    reader = threading.Thread(target=look)
    reader.start()
    for _ in range(30):
        worker(shared, 1).add(metric_names.CREATED)
        shared.retire(1)
    done.set()
    reader.join()
    assert seen == sorted(seen)
    assert seen[-1] <= 30
    assert one.read()[metric_names.CREATED.at()] == 30


def test_threads_of_one_process_lose_no_count():
    registry = Registry()

    def count():
        for _ in range(5_000):
            registry.add(metric_names.CREATED)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert registry.read()[metric_names.CREATED.at()] == 20_000


def test_minutes_are_kept_in_order_for_at_most_a_week(shared, monkeypatch):
    monkeypatch.setattr(shared_memory, "KEPT_MINUTES", 3)
    for number in range(5):
        shared.write_minute(Minute(number * 60, number, 0, 0))
    assert [minute.requests for minute in shared.minutes()] == [2, 3, 4]


def test_a_worker_finds_its_row_by_its_parents_variables(shared, monkeypatch):
    monkeypatch.setenv(METRICS_FD, str(os.dup(shared.descriptor)))
    monkeypatch.setenv(METRICS_ROW, "1")
    open_registry(2).add(metric_names.CREATED)
    assert shared.row(1)[metric_names.CREATED.at()] == 1
    monkeypatch.delenv(METRICS_ROW)
    assert open_registry(2).group is None


def test_shared_memory_has_no_file_name(shared):
    assert os.fstat(shared.descriptor).st_nlink == 0


def test_a_full_disk_does_not_matter_or_is_reported_at_start(tmp_path):
    """Writing to a sparse file on a full disk kills the process. A file size limit simulates the full disk."""
    program = """if True:
        import os, resource, signal, sys, tempfile
        from holdfast.telemetry.shared_memory import SharedRegistry
        tempfile.tempdir = sys.argv[1]
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        board = SharedRegistry.create(2)
        board.row(1)[0] = 7.0
        assert board.rows()[2][0] == 7.0
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        if hasattr(os, "memfd_create"):
            del os.memfd_create
        SharedRegistry.create(2)
    """
    ended = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False)
    assert "no space for the workers" in ended.stderr


def test_without_anonymous_memory_a_file_with_allocated_blocks_is_used(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    registry = SharedRegistry.create(1)
    found = os.fstat(registry.descriptor)
    assert (found.st_nlink, list(tmp_path.iterdir())) == (0, [])
    assert found.st_blocks * 512 >= found.st_size
    os.close(registry.descriptor)


def test_a_minute_with_requests_is_recorded_for_all_workers(shared):
    stats, own = Stats(Registry(group=shared)), Stats(worker(shared, 1))
    for requests in (3, 0, 1):
        for _ in range(requests):
            own.note(None, "/locks", 200, own.begin())
        stats._minute_ends = 0  # as if the minute were over
        record_minute(stats, shared)
        record_minute(stats, shared)
    assert [minute.requests for minute in own.history(3_600)] == [3, 1]
    assert own.uptime() == stats.uptime()


def test_readers_do_not_hang_if_the_parent_died_while_it_merged_a_worker(shared):
    worker(shared, 0).add(metric_names.CREATED)
    shared._cells[shared_memory._SEQUENCE] += 1
    assert worker(shared, 1).read()[metric_names.CREATED.at()] == 1
