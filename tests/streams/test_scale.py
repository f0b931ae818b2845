"""Many readers of one process: each receives every event once, and claims stay fast.

Latency of claims is compared at full size only, with the same load without readers, and measured again if the machine
was busy.
"""

import pytest

from bench.streams import Size, measure
from tests.proof_size import FULL, sized

SIZE = Size(
    readers=sized(40, 1_000),
    all_event_readers=sized(10, 50),
    events_per_second=sized(150, 1_000),
    seconds=sized(1, 10),
    connections=sized(4, 32),
)
MAX_MEMORY = 400 * 2**20
ATTEMPTS = sized(1, 3)


@pytest.fixture
def new_store(tmp_path):
    numbers = iter(range(100))
    return lambda: f"sqlite:///{tmp_path}/{next(numbers)}.db"


@pytest.mark.parametrize("everything", [False, True], ids=["of one subject each", "of all events"])
def test_many_readers_receive_every_event_once_while_claims_run(new_store, everything):
    for attempt in range(1, ATTEMPTS + 1):
        outcome = measure(
            new_store(), SIZE, SIZE.all_event_readers if everything else SIZE.readers, everything=everything
        )
        assert outcome.written == SIZE.events_per_second * SIZE.seconds
        assert (outcome.wrong, outcome.closed) == (0, 0)
        assert outcome.rss < MAX_MEMORY
        if not FULL or outcome.p99 < 2 * measure(new_store(), SIZE, 0).p99:
            return
        assert attempt < ATTEMPTS, "claims took twice as long while others read"
