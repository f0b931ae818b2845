"""Concurrent requests: accounts share the places up to the limit."""

from holdfast.transport.http.overload.concurrency_limit import ConcurrencyLimit


def taken_by(limit, account, count):
    """How many of so many requests of an account are admitted."""
    admitted = 0
    for _ in range(count):
        if limit.has_room(account):
            limit.take(account)
            admitted += 1
    return admitted


def test_one_account_may_take_all_places_while_no_other_needs_one():
    assert taken_by(ConcurrencyLimit(10), "one", 20) == 10


def test_an_account_that_has_less_than_its_share_is_admitted_beyond_the_limit():
    limit = ConcurrencyLimit(10)
    taken_by(limit, "one", 10)
    assert taken_by(limit, "two", 10) == 5
    assert taken_by(limit, "one", 1) == 0


def test_the_places_that_become_free_go_to_the_account_that_has_less():
    limit = ConcurrencyLimit(10)
    taken_by(limit, "one", 10)
    for _ in range(5):
        taken_by(limit, "two", 1)
        limit.give_back("one")
        assert taken_by(limit, "one", 1) == 0
    assert limit.taken == 10
    assert taken_by(limit, "two", 1) == taken_by(limit, "one", 1) == 0


def test_places_beyond_the_limit_are_few_and_all_are_given_back():
    limit = ConcurrencyLimit(10)
    accounts = [f"account-{number}" for number in range(20)]
    admitted = {account: taken_by(limit, account, 10) for account in accounts}
    assert sum(admitted.values()) == limit.taken <= 15
    for account, count in admitted.items():
        for _ in range(count):
            limit.give_back(account)
    assert taken_by(limit, "one", 20) == 10


def test_callers_without_an_account_get_no_more_than_the_limit():
    assert taken_by(ConcurrencyLimit(10), "", 20) == 10
