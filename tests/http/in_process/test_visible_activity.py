"""What accounts can learn of each other: the token counter and `/status`, as SECURITY.md says, and no more."""

from pathlib import Path

from tests.compat.orchestrion.account import register
from tests.http.job_client import fresh, job_path
from tests.http.replies import done

PAGE = (Path(__file__).parents[3] / "SECURITY.md").read_text()


def token(account):
    return done(account.post(f"{job_path(fresh())}/claim", {"owner": "me"}))["token"]


def test_tokens_of_one_account_grow_with_the_grants_of_all(server, account):
    other = register(server.anyone)
    before = token(account)
    for _ in range(3):
        token(other)
    assert token(account) - before == 4
    assert "Fencing tokens come from one counter" in PAGE


def test_status_counts_locks_of_all_accounts_but_shows_held_ones_of_its_own_alone(server, account):
    before = server.anyone.get("/status").json
    assert account.acquire("lock").status == 200
    after = server.anyone.get("/status").json
    assert after["total_acquires"] - before["total_acquires"] == 1
    assert (after["active_locks"], after["total_users"]) == (before["active_locks"], before["total_users"])
    assert "`GET /status` answers without a key" in PAGE
