"""Lease ids that verbs remember from one call to the next, so that `holdfast release NAME` needs no --lease."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.client.errors import LeaseLost
from holdfast.client.lease_memory import JOB, LeaseMemory, owners_of
from holdfast.core.names import normal_job_id
from holdfast.owner import default_owner
from holdfast.transport.cli.credentials import address_of
from holdfast.transport.cli.output import escape, print_message
from holdfast.transport.cli.verbs.verb import Invocation, Verb
from holdfast.transport.lease_uses import CLAIMS, HOLDERS, Use, remember_claim, remember_write

Arguments = dict[str, Any]


def find_lease(operation: str, arguments: Arguments) -> str | None:
    """The remembered lease id for a verb of a holder, if there is one."""
    use = HOLDERS.get(operation)
    if use is None or arguments.get(use.id_field) is None:
        return None
    return _memory(use, arguments).find(use.kind, _row_id(use, arguments))


def whose_lease(verb: Verb, arguments: Arguments) -> str | None:
    """Which other name claimed it with this program on this machine, and what to type; None if none did.

    Its lease is not used unasked: another agent of the same user may be at work under that name.
    """
    use = HOLDERS.get(verb.operation)
    flags = [argument.flags[-1] for argument in verb.arguments if use and argument.field in {use.owner_field, "owner"}]
    if use is None or not flags or arguments.get(use.id_field) is None:
        return None
    owners = owners_of(address_of(arguments.get("url")), use.kind, _row_id(use, arguments))
    if not owners:
        return None
    me = arguments.get(use.owner_field) or default_owner()
    hint = f"if that is you, add {flags[0]} {shlex.quote(owners[0])}"
    return escape(f"{me} claimed no such {use.kind} with this program on this machine, but {owners[0]} did; {hint}")


@contextmanager
def remembering(invocation: Invocation) -> Iterator[Callable[[Arguments], None]]:
    """A function that remembers a claim or a renewal by its answer; a lease that is over is forgotten."""
    operation, arguments = invocation.verb.operation, invocation.arguments
    use = CLAIMS.get(operation) or HOLDERS.get(operation)
    if use is None:
        yield lambda _: None
        return
    memory = _memory(use, arguments)
    if operation in HOLDERS:
        arguments.pop("owner", None)  # it only says whose memory to use
    row_id, lease_id = _row_id(use, arguments), arguments.get("lease_id")

    def remember(answer: Arguments) -> None:
        if operation in CLAIMS:
            remember_claim(memory, use, answer)
        elif row_id and lease_id is not None:
            remember_write(memory, use, row_id, lease_id, answer)

    try:
        yield remember
    except LeaseLost:
        if row_id and lease_id is not None:
            memory.forget(use.kind, row_id, lease_id)
        raise


def _row_id(use: Use, arguments: Arguments) -> str:
    """The id as the server answers it, which has job ids in normal form; empty if there is none."""
    given: str = arguments.get(use.id_field) or ""
    return normal_job_id(given) if use.kind == JOB else given


def _memory(use: Use, arguments: Arguments) -> LeaseMemory:
    owner = arguments.get(use.owner_field) or default_owner()
    return LeaseMemory(address_of(arguments.get("url")), owner, _report)


def _report(problem: str) -> None:
    print_message(f"holdfast: {escape(problem)}")
