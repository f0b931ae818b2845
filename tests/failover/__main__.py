"""Command line of the failover drill: `scripts/failover-drill` starts it in namespaces of its own."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from tests.failover.cluster import DATA, ETCD_DATA, NODES, SOCKET
from tests.failover.drill import FAULTS, Drill, Result
from tests.failover.network import Network
from tests.failover.servers import SERVERS

SHOWN_PROBLEMS = 10
HEADINGS = (
    "fault", "replication", "rounds", "acknowledged", "unknown", "lost", "tokens reused", "two holders",
    "gaps in the log", "leases lost in the outage", "longest outage",
)  # fmt: skip


def main() -> int:
    """Run the drill and print its table; the exit status is 1 if a promise was broken."""
    arguments = parse()
    network = Network([*NODES, *SERVERS])
    results: list[Result] = []
    try:
        results.extend(run(network, fault, arguments) for fault in arguments.fault or FAULTS)
    finally:  # a drill that fails shows what it has found until then
        print(table(results, "asynchronous" if arguments.asynchronous else "synchronous"))
    broken = [problem for result in results for problem in problems(result)]
    for problem in broken[:SHOWN_PROBLEMS]:
        print(problem, file=sys.stderr)
    return 0 if arguments.asynchronous or not broken else 1


def run(network: Network, fault: str, arguments: argparse.Namespace) -> Result:
    """All rounds of one fault, with a cluster of their own."""
    folder = arguments.folder / fault
    try:
        drill = Drill(network, arguments.folder / "patroni", folder, synchronous=not arguments.asynchronous)
        result = drill.run(fault, arguments.rounds, lambda line: print(line, file=sys.stderr))
        drill.stop()
    finally:
        if arguments.logs is not None:
            shutil.copytree(folder, arguments.logs / fault, ignore=shutil.ignore_patterns(ETCD_DATA, DATA, SOCKET))
    return result


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser("failover-drill", description="See docs/guides/failover.md.")
    parser.add_argument(
        "--fault", action="append", choices=list(FAULTS), help="default: each of them, one after the other"
    )
    parser.add_argument("--rounds", type=int, default=10, help="how often each fault is repeated (default: 10)")
    parser.add_argument("--asynchronous", action="store_true", help="show what asynchronous replication loses")
    parser.add_argument("--logs", type=Path, help="a new folder for the logs of Patroni, PostgreSQL, etcd and Holdfast")
    parser.add_argument("--folder", type=Path, required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def problems(result: Result) -> list[str]:
    """Every promise that was broken."""
    found = result.findings.problems()
    if result.lost_leases:
        found.append(f"{result.lost_leases} holders lost their leases in an outage: they got no grace")
    found += [f"unexpected answer: {answer}" for answer in result.unexpected]
    if result.differences:
        found.append(f"the log does not agree with the rows: {result.differences}")
    return [f"{result.fault}: {line}" for line in found]


def table(results: list[Result], replication: str) -> str:
    """The results in Markdown."""
    rows: list[tuple[object, ...]] = [HEADINGS, ("---",) * len(HEADINGS)]
    for result in results:
        findings = result.findings
        rows.append(
            (
                result.fault, replication, result.rounds, f"{findings.acknowledged:,}", f"{findings.unknown:,}",
                f"{len(findings.lost):,}", f"{len(findings.tokens_reused):,}", f"{len(findings.two_holders):,}",
                len(findings.gaps), result.lost_leases, f"{result.longest_outage:.1f} s",
            )
        )  # fmt: skip
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
