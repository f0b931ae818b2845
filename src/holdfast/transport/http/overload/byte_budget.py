"""A budget of bytes that this process holds for its callers; each caller has at most half of it."""

from __future__ import annotations

from collections import Counter


class ByteBudget:
    """Counts bytes by owner: an account, or one name for all callers without a key."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._share = total // 2
        self._by_owner: Counter[str] = Counter()
        self.used = 0

    def fits(self, owner: str, size: int) -> bool:
        """Whether there is room. An owner that has none yet gets any size while others leave room."""
        held = self._by_owner.get(owner, 0)
        return not (held and held + size > self._share) and not (self.used and self.used + size > self._total)

    def take(self, owner: str, size: int) -> bool:
        """Count bytes, if they fit."""
        if self.fits(owner, size):
            self.add(owner, size)
            return True
        return False

    def add(self, owner: str, size: int) -> None:
        """Count bytes that exist already, whether or not they fit."""
        self._by_owner[owner] += size
        self.used += size

    def give_back(self, owner: str, size: int) -> None:
        """Stop counting bytes."""
        self.used -= size
        self._by_owner[owner] -= size
        if not self._by_owner[owner]:
            del self._by_owner[owner]
