"""The whole check of a history: the order of the log, tokens, the search, and whether the run saw enough."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.linearizability.checks.log_order import Violation, check_log_order
from tests.linearizability.checks.search import TooHard, has_order, is_read, not_applied
from tests.linearizability.checks.tried_claims import with_earlier_tries
from tests.linearizability.history import Call, History, describe

SHOWN_CALLS = 60


def check(history: History, *, searched_calls: int = 400) -> Counter[str]:
    """Check a history and count what it saw. A failure prints its shortest part and names the file with all of it.

    Groups of up to `searched_calls` calls are searched without the log as well.
    """
    history = with_earlier_tries(history)
    try:
        check_log_order(history)
        check_tokens(history.calls)
        seen = what_happened(history)
        seen["searched"] = _search_all(history, searched_calls)
    except Violation as violation:
        raise AssertionError(report(history, violation)) from None
    return seen


def check_answers(calls: list[Call], *, searched_calls: int = 400) -> Counter[str]:
    """The same for a store whose log cannot be read: with the answers alone."""
    history = History(calls)
    try:
        check_tokens(calls)
        seen = what_happened(history)
        seen["searched"] = _search_all(history, searched_calls)
    except Violation as violation:
        raise AssertionError(report(history, violation)) from None
    return seen


def _search_all(history: History, searched_calls: int) -> int:
    """The number of calls whose order was found without the log."""
    groups = history.groups().items()
    return sum(_search(group, calls) for group, calls in groups if len(calls) <= searched_calls)


def _search(group: str, calls: list[Call]) -> int:
    """The number of calls whose order was found; 0 if the search gave up."""
    try:
        if has_order(calls):
            return len(calls)
    except TooHard:
        return 0
    raise Violation("no order of the calls explains all answers", group, calls)


def check_tokens(calls: list[Call]) -> None:
    """Tokens of grants are never used again, and grow in real time across all names."""
    grants = [(call, token) for call in calls for token in granted_tokens(call)]
    used: dict[int, Call] = {}
    for call, token in grants:
        if token in used:
            raise Violation(f"token {token} was granted twice", call.group, [used[token], call])
        used[token] = call
    returned = sorted(grants, key=lambda grant: grant[0].returned)
    largest: tuple[int, Call | None] = (0, None)
    place = 0
    for call, token in sorted(grants, key=lambda grant: grant[0].called):
        while place < len(returned) and returned[place][0].returned < call.called:
            before, its_token = returned[place]
            largest = max(largest, (its_token, before), key=lambda each: each[0])
            place += 1
        if token < largest[0] and largest[1] is not None:
            raise Violation(f"token {token} was granted after {largest[0]}", call.group, [largest[1], call])


def granted_tokens(call: Call) -> list[int]:
    """The tokens that an answer grants."""
    if call.answer is None or "token" not in call.answer:
        return []
    return [call.answer["token"], *(held["token"] for held in call.answer.get("holds", {}).values())]


def what_happened(history: History) -> Counter[str]:
    """How often each kind of thing happened: a run in which nothing went wrong proves little."""
    seen: Counter[str] = Counter(calls=len(history.calls))
    logged = {entry.request_id for entry in history.log}
    for call in history.calls:
        if call.answer is None and not is_read(call):
            seen["unknown"] += 1
            seen["unknown and applied" if call.id in logged else "unknown and not applied"] += 1
        elif call.answer is not None:
            seen[call.answer["is"]] += 1
            seen["resumed with holdings"] += bool(call.answer.get("holds"))
    held: dict[str, str | None] = {}
    for entry in history.log:
        seen[entry.kind] += 1
        owner = entry.data.get("owner", entry.data.get("worker"))
        if entry.kind in {"lease.claimed", "task.claimed"}:
            seen["takeover"] += held.get(entry.subject) not in {None, owner}
            held[entry.subject] = None
        elif entry.kind in {"lease.expired", "task.expired"}:
            held[entry.subject] = (entry.data.get("ended") or {}).get("owner", "somebody")
    return seen


def require(seen: Counter[str], *kinds: str) -> None:
    """Print what the run saw, and fail if it never saw one of these."""
    counts = " ".join(f"{kind}={count}" for kind, count in sorted(seen.items()))
    sys.stdout.write(
        f"{seen['calls']:,} calls, {seen['searched']:,} of them searched: {counts}\n"
    )  # pytest -rP shows it
    missing = [kind for kind in kinds if not seen[kind]]
    assert not missing, f"a run without {missing} proves little: {dict(seen)}"


# -- failures --------------------------------------------------------------------------------------------------------


def report(history: History, violation: Violation) -> str:
    """The violation with the shortest part of the history that shows it, and the file that has all of it."""
    with tempfile.NamedTemporaryFile(prefix="holdfast-history-", suffix=".jsonl", delete=False) as file:
        path = Path(file.name)
    history.save(path)
    calls = shortest_part(violation.calls)
    lines = [f"{violation}", f"The whole history is in {path}.", f"The part that shows it, in group {violation.group}:"]
    lines += [describe(calls[-SHOWN_CALLS:])]
    if violation.log:
        lines += ["Events:", *map(str, violation.log)]
    return "\n".join(lines)


def shortest_part(calls: list[Call]) -> list[Call]:
    """The shortest beginning that has no order, without calls that are not needed for that; all calls if it has one."""
    if not _fails(calls):
        return calls
    returns = sorted(call.returned for call in calls if call.answer is not None)
    low, high = 0, len(returns) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _fails(_until(calls, returns[middle])) else (middle + 1, high)
    part = _until(calls, returns[low])
    for call in list(part):
        rest = [other for other in part if other is not call]
        if _changes_nothing(call) and _fails(rest):
            part = rest
    return part


def _until(calls: list[Call], moment: int) -> list[Call]:
    """The calls made until then; those that were answered later have no answer yet."""
    return [call if call.returned <= moment else Call(*_asked(call)) for call in calls if call.called <= moment]


def _asked(call: Call) -> tuple[object, ...]:
    return call.id, call.process, call.group, call.verb, call.args, call.called, call.earliest


def _changes_nothing(call: Call) -> bool:
    refused = {"held", "lost", "empty", "taken", "session_over", "offer_refused", "not_reserved"}
    return call.answer is not None and (is_read(call) or not_applied(call) or call.answer["is"] in refused)


def _fails(calls: list[Call]) -> bool:
    try:
        return not has_order(calls, max_steps=100_000)
    except TooHard:
        return False
