"""Verb `reserve`: reserves files, alone or while a command runs."""

from __future__ import annotations

from typing import Any

from holdfast.client.client import Client
from holdfast.operations import bounds
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.connection import client_for
from holdfast.transport.cli.display.answers import print_answer
from holdfast.transport.cli.held_leases import remembering
from holdfast.transport.cli.hold.claimed import RELEASE_SECONDS, Claim, run_claimed
from holdfast.transport.cli.hold.supervisor import HeldLease, Signals
from holdfast.transport.cli.long_wait import call_until, is_granted
from holdfast.transport.cli.output import escape, print_message
from holdfast.transport.cli.repository import Repository, space_of
from holdfast.transport.cli.table import RESERVATION_LEASE
from holdfast.transport.cli.verbs.verb import Invocation

MAX_NAMED = 5
"""Paths and owners in a message about held files."""


def run(invocation: Invocation) -> int:
    """Reserve the files; with a command, run it, then release them."""
    arguments = invocation.arguments
    command, wait, nonblock = (arguments.pop(field) for field in ("command", "wait_seconds", "nonblock"))
    signals = Signals() if command else None
    repository = Repository()
    arguments["space"] = space_of(arguments["space"])
    arguments["paths"] = [repository.pattern(path) for path in arguments["paths"]]
    arguments["mode"] = "shared" if arguments.pop("shared") else "exclusive"
    operation = invocation.verb.operation
    if signals is None:
        with remembering(invocation) as remember:
            answer = call_until(client_for(arguments), operation, arguments, wait or 0.0, is_granted)
            remember(answer)
        return print_reserved(answer, invocation)
    client = client_for(arguments)
    # The command's reservation is renewed for it, so it can end soon after both are gone.
    arguments["ttl_seconds"] = arguments["ttl_seconds"] or bounds.JOB_TTL.default
    claim = Claim(
        client, operation, arguments, describe_conflicts, lambda answer, sent_at: _held_lease(client, answer, sent_at)
    )
    return run_claimed(claim, command, signals, invocation, wait=0 if nonblock else wait)


def print_reserved(answer: dict[str, Any], invocation: Invocation) -> int:
    """Print an answer, and on stderr who holds which of the files; the exit status."""
    if answer["status"] == "held":
        paths, owners = describe_conflicts(answer)
        print_message(f"holdfast: {escape(paths)} is held by {escape(owners)}")
    print_answer(answer, invocation)
    return exit_status.of_claim(answer, invocation.held_status(exit_status.HELD))


def describe_conflicts(answer: dict[str, Any]) -> tuple[str, str]:
    """The caller's paths that overlap those of others, and the others."""
    paths = dict.fromkeys(pair["yours"] for conflict in answer["conflicts"] for pair in conflict["paths"])
    owners = dict.fromkeys(_describe_owner(conflict) for conflict in answer["conflicts"])
    return _join(list(paths)), _join(list(owners))


def _describe_owner(conflict: dict[str, Any]) -> str:
    waiting = ", who waits for it too" if conflict["status"] == "waiting" else ""
    return f"{conflict['owner']} ({', '.join(dict.fromkeys(each['theirs'] for each in conflict['paths']))}{waiting})"


def _join(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def _held_lease(client: Client, answer: dict[str, Any], sent_at: float) -> HeldLease:
    proof = {"id": answer["reservation_id"], "lease_id": answer["lease_id"]}

    def renew(limit: float) -> float:
        return float(client.call("heartbeat_reservation", timeout=limit, deadline=limit, **proof)["expires_in_seconds"])

    return HeldLease(
        _join(answer["paths"]),
        float(answer["ttl_seconds"]),
        sent_at,
        {
            "HOLDFAST_RESERVATION": answer["reservation_id"],
            RESERVATION_LEASE: answer["lease_id"],
            "HOLDFAST_TOKEN": str(answer["token"]),
            "HOLDFAST_EXPIRES_AT": answer["expires_at"],
        },
        renew,
        lambda _: client.call("release_files", timeout=RELEASE_SECONDS, deadline=RELEASE_SECONDS, **proof),
    )
