"""Fixtures for all tests."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

pytest.register_assert_rewrite(
    "tests.conformance",
    "tests.compat.orchestrion.expect",
    "tests.billing.purchases",
    "tests.support",
    "tests.http.job_client",
    "tests.http.replies",
    "tests.compat.octostore.expect",
)

# Imported after the registration, which must come first.
from tests.bytecode import compile_in_background
from tests.compat.octostore.forked_process import start_parent_for_all_workers
from tests.forked_workers import RUN_FOLDER, ForkedWorkers
from tests.postgres import SharedPostgres, memory_folder, remove_shared_postgres
from tests.postgres_stores import PostgresStores
from tests.proof_size import FULL
from tests.scheduling import (
    choose_stores,
    folder_of,
    group_of,
    is_alone,
    is_waiting,
    leave_for_proof,
    sample_cases,
    sort_by_waiting,
)
from tests.support import DrivenClock


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=1, help="number of processes that run tests")


def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary files in memory, where a commit does not wait for a disk, and let signals end programs.

    Tests kill processes, never the machine: what a process has written survives it on any file system. Power loss has
    its own proof (store/test_power_loss.py), and `make prove` uses the disk.
    """
    # Ignored in a background job, or under nohup; programs under test would inherit that.
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)
    folder = memory_folder()
    if folder is not None and not FULL:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))
    if config.option.workers > 1:
        config.pluginmanager.register(ForkedWorkers(config.option.workers, group_of, folder_of, is_alone, is_waiting))


def pytest_sessionstart(session: pytest.Session) -> None:
    """In a whole run compile the sources and start what all workers share, while the tests are collected."""
    config = session.config
    if config.option.workers > 1 and config.args == config.getini("testpaths") and not config.option.keyword:
        compile_in_background(config)
        folder = config._tmp_path_factory.getbasetemp()
        starting = config.stash[POSTGRES_THREAD] = threading.Thread(target=SharedPostgres, args=(folder,))
        starting.start()
        start_parent_for_all_workers()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """At full size print a failure when it happens, not only at the end: the run takes an hour."""
    if FULL and report.failed and os.getpid() == _main_process:
        captured = [f"{name}:\n{text}" for name, text in report.sections]
        sys.stderr.write("\n".join(["", report.nodeid, report.longreprtext, *captured, ""]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how much the proofs covered: the sums of what tests recorded as properties."""
    totals: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        totals.update(dict(report.user_properties))
    if totals:
        covered = ", ".join(f"{number:,} {what}" for what, number in sorted(totals.items()))
        terminalreporter.write_line(f"Covered: {covered}")


_main_process = os.getpid()
POSTGRES_THREAD = pytest.StashKey[threading.Thread]()


@pytest.fixture
def covered(request: pytest.FixtureRequest) -> Callable[[str, int], None]:
    """Record how much a proof covered: (what, how many). pytest has a fixture for this, but not for its XML reports."""
    return lambda what, number: request.node.user_properties.append((what, number))


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Servers without a setting keep nothing in the user's own folders, and no program finds the user's keys."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("configuration")))
        yield


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude the collected tests from garbage collection: they live as long as the process. Do the rest rarely."""
    if starting := session.config.stash.get(POSTGRES_THREAD, None):
        starting.join()  # before workers are forked
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave some tests to `make prove` in a run of all folders; tests that somebody names run all."""
    if not FULL and config.args == config.getini("testpaths"):
        config.hook.pytest_deselected(items=leave_for_proof(items) + choose_stores(items) + sample_cases(items))
    sort_by_waiting(items)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """All workers have ended here, and the temporary folder still exists."""
    remove_shared_postgres(session.config._tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SharedPostgres:
    """The PostgreSQL server of this run, shared by all workers."""
    return SharedPostgres(request.config.stash.get(RUN_FOLDER, tmp_path_factory.getbasetemp()))


@pytest.fixture(scope="session")
def new_postgres_database(postgres: SharedPostgres) -> Callable[[], str]:
    """Returns the address of a new database with the schema and no rows."""
    return postgres.new_database


@pytest.fixture(scope="session")
def new_empty_postgres_database(postgres: SharedPostgres) -> Callable[[], str]:
    """Returns the address of a new database without a schema."""
    return postgres.new_empty_database


@pytest.fixture(scope="module")
def database(new_postgres_database: Callable[[], str]) -> str:
    """A database for a whole file; tests empty it instead of creating their own."""
    return new_postgres_database()


@pytest.fixture(scope="module")
def postgres_stores(database: str) -> Iterator[PostgresStores]:
    """Stores on that database, one at a time, which share connections."""
    postgres_stores = PostgresStores(database)
    yield postgres_stores
    postgres_stores.close()


@pytest.fixture
def clock() -> DrivenClock:
    """A clock that only the test moves."""
    return DrivenClock()
