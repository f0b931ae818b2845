"""Request budgets: lent in slices, and in each window exactly the limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.budget import SLICES, Budget, Terms, lend
from holdfast.core.row import SECOND
from tests.support import START

HOUR = Terms(100, 3600 * SECOND)


def test_a_slice_is_a_twentieth():
    assert lend(START, 0, HOUR, START) == Budget(5, 5, START, HOUR.window)


@pytest.mark.parametrize(("used", "granted"), [(0, 5), (95, 5), (96, 4), (99, 1), (100, 0), (500, 0)])
def test_the_last_slice_is_the_rest_of_the_budget(used, granted):
    budget = lend(START, used, HOUR, START + 1)
    assert (budget.granted, budget.used) == (granted, used + granted)


@pytest.mark.parametrize("limit", [1, 2, SLICES - 1])
def test_a_small_budget_is_lent_in_slices_of_one(limit):
    assert lend(START, 0, Terms(limit, SECOND), START).granted == 1


def test_a_budget_of_zero_lends_nothing():
    assert lend(START, 0, Terms(0, SECOND), START).granted == 0


@pytest.mark.parametrize(
    ("now", "budget"),
    [
        (START - HOUR.window, Budget(0, 100, START, 2 * HOUR.window)),
        (START - HOUR.window - 1, Budget(5, 5, START - HOUR.window - 1, HOUR.window)),
        (START + HOUR.window - 1, Budget(0, 100, START, 1)),
        (START + HOUR.window, Budget(5, 5, START + HOUR.window, HOUR.window)),
        (START + 9 * HOUR.window + 7, Budget(5, 5, START + 9 * HOUR.window + 7, HOUR.window)),
    ],
)
def test_the_first_request_after_a_window_starts_a_new_one(now, budget):
    assert lend(START, 100, HOUR, now) == budget


@given(st.integers(0, 200), st.lists(st.integers(0, 5), max_size=60))
def test_a_window_lends_exactly_its_limit(limit, steps):
    terms = Terms(limit, 10)
    started_at, used, now = START, 0, START
    lent: dict[int, int] = {}
    for step in steps:
        now += step
        budget = lend(started_at, used, terms, now)
        started_at, used = budget.started_at, budget.used
        lent[started_at] = lent.get(started_at, 0) + budget.granted
        assert budget.ends_in == started_at + terms.window - now
    assert all(many <= limit for many in lent.values())
    assert used == lent.get(started_at, 0)
    while (budget := lend(started_at, used, terms, now)).granted:
        used = budget.used
    assert used == limit or not steps or now >= started_at + terms.window
