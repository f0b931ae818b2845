"""A board for all workers of one parent: a piece of memory with a row for each, and one for those who have died.

The memory has no name, so nothing is left of it when the last process has ended, however it ended. And it is no hole
in a file: a page that is first touched when the disk is full would end the process that touches it, with a signal.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from array import array
from collections.abc import Callable
from typing import TypeVar

from holdfast.telemetry.kinds import Gauge
from holdfast.telemetry.metric_names import HOLDFAST_API
from holdfast.telemetry.registry import CELL, Minute, Registry, merged, span

KEPT_MINUTES = 10_080
TRIES = 1_000
BOARD_FD, BOARD_ROW = "HOLDFAST_BOARD_FD", "HOLDFAST_BOARD_ROW"

T = TypeVar("T")

_HEAD = 4
_STARTED, _TURN, _MINUTES = range(3)
"""The head: when the parent started; a number that is odd while it moves rows; minutes written."""
_MINUTE = 4
_DEPARTED = 0
"""The row of those who have died."""


class SharedRegistry:
    """The memory that a parent makes and its workers share."""

    def __init__(self, descriptor: int, workers: int) -> None:
        self.descriptor = descriptor
        self._workers = workers
        self._map = mmap.mmap(descriptor, _size(workers))
        self._all: memoryview[float] = memoryview(self._map).cast("d")
        self.started = self._all[_STARTED]

    @classmethod
    def made(cls, workers: int) -> SharedRegistry:
        """New memory, for a parent; the descriptor is all there is of it."""
        board = cls(_memory(_size(workers)), workers)
        board._all[_STARTED] = board.started = time.monotonic()
        return board

    def row(self, worker: int) -> memoryview[float]:
        """The cells of a worker; they are its own."""
        return self._row(worker + 1)

    def _row(self, number: int) -> memoryview[float]:
        first = _HEAD + number * HOLDFAST_API.size
        return self._all[first : first + HOLDFAST_API.size]

    def rows(self) -> list[list[float]]:
        """Every row. While the parent moves a dead worker's numbers, look again: they must not be seen twice."""
        return self._steady(lambda: [list(self._row(number)) for number in range(self._workers + 1)])

    def bury(self, worker: int) -> None:
        """A worker has died: what it counted stays, what it had is gone. Only the parent does this."""
        dead, departed = self.row(worker), self._row(_DEPARTED)
        together = merged([list(departed), list(dead)])
        self._all[_TURN] += 1
        for metric in HOLDFAST_API.metrics:
            for place in span(metric):
                if not isinstance(metric, Gauge):
                    departed[place] = together[place]
                dead[place] = 0.0
        self._all[_TURN] += 1

    def write_minute(self, minute: Minute) -> None:
        """One more minute is over. Only the parent writes this."""
        count = int(self._all[_MINUTES])
        self._all[_TURN] += 1
        values = array("d", [minute.started, minute.requests, minute.acquires, minute.releases])
        first = self._minutes_at(count % KEPT_MINUTES)
        self._all[first : first + _MINUTE] = memoryview(values)
        self._all[_MINUTES] = count + 1
        self._all[_TURN] += 1

    def minutes(self) -> list[Minute]:
        """Those that are over, oldest first."""
        return self._steady(self._kept_minutes)

    def _kept_minutes(self) -> list[Minute]:
        count, found = int(self._all[_MINUTES]), []
        for number in range(max(0, count - KEPT_MINUTES), count):
            first = self._minutes_at(number % KEPT_MINUTES)
            found.append(Minute(*map(int, self._all[first : first + _MINUTE])))
        return found

    def _steady(self, look: Callable[[], T]) -> T:
        """What was there while nothing moved. A parent killed in the middle of a move must not hold anybody up."""
        for _ in range(TRIES):
            turn = self._all[_TURN]
            found = look()
            if turn % 2 == 0 and turn == self._all[_TURN]:
                return found
            time.sleep(0)
        return look()

    def _minutes_at(self, number: int) -> int:
        return _HEAD + (self._workers + 1) * HOLDFAST_API.size + number * _MINUTE


def _memory(size: int) -> int:
    """A descriptor of so many zeros: memory alone where there is such a thing, else a file that is all there."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("holdfast-board")
        os.ftruncate(descriptor, size)
        return descriptor
    try:
        with tempfile.TemporaryFile() as file:
            file.write(bytes(size))
            file.flush()
            os.fsync(file.fileno())  # whatever has no room is refused here
            return os.dup(file.fileno())
    except OSError as error:
        place = tempfile.gettempdir()
        raise OSError(error.errno, f"no room for the numbers of the workers: {error.strerror}", place) from error


def _size(workers: int) -> int:
    return CELL * (_HEAD + (workers + 1) * HOLDFAST_API.size + KEPT_MINUTES * _MINUTE)


def inherited(workers: int) -> Registry:
    """The board of this process: its row of the memory that its parent made, or one of its own."""
    descriptor, row = os.environ.get(BOARD_FD), os.environ.get(BOARD_ROW)
    if descriptor is None or row is None:
        return Registry()
    shared = SharedRegistry(int(descriptor), workers)
    return Registry(shared.row(int(row)), shared)
