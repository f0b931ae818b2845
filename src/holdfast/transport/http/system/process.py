"""What a process knows of itself only at the moment it looks: how many wait, how much memory it has."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from holdfast.engine.engine import Engine
from holdfast.telemetry import metric_names


def sample(engine: Engine) -> None:
    """Write it on our row of the board."""
    engine.sample()
    engine.board.set(metric_names.WORKERS, to=1)
    engine.board.set(metric_names.MEMORY, to=memory_bytes())


def memory_bytes() -> int:
    """What this process has in RAM; where the system does not tell that, the most it ever had."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
