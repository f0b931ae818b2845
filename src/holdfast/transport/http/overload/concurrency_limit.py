"""Concurrency limit: how many requests of one kind may be in progress at once, shared fairly by accounts."""

from __future__ import annotations

MORE_FOR_OTHERS = 0.5
"""Part of the places that exist beyond the limit, for accounts that have less than their share."""


class ConcurrencyLimit:
    """A number of places, each taken by one request of an account; "" stands for callers without one.

    One account may take all places while no other needs one. Then each gets its share: an account that has less is
    admitted beyond the limit, and one that has as much is refused until a place is free.
    """

    __slots__ = ("_by_account", "limit", "taken")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        self._by_account: dict[str, int] = {}
        """How many each account has taken; only accounts with any have an entry."""

    def has_room(self, account: str) -> bool:
        """Whether there is a place for one more request of this account."""
        if self.taken < self.limit:
            return True
        accounts = len(self._by_account) + (account not in self._by_account)
        if accounts == 1 or self.taken >= self.limit * (1 + MORE_FOR_OTHERS):
            return False
        return self._by_account.get(account, 0) < self.limit // accounts

    def take(self, account: str) -> None:
        """Take a place."""
        self.taken += 1
        self._by_account[account] = self._by_account.get(account, 0) + 1

    def give_back(self, account: str) -> None:
        """Free a place."""
        self.taken -= 1
        left = self._by_account[account] - 1
        if left:
            self._by_account[account] = left
        else:
            del self._by_account[account]
