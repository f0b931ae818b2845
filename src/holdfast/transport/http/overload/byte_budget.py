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

    def take(self, owner: str, size: int) -> bool:
        """Count bytes, if they fit. An owner that has none yet gets any size while others leave room."""
        held = self._by_owner[owner]
        if (held and held + size > self._share) or (self.used and self.used + size > self._total):
            return False
        self._by_owner[owner] += size
        self.used += size
        return True

    def give_back(self, owner: str, size: int) -> None:
        """Stop counting bytes."""
        self.used -= size
        self._by_owner[owner] -= size
        if not self._by_owner[owner]:
            del self._by_owner[owner]
