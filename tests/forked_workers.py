"""Runs the tests in several processes, forked after one collection.

A worker of pytest-xdist is a new interpreter that imports and collects every test again, which took a tenth of a run.
"""

from __future__ import annotations

import enum
import fcntl
import mmap
import multiprocessing
import os
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest

RUN_FOLDER = pytest.StashKey[Path]()
"""The temporary folder of the whole run; that of a worker lies inside."""

_FORK = multiprocessing.get_context("fork")


MOST_COMPUTING = 4
"""Workers that compute at the same time: with 8 on two cores, all tests together took a fifth more processor time."""


class Work(enum.Enum):
    """What a worker takes first, and what then."""

    COMPUTES = enum.auto()
    """Groups that compute, then those that mostly wait."""
    WAITS = enum.auto()
    """Groups that mostly wait, then none."""
    WAITS_THEN_COMPUTES = enum.auto()


def work_of(number: int, workers: int) -> Work:
    """What each of so many workers takes: every second one waits first, and computes later if few others do."""
    if number % 2 == 0:
        return Work.COMPUTES
    computing = (workers + 1) // 2 + number // 2
    return Work.WAITS_THEN_COMPUTES if computing < MOST_COMPUTING else Work.WAITS


class ForkedWorkers:
    """Distributes groups of tests. A worker that has finished one takes the next; its reports go to the parent."""

    def __init__(
        self,
        count: int,
        group_of: Callable[[pytest.Item], str],
        folder_of: Callable[[pytest.Item], str] = lambda item: str(item.path.parent),
        is_alone: Callable[[pytest.Item], bool] = lambda item: False,
        is_waiting: Callable[[pytest.Item], bool] = lambda item: False,
    ) -> None:
        """Groups of one folder share what is expensive; groups that share nothing have folders of their own.

        `is_alone` chooses tests that need the whole machine: they run at the end, when nothing else does. `is_waiting`
        chooses those that mostly wait: half of the workers run them, while the others compute.
        """
        self._count = count
        self._folder_of = folder_of
        self._group_of = group_of
        self._is_alone = is_alone
        self._is_waiting = is_waiting

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        groups: dict[str, list[int]] = {}
        for number, item in enumerate(session.items):
            groups.setdefault(self._group_of(item), []).append(number)
        if len(groups) < 2 or session.testsfailed or session.config.option.collectonly:
            return None  # pytest's own loop
        alone = [tests for tests in groups.values() if self._is_alone(session.items[tests[0]])]
        beside_others = [tests for tests in groups.values() if tests not in alone]
        session.config.stash[RUN_FOLDER] = session.config._tmp_path_factory.getbasetemp()
        _discard_captured(session.config)
        self._run(session, beside_others, [f"worker-{number}" for number in range(self._count)])
        self._run(session, alone, ["worker-alone"])
        return True

    def _run(self, session: pytest.Session, groups: list[list[int]], names: list[str]) -> None:
        folders = [self._folder_of(session.items[tests[0]]) for tests in groups]
        queue = _Queue(groups, folders, [self._is_waiting(session.items[tests[0]]) for tests in groups])
        names = names[: len(groups)]
        workers = [_Worker(name, session, queue, work_of(number, len(names))) for number, name in enumerate(names)]
        _Parent(session, queue, workers).run()


class _Queue:
    """The groups that no worker has taken, in memory that all workers share.

    A worker goes on with the folder that it works on, because the tests of a folder share servers; then with a folder
    that no other has begun; then it helps with the folder that has most groups left. Before all this it takes the
    groups that mostly wait, or those that compute, as long as there are any; some workers end then.
    """

    def __init__(self, groups: list[list[int]], folders: list[str], waiting: list[bool]) -> None:
        self._groups = groups
        self._folders = folders
        self._waiting = waiting
        self.all_tests = {test for group in groups for test in group}
        self._taken = mmap.mmap(-1, len(groups) or 1)
        self._stop = mmap.mmap(-1, 1)
        self._lock = os.memfd_create("lock")  # a worker that dies releases it

    def stop(self) -> None:
        self._stop[0] = 1

    def tests(self, work: Work) -> Iterator[int]:
        """Numbers of tests, group after group, until all are taken or the run is stopped."""
        folder: str | None = None
        while (group := self._take(folder, work)) is not None:
            folder = self._folders[group]
            for test in self._groups[group]:
                if self._stop[0]:
                    return
                yield test

    def _take(self, folder: str | None, work: Work) -> int | None:
        fcntl.lockf(self._lock, fcntl.LOCK_EX)
        try:
            left = [group for group in range(len(self._groups)) if not self._taken[group]]
            if not left:
                return None
            preferred = [group for group in left if self._waiting[group] == (work is not Work.COMPUTES)]
            if work is Work.WAITS and not preferred:
                return None
            group = min(preferred or left, key=self._rank(folder, left))
            self._taken[group] = 1
            return group
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN)

    def _rank(self, own: str | None, left: list[int]) -> Callable[[int], tuple[int, int, int]]:
        """The order in which groups are taken; of those in one folder the first."""
        groups_left = Counter(self._folders[group] for group in left)
        whole = Counter(self._folders)

        def rank(group: int) -> tuple[int, int, int]:
            folder = self._folders[group]
            if folder == own:
                return 0, 0, group
            is_new = groups_left[folder] == whole[folder]
            return (1, 0, group) if is_new else (2, -groups_left[folder], group)

        return rank


class _Worker:
    """One forked process, seen from the parent."""

    def __init__(self, name: str, session: pytest.Session, queue: _Queue, work: Work) -> None:
        self.name = name
        self.running: int | None = None
        self.problem = ""
        self.connection, sender = _FORK.Pipe(duplex=False)
        self.process = _FORK.Process(target=_work, args=(self.name, session, queue.tests(work), sender))
        self.process.start()
        sender.close()

    def fileno(self) -> int:
        return self.connection.fileno()


class _Parent:
    """Passes the reports of the workers to pytest, as if the tests had run here."""

    def __init__(self, session: pytest.Session, queue: _Queue, workers: list[_Worker]) -> None:
        self._session = session
        self._hook = session.config.hook
        self._queue = queue
        self._workers = workers
        self._finished: set[int] = set()

    def run(self) -> None:
        reporter = self._session.config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            reporter.showfspath = False  # reports of several files alternate
        try:
            self._receive_all()
        finally:
            self._queue.stop()
            for worker in self._workers:
                worker.process.join()
        self._report_missing()
        self._raise_if_stopped()

    def _receive_all(self) -> None:
        workers = set(self._workers)
        while workers:
            ready = wait(workers, timeout=1)
            for worker in ready:
                try:
                    messages = worker.connection.recv()
                except EOFError:
                    workers.discard(worker)
                else:
                    for kind, content in messages:
                        getattr(self, f"_on_{kind}")(worker, content)
            if not ready:  # a process that a dead worker has left behind may hold its end of the pipe
                workers = {worker for worker in workers if worker.process.is_alive() or worker.connection.poll()}
            if self._session.shouldstop or self._session.shouldfail:
                self._queue.stop()

    def _on_start(self, worker: _Worker, number: int) -> None:
        worker.running = number
        item = self._session.items[number]
        self._hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)

    def _on_report(self, worker: _Worker, data: dict[str, Any]) -> None:
        report = self._hook.pytest_report_from_serializable(config=self._session.config, data=data)
        self._hook.pytest_runtest_logreport(report=report)

    def _on_finish(self, worker: _Worker, number: int) -> None:
        worker.running = None
        self._finished.add(number)
        item = self._session.items[number]
        self._hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _on_warning(self, worker: _Worker, content: dict[str, Any]) -> None:
        message = warnings.WarningMessage(**content.pop("warning"))
        self._hook.pytest_warning_recorded.call_historic(kwargs={**content, "warning_message": message})

    def _on_problem(self, worker: _Worker, text: str) -> None:
        worker.problem = text

    def _report_missing(self) -> None:
        """A test that never ended has failed: its process died, or took it from the queue and died."""
        if self._session.shouldstop or self._session.shouldfail:
            return
        ended = [f"{worker.name} ended with {worker.process.exitcode}. {worker.problem}" for worker in self._workers]
        running = {worker.running for worker in self._workers}
        for number in sorted(self._queue.all_tests - self._finished):
            state = "was running when its worker ended" if number in running else "was not run"
            item = self._session.items[number]
            text = "\n".join([f"This test {state}.", *ended])
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
            self._hook.pytest_runtest_logreport(report=report)

    def _raise_if_stopped(self) -> None:
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)


class _Sender:
    """Sends to the parent what pytest reports in a worker: all about one test together, when the next one starts."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection
        self._kept: list[tuple[str, Any]] = []

    def keep(self, kind: str, content: Any) -> None:
        self._kept.append((kind, content))

    def send(self, *messages: tuple[str, Any]) -> None:
        self._connection.send([*self._kept, *messages])
        self._kept.clear()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.keep("report", self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        warning = {
            "message": str(warning_message.message),
            "category": warning_message.category,
            "filename": warning_message.filename,
            "lineno": warning_message.lineno,
        }
        self.keep("warning", {"warning": warning, "when": when, "nodeid": nodeid, "location": location})


def _work(name: str, session: pytest.Session, tests: Iterator[int], connection: Connection) -> None:
    """The whole life of a worker."""
    config = session.config
    config.pluginmanager.unregister(name="terminalreporter")
    _capture_apart(config)
    factory = config._tmp_path_factory
    factory._basetemp = config.stash[RUN_FOLDER] / name
    factory._basetemp.mkdir(mode=0o700)
    sender = _Sender(config, connection)
    config.pluginmanager.register(sender)
    try:
        _run_tests(session, tests, sender)
        session._setupstate.teardown_exact(None)  # nothing is left, unless the run was stopped
        sender.send()
    except BaseException:  # the parent reports it
        sender.send(("problem", traceback.format_exc()))


def _run_tests(session: pytest.Session, tests: Iterator[int], sender: _Sender) -> None:
    """Run tests one after another; pytest must know the next one, to keep the fixtures that it shares."""
    following = next(tests, None)
    while following is not None:
        number, following = following, next(tests, None)
        sender.send(("start", number))
        next_item = None if following is None else session.items[following]
        session.config.hook.pytest_runtest_protocol(item=session.items[number], nextitem=next_item)
        sender.keep("finish", number)


def _discard_captured(config: pytest.Config) -> None:
    """What was printed during the collection would be shown by every worker again."""
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None and capture.is_globally_capturing():
        capture.read_global_capture()


def _capture_apart(config: pytest.Config) -> None:
    """Forked processes share open files: each needs its own for what its tests print.

    The file objects stay, because libraries keep the `sys.stderr` that they found when they were imported.
    """
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is None or not capture.is_globally_capturing():
        return
    for stream in (capture._global_capturing.out, capture._global_capturing.err):
        if hasattr(stream, "targetfd"):
            with tempfile.TemporaryFile(buffering=0) as file:
                os.dup2(file.fileno(), stream.tmpfile.fileno())
                os.dup2(file.fileno(), stream.targetfd)
