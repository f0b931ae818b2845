"""Thirty-two concurrent claims: one winner in each round, and growing tokens."""

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg

from tests.compat.octostore.expect import eventually
from tests.http.job_client import agent, claimed, fresh, held, ok, together
from tests.proof_size import sized
from tests.store_inspection import assert_store_is_consistent

CLAIMERS = 32
ROUNDS = sized(4, 200)


def test_one_of_32_racing_claimers_wins_each_round(store, new_store_url, new_server):
    url = new_store_url()
    servers = [new_server(url).start() for _ in range(2 if store == "postgres" else 1)]
    callers = [agent(servers[place % len(servers)], f"alice-{place % 25 + 1}") for place in range(CLAIMERS)]
    gate = threading.Barrier(CLAIMERS)
    same, last_token = fresh("same"), 0

    def race(place, job):
        gate.wait(20)
        return callers[place].claim(job, f"claimer-{place}", ttl_seconds=600)

    with ThreadPoolExecutor(CLAIMERS) as pool:
        for number in range(ROUNDS):
            # A name that is new to the store races differently from one with a row to lock.
            job = same if number % 2 else fresh(f"round-{number}")
            answers = list(pool.map(race, range(CLAIMERS), [job] * CLAIMERS))
            won = [answer for answer in answers if ok(answer)["status"] == "claimed"]
            assert len(won) == 1, [answer.json["status"] for answer in answers]
            winner = claimed(won[0])
            for answer in answers:
                if answer is not won[0]:
                    assert held(answer)["owner"] == winner["owner"]
            assert winner["token"] > last_token
            last_token = winner["token"]
            assert callers[0].owner_of(job)["owner"] == winner["owner"]
            ok(callers[-1].release_job(job, winner["lease_id"]))
    assert_store_is_consistent(url)


def test_a_lost_race_does_not_break_later_statements(new_postgres_database, new_server):
    """A statement that fails in a lost race while a connection prepares it must not break that connection."""
    url = new_postgres_database()
    here, there = (agent(new_server(url).start()) for _ in range(2))
    for _ in range(sized(3, 40)):
        cut_connections(url)
        for caller in (here, there):
            eventually(lambda caller=caller: caller.claim(fresh()).status, lambda status: status == 200, within=3)
        for _ in range(6):
            job = fresh()
            answers = together(*[lambda caller=caller, job=job: caller.claim(job) for caller in (here, there) * 3])
            assert sorted(ok(answer)["status"] for answer in answers) == ["claimed"] + ["held"] * 5
    assert_store_is_consistent(url)


def cut_connections(url):
    """Close all connections: new ones have no prepared statements."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'holdfast' AND datname = current_database()"
        )
