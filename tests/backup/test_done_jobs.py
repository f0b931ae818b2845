"""Five agents see the same issue: one solves it, and the others learn the result, also after a restart or restore."""

import pytest

from holdfast.backup.backup import backup
from holdfast.backup.restore import restore
from holdfast.core.lease import DONE
from holdfast.core.plan import DAY
from holdfast.engine.cleanup import Cleanup
from holdfast.engine.command import Held
from holdfast.engine.retention import Retention
from holdfast.engine.verbs.job_claims import Claimed, Done
from tests.backup.sample_store import no_report, opened
from tests.support import DrivenClock, claim, release, run, transact

AGENTS = [f"agent-{number}" for number in range(1, 6)]


def claims(store):
    """What each agent is answered that claims the issue now."""
    return transact(store, *(claim("github-issue-7", agent, owner=agent) for agent in AGENTS))


def results(store):
    """(who solved it, with which result) as each agent learns it."""
    outcomes = claims(store)
    assert {type(outcome) for outcome in outcomes} == {Done}
    return {(outcome.lease.result, "agent-1" in (outcome.lease.ended or "")) for outcome in outcomes}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("done_for", [60 * DAY, None], ids=["for 60 days", "for good"])
def test_all_agents_learn_that_the_issue_is_solved(kind, done_for, new_store_settings, tmp_path):
    clock, settings = DrivenClock(), new_store_settings(kind)
    solved = {('{"pr":12}', True)}
    with opened(settings, clock) as store:
        outcomes = claims(store)
        assert [type(outcome) for outcome in outcomes] == [Claimed, Held, Held, Held, Held]
        run(store, release("github-issue-7", "agent-1", how=DONE, result='{"pr":12}', done_for=done_for))
        assert results(store) == solved
    with opened(settings, clock) as restarted:
        clock.advance(3600)
        assert results(restarted) == solved
        clock.advance(45 * 24 * 3600)
        cleanup = Cleanup(restarted, lambda commands: transact(restarted, *commands), Retention(names=30 * DAY))
        while cleanup.run():
            pass
        assert results(restarted) == solved
    backup(settings, tmp_path / "backup", no_report)
    target = new_store_settings(kind)
    restore(target, tmp_path / "backup", no_report)
    with opened(target, clock) as restored:
        assert results(restored) == solved
