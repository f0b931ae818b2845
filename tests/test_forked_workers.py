"""The test runner itself: a worker that dies, a failure and a stop must never look like success."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked_workers
from tests.forked_workers import Work

ROOT = Path(__file__).parent.parent
CONFTEST = """
from tests.forked_workers import ForkedWorkers

def pytest_configure(config):
    config.pluginmanager.register(
        ForkedWorkers(2, lambda item: item.nodeid.partition("::")[0], is_alone=lambda item: "alone" in item.nodeid)
    )
"""
DYING = """
import os
import time

def test_before(): pass
def test_dies():
    if os.fork() == 0:
        time.sleep(20)  # holds the worker's end of the pipe
        os._exit(0)
    os._exit(3)
def test_after(): pass
"""
PASSING = "def test_passes(tmp_path): print('hello')"
FAILING = "def test_fails():\n    print('what it printed')\n    assert False"


@pytest.fixture
def run(tmp_path):
    def run(*files: str, options: tuple[str, ...] = (), **named: str) -> tuple[int, str]:
        (tmp_path / "conftest.py").write_text(CONFTEST)
        for name, text in (named | {f"test_{number}": text for number, text in enumerate(files)}).items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / f"{name}.py").write_text(text)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:schemathesis",
            "-p",
            "no:hypothesispytest",
            "-v",
            *options,
            str(tmp_path),
        ]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        output = tmp_path / "output"  # a pipe would wait for what the dead worker left behind
        with output.open("w") as file:
            status = subprocess.run(command, env=environment, stdout=file, timeout=60, check=False).returncode
        return status, output.read_text()

    return run


def test_every_test_runs_once_and_what_it_printed_is_shown_if_it_fails(run):
    status, output = run(PASSING, FAILING, PASSING, PASSING)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "1 failed, 3 passed" in output
    assert "what it printed" in output
    assert "hello" not in output


def test_a_worker_that_dies_fails_the_test_it_ran_and_those_it_left(run):
    status, output = run(DYING, PASSING)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "2 failed, 2 passed" in output
    assert re.search(r"_ test_dies _+\nThis test was running when its worker ended\.\n", output)
    assert re.search(r"_ test_after _+\nThis test was not run\.\n", output)
    assert re.search(r"worker-[01] ended with 3\.", output)


def test_a_run_that_stops_at_the_first_failure_says_so(run):
    status, output = run(FAILING, *[PASSING] * 8, options=("-x",))
    assert status != pytest.ExitCode.OK
    assert "stopping after 1 failures" in output


def test_a_worker_goes_on_with_its_folder_then_begins_another_then_helps():
    """The tests of a folder share servers."""
    folders = [*"aabbbccc"]
    queue = forked_workers._Queue([[number] for number in range(len(folders))], folders, [False] * len(folders))
    first, second = queue.tests(Work.COMPUTES), queue.tests(Work.COMPUTES)
    taken = [next(worker) for worker in (first, second, first, second, first, second, first, second)]
    assert [folders[number] for number in taken] == ["a", "b", "a", "b", "c", "b", "c", "c"]
    assert len(set(taken)) == len(folders)
    assert [*first, *second] == []


def test_one_worker_waits_while_the_other_computes():
    waiting = [True, True, False, False, False]
    queue = forked_workers._Queue([[number] for number in range(5)], [*"abcde"], waiting)
    waits, computes = queue.tests(Work.WAITS_THEN_COMPUTES), queue.tests(Work.COMPUTES)
    assert [next(worker) for worker in (waits, computes, waits, computes, waits)] == [0, 2, 1, 3, 4]
    assert [*waits, *computes] == []


def test_a_worker_that_only_waits_leaves_what_computes_to_others():
    queue = forked_workers._Queue([[number] for number in range(3)], [*"abc"], [True, False, True])
    assert [*queue.tests(Work.WAITS)] == [0, 2]
    assert [*queue.tests(Work.COMPUTES)] == [1]


@pytest.mark.parametrize(("workers", "computing"), [(1, 1), (2, 2), (4, 4), (5, 4), (7, 4), (8, 4), (12, 6)])
def test_few_workers_compute_at_the_same_time_but_half_of_them_at_least(workers, computing):
    work = [forked_workers.work_of(number, workers) for number in range(workers)]
    assert sum(each is not Work.WAITS for each in work) == computing


def test_a_test_that_needs_the_machine_runs_when_all_others_have_ended(run):
    others = "import time\ndef test_it(): time.sleep(0.5); print('ended', time.monotonic()); assert False"
    alone = "import time\ndef test_it(): print('began', time.monotonic()); assert False"
    _, output = run(test_alone=alone, test_b=others, test_c=others)
    ended = [float(moment) for moment in re.findall(r"^ended (.*)", output, re.MULTILINE)]
    began = float(re.search(r"^began (.*)", output, re.MULTILINE)[1])
    assert len(ended) == 2
    assert began >= max(ended)
