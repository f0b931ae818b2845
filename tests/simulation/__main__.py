"""Run seeds of the simulation: `python -m tests.simulation 4711 --trace` shows everything that happens in that one."""

from __future__ import annotations

import argparse
import sys

from tests.simulation.virtual_time import simulated_runtime
from tests.simulation.world import BrokenPromise, World


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--to", type=int, help="run every seed up to this one")
    parser.add_argument("--trace", action="store_true", help="show every action")
    options = parser.parse_args()
    with simulated_runtime() as runtime:
        for seed in range(options.seed, (options.to or options.seed) + 1):
            try:
                World(seed, runtime, show if options.trace else None).run()
            except BrokenPromise as broken:
                show(f"seed {seed}: {broken}")
                return 1
    show("no promise was broken")
    return 0


def show(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
