"""Measured values: one per round for every name, reported as medians and as medians of ratios within a round."""

from __future__ import annotations

import math
import statistics

OLDER = "older."
"""Begins the names of the figures of the older commit."""


class Figures:
    """All values of a run by name, such as `sqlite.claim.128.cpu`. Times are in seconds."""

    def __init__(self, rounds: dict[str, list[float]] | None = None) -> None:
        self.rounds = rounds or {}

    def add(self, name: str, value: float) -> None:
        """Keep the value of one more round."""
        self.rounds.setdefault(name, []).append(value)

    def __contains__(self, name: object) -> bool:
        return name in self.rounds

    def median(self, name: str) -> float:
        """The median over the rounds; NaN if it was not measured."""
        return statistics.median(self.rounds.get(name, [math.nan]))

    def ratio(self, name: str, base: str) -> float:
        """The median of the ratios within each round, because the machine's speed differs between rounds."""
        values, bases = self.rounds.get(name, []), self.rounds.get(base, [])
        ratios = [value / of for value, of in zip(values, bases, strict=False) if of]
        return statistics.median(ratios) if ratios else math.nan
