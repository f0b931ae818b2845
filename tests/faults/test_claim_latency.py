"""The latency of claims with capabilities, and from queues with a limit for each key, beside that of plain claims."""

import pytest

from bench.claims import KEYED, KEYS, KINDS, claim, fill, measure, over_limit, running
from holdfast.engine.verbs.tasks.claiming import Claimed
from tests.proof_size import FULL, sized

ROWS, CLAIMS = sized(9_000, 1_000_000), sized(2, 400)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def full_store(request, tmp_path_factory):
    """The address of a store with many ready tasks."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('full')}/full.db"
    else:
        url = request.getfixturevalue("database")
    fill(url, ROWS)
    return url


def test_claims_among_many_sets_and_keys_take_at_most_half_as_long_again(full_store):
    medians = measure(full_store, CLAIMS)
    assert medians.keys() == KINDS.keys()
    if FULL:
        assert not over_limit(medians), {kind: f"{median * 1e6:.0f} µs" for kind, median in medians.items()}


@pytest.mark.parametrize("task_type", KEYED)
def test_a_claim_passes_over_all_tasks_of_full_keys_at_the_head_of_a_queue(full_store, task_type):
    with running(full_store) as engine:
        got = engine.call(claim(task_type, types=(task_type,)))
    assert isinstance(got, Claimed)
    _, full = KEYED[task_type]
    assert int(got.taken[0].task.concurrency_key.removeprefix("key")) >= KEYS + full
