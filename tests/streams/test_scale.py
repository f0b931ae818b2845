"""Many readers on one process: nobody misses or repeats anything, and those who write hardly notice.

The small form proves the first half; how long claims take is measured at full size only, against the same load
without readers, and a busy machine gets another rng.
"""

import pytest

from bench.streams import Size, measure
from tests.proof_size import FULL, sized

SIZE = Size(
    readers=sized(100, 1_000),
    of_everything=sized(10, 50),
    events_per_second=sized(150, 1_000),
    seconds=sized(1, 10),
    connections=sized(4, 32),
)
MOST_MEMORY = 400 * 2**20
TRIES = sized(1, 3)


@pytest.fixture
def new_store(tmp_path):
    numbers = iter(range(100))
    return lambda: f"sqlite:///{tmp_path}/{next(numbers)}.db"


@pytest.mark.parametrize("everything", [False, True], ids=["of one subject each", "of everything"])
def test_many_readers_see_every_event_once_while_others_write(new_store, everything):
    for tried in range(1, TRIES + 1):
        outcome = measure(new_store(), SIZE, SIZE.of_everything if everything else SIZE.readers, everything=everything)
        assert outcome.written == SIZE.events_per_second * SIZE.seconds
        assert (outcome.wrong, outcome.cut) == (0, 0)
        assert outcome.rss < MOST_MEMORY
        if not FULL or outcome.p99 < 2 * measure(new_store(), SIZE, 0).p99:
            return
        assert tried < TRIES, "claims took twice as long while others read"
