"""Which faults happen in a run, and how often: every seed has a mixture of its own."""

from __future__ import annotations

import random

FATES_OF_COMMIT = (
    "crash before", "crash after", "unknown, not applied", "unknown, applied", "unavailable", "run again",
)  # fmt: skip


class Faults:
    """Chances of faults. A mixture that has few kinds of faults reaches states that many of them would hide."""

    def __init__(self, rng: random.Random) -> None:
        self._random = rng.random
        self._choice = rng.choice
        self.overlaps = rng.random() < 0.5
        """Whether transactions of several servers overlap, as on PostgreSQL."""
        self.at_commit = self._pick(0.5, 0.12)
        self.crash = self._pick(0.4, 0.04)
        self.lost = self._pick(0.5, 0.12)
        self.duplicated = self._pick(0.5, 0.12)
        self.notice_lost = self._pick(0.3, 0.5)
        self.client_crash = self._pick(0.4, 0.05)
        self.client_pause = self._pick(0.5, 0.12)
        self.server_pause = self._pick(0.3, 0.05)
        self.outage = self._pick(0.4, 0.05)
        self.clean_stop = self._pick(0.3, 0.04)
        self.clock_step = self._pick(0.3, 0.05)

    def _pick(self, share: float, chance: float) -> float:
        return chance if self._random() < share else 0.0

    def stop(self) -> None:
        """From now on nothing fails."""
        for name, value in vars(self).items():
            if isinstance(value, float):
                setattr(self, name, 0.0)

    def happens(self, chance: float) -> bool:
        return chance > 0.0 and self._random() < chance

    def fate_of_commit(self) -> str:
        """How the next commit fails; empty if it does not."""
        return self._choice(FATES_OF_COMMIT) if self.happens(self.at_commit) else ""

    def loses_notice(self) -> bool:
        return self.happens(self.notice_lost)

    def loses_message(self) -> bool:
        return self.happens(self.lost)
