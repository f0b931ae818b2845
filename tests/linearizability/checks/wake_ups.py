"""Lost wake-ups: a claim that waits for a job must not go away empty-handed while the job is free for long."""

from __future__ import annotations

from tests.linearizability.checks.log_order import Violation
from tests.linearizability.history import FOREVER, Call, History


def check_wake_ups(history: History, *, within_seconds: float) -> int:
    """Raise Violation if a job was free for longer than this while a claim waited that did not get it.

    Returns how many claims waited and got the job.
    """
    free = _free_times(history)
    granted = 0
    for call in history.calls:
        if not call.args.get("wait_seconds") or call.answer is None:
            continue
        granted += call.answer["is"] == "granted"
        if call.answer["is"] == "held":
            _check(call, free.get(call.args["job"], []), within_seconds)
    return granted


def _check(call: Call, free: list[tuple[int, int]], within_seconds: float) -> None:
    waited = call.args["wait_seconds"] * 1e6
    spread = max((call.latest - call.earliest - waited) / 2, 0)  # of what is known of the store's clock, and delays
    began, ended = call.earliest + spread, call.latest - spread
    for start, end in free:
        if min(end, ended) - max(start, began) > within_seconds * 1e6:
            raise Violation(f"the job was free while this claim waited:\n{call}", call.group, [call])


def _free_times(history: History) -> dict[str, list[tuple[int, int]]]:
    """By job: (from, until) of every time in which it had no holder, after its first one."""
    found: dict[str, list[tuple[int, int]]] = {}
    since: dict[str, int] = {}
    for entry in history.log:
        noun, _, job = entry.subject.partition(":")
        if noun == "lease" and "proof" in entry.data:
            if entry.data["proof"] is None:
                since[job] = entry.at
            elif job in since:
                found.setdefault(job, []).append((since.pop(job), entry.at))
    for job, start in since.items():
        found.setdefault(job, []).append((start, FOREVER))
    return found
