"""Histories of several programs that share one store, while they are killed, suspended and cut off from it."""

from __future__ import annotations

import random
from functools import partial

import psycopg
import pytest

from holdfast.core.row import SECOND
from tests.engine.test_postgres_clock_steps import STEPPED_CLOCK
from tests.linearizability.checks.floor import check_floor
from tests.linearizability.checks.whole_check import check, require
from tests.linearizability.programs import Programs, strike
from tests.proof_size import FULL, OPERATIONS, sized
from tests.support import wait_until

pytestmark = pytest.mark.waits(6)

PROGRAMS = sized(2, 3)
CALLS = sized(250, 3_500)
SEEN = ("lost", "held", "takeover", "lease.expired", "task.expired", "unknown")


@pytest.fixture
def url(request, tmp_path, new_postgres_database):
    return new_postgres_database() if request.param == "postgres" else f"sqlite:///{tmp_path}/x.db"


@pytest.fixture
def programs(url, tmp_path):
    started = []

    def start(**options):
        started.append(Programs(url, tmp_path, **options))
        for _ in range(PROGRAMS):
            started[-1].start()
        wait_until(started[-1].begun, 60)
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.mark.parametrize("part", range(sized(1, 12)))
@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
def test_every_answer_fits_one_order_while_programs_are_killed_and_suspended(programs, url, part, covered):
    rng = random.Random(part)
    running = programs(seed=part * 100, calls=CALLS, ttl=SECOND // sized(10, 4))
    kill, suspend = partial(running.kill_one, rng), partial(running.suspend_one, rng, 0.15)
    faults = [*[kill] * sized(1, 3), *[suspend] * sized(1, 5)]
    if url.startswith("postgresql:"):
        faults += [partial(cut_connection, url)] * sized(1, 5)
    strike(faults, rng, sized(0.1, 0.4))
    history = running.finish()
    seen = check(history, searched_calls=200)
    covered(OPERATIONS, len(history.calls))
    require(seen, *(SEEN if FULL else ("lost", "held")))
    assert running.faults.keys() == {"kill", "suspend"}


def cut_connection(url):
    """Let the database end one of the connections of the programs."""
    ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"{ends} AND datname = current_database() ORDER BY random() LIMIT 1")


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_every_answer_fits_one_order_while_the_database_s_clock_is_set(programs, url):
    """No lease ends early: by a clock that is never set, each holder keeps its lease for its TTL."""
    rng = random.Random(4127)
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(STEPPED_CLOCK)
    running = programs(seed=9, calls=sized(300, 3_000), ttl=3 * SECOND, steady=False)
    steps = [3600, -120, 5, -3600, 30, 600][: sized(3, 6)]
    strike([partial(set_clock, url, step) for step in steps], rng, 1.5)  # servers compare clocks once a second
    history = running.finish()
    require(check(history, searched_calls=0), "lost", "held", "granted")
    assert check_floor(history, slack_seconds=1.5) >= sized(0, 1), "no lease has expired"


def set_clock(url, seconds):
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("UPDATE test_step SET microseconds = microseconds + %s", (seconds * SECOND,))
