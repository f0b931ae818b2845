"""Every measurement runs, at a size where its figures mean nothing."""

import psycopg
import pytest

from bench import accounts, growth, servers, stores
from bench.figures import Figures
from bench.idle import measure_idle
from bench.in_process import measure_embedded, measure_engine
from bench.page import OTHERS
from bench.peers import holdfast, libraries, tables
from bench.peers.__main__ import PEERS, is_usable
from bench.peers.peer import LOCKS, Peer
from bench.requests import measure_one_process, measure_requests
from bench.reservations import measure_reservations, worst_seconds
from bench.seeding import seed
from bench.statements import measure_statements, seconds_of_statements
from bench.tasks import measure_tasks
from bench.tree import PRESENT, ROOT, older_tree
from tests.proof_size import FULL

SECONDS = 0.05
full_size = pytest.mark.skipif(not FULL, reason="starts many servers: part of make prove")


@pytest.fixture
def new_store(tmp_path):
    return stores.new_files(tmp_path)


def test_requests_are_measured_beside_both_echo_servers(new_store):
    figures = Figures()
    measure_requests(figures, "sqlite", new_store, [PRESENT], SECONDS, [2])
    verbs = ("echo.bare", "echo.holdfast", "claim", "heartbeat", "release", "jobs", "locks")
    assert {name.removesuffix(".rate") for name in figures.rounds if name.endswith(".rate")} == {
        f"sqlite.{verb}.2" for verb in verbs
    }
    assert figures.median("sqlite.claim.2.rate") > 0
    assert figures.median("sqlite.jobs.2.rate") == pytest.approx(2 * figures.median("sqlite.jobs.2.cycles"))


@full_size
def test_the_other_figures_are_those_of_the_page(new_store, tmp_path):
    figures = Figures()
    measure_one_process(figures, "sqlite", new_store, [PRESENT], SECONDS)
    measure_tasks(figures, "sqlite", new_store, [PRESENT], SECONDS)
    measure_reservations(figures, "sqlite", new_store, SECONDS, held=60)
    accounts.measure_limits(figures, "sqlite", new_store, [PRESENT], SECONDS, tmp_path)
    measure_engine(figures, "sqlite", new_store, [PRESENT], SECONDS, tmp_path)
    measure_statements(figures, tmp_path, SECONDS)
    measure_embedded(figures, "sqlite", new_store, [PRESENT], SECONDS)
    measure_idle(figures, "sqlite", new_store, [PRESENT], SECONDS, tmp_path)
    assert {name for name, *_ in OTHERS if name.startswith("sqlite")} <= set(figures.rounds)


def test_the_statements_of_claims_can_be_executed_again(tmp_path):
    assert 0 < seconds_of_statements(tmp_path, 3, SECONDS) < 0.1


def test_no_request_for_files_that_is_accepted_takes_long():
    assert 0 < worst_seconds(1_000 if FULL else 100) < 0.25, "50 ms on an idle machine"


def test_an_older_commit_runs_its_own_sources():
    if not (ROOT / ".git").exists():
        pytest.skip("an older commit needs the git history, which an unpacked archive does not have")
    with older_tree("HEAD") as tree:
        printed = tree.run_program("import holdfast, bench; print(holdfast.__file__, bench.__file__)")
        assert printed.count(str(tree.folder)) == 2
        assert tree.prefix == "older."
    assert not tree.folder.exists()


@pytest.fixture
def _short(monkeypatch):
    for program in (growth, servers):
        monkeypatch.setattr(program, "SECONDS", SECONDS)
        monkeypatch.setattr(program, "ROUNDS", 1)
    monkeypatch.setattr(servers, "CONNECTIONS", 8)
    monkeypatch.setattr(stores, "IN_MEMORY", True)


@full_size
@pytest.mark.usefixtures("_short")
def test_cost_is_measured_against_rows_waiters_and_accounts(new_store):
    rows = growth.by_rows(new_store, [300])
    assert [line.split(" | ")[0].strip("| ") for line in rows.splitlines()[2:]] == list(growth.VERBS)
    assert "| job cycle |" in growth.by_waiters(new_store, [3])
    assert "| claim " in growth.by_accounts(new_store, [11])
    assert "| claim " in growth.by_filling([10])


def test_growth_that_is_too_much_is_called_missed():
    figures = Figures({"claim.1.cpu": [1.0], "claim.2.cpu": [1.29], "list.1.cpu": [1.0], "list.2.cpu": [1.31]})
    claim, listing = growth.report("rows", figures, ["claim", "list"], [1, 2]).splitlines()[2:]
    assert "met" in claim
    assert "MISSED" in listing


def test_rows_are_copied_on_postgres_too(new_empty_postgres_database):
    url = new_empty_postgres_database()
    seed(url, 30, 20, 10)
    with psycopg.connect(url) as connection:
        counts = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("leases", "tasks")]
        assert counts == [31, 21]
        assert connection.execute("SELECT count(*) FROM events WHERE seq < 0").fetchone() == (10,)


@pytest.mark.usefixtures("_short")
def test_claims_of_several_accounts_on_one_postgres_are_measured(postgres):
    figures = Figures()
    servers.measure(figures, postgres, 1, 11)
    assert figures.median("1.11.rate") > 0
    assert figures.median("1.11.postgres") >= 0
    assert "| 1, 11 " in servers.report(figures, [1], [11])


SLOW = {*holdfast.PEERS[1:], tables.PEERS[0], libraries.PEERS[0]}


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("peer", [peer for peer in PEERS if FULL or peer not in SLOW], ids=lambda peer: peer.name)
def test_every_system_that_is_installed_is_measured(peer, tmp_path):
    if peer.is_missing() or (peer.is_from_pypi and not libraries.is_installed()):
        pytest.skip(f"{peer.name} is measured where it is installed (`make bench-peers ARGS=--install` installs all)")
    with peer.open(tmp_path) as measure:
        outcome = measure(2, SECONDS)
    assert outcome.cycles_rate > 0


def test_a_system_that_is_not_installed_is_left_out_with_a_line(capsys):
    missing = Peer("Redis", LOCKS, open, ("no-such-program",), "redis-server")
    assert not is_usable(missing)
    assert "apt-get install redis-server" in capsys.readouterr().out
