"""Verb `elect`: runs a command while leading an election. Elections need no key."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError, Limited, OutcomeUnknown, ServerError, Unreachable
from holdfast.client.leases.clock import now
from holdfast.operations.bounds import ELECTION_TTL
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.connection import client_for
from holdfast.transport.cli.hold.supervisor import HeldLease, Signals, Stopped, hold
from holdfast.transport.cli.output import escape, print_message
from holdfast.transport.cli.verbs.verb import Invocation

TTL = ELECTION_TTL.default
RESIGN_SECONDS = 5.0
LONGEST_PAUSE = 2.0
"""Longest time between two campaigns, in seconds: a leader may resign long before its TTL is over."""


def run(invocation: Invocation) -> int:
    """Campaign, run the command, resign; the exit status is the command's."""
    signals = Signals()
    arguments = invocation.arguments
    command, nonblock = arguments.pop("command"), arguments.pop("nonblock")
    client = client_for(arguments)
    arguments["ttl_seconds"] = arguments["ttl_seconds"] or TTL
    answer: dict[str, Any] = {}
    try:
        sent_at, answer = _campaign(client, arguments, wait=not nonblock)
        if answer["status"] == "follower":
            print_message(f"holdfast: {answer['election_id']} is led by {escape(answer['leader']['candidate_id'])}")
            return invocation.held_status(exit_status.HELD)
        return hold(_held_lease(client, answer, arguments["ttl_seconds"], sent_at), command, signals)
    except Stopped as stopped:
        if "leader_token" in answer:
            with suppress(HoldfastError):
                _held_lease(client, answer, arguments["ttl_seconds"], 0.0).release(None)
        return stopped.status


def _campaign(client: Client, arguments: dict[str, Any], *, wait: bool) -> tuple[float, dict[str, Any]]:
    """When the last campaign was sent, and its answer. An error is raised only before the first answer."""
    answered = False
    while True:
        sent_at = now()
        pause = LONGEST_PAUSE
        try:
            answer = client.call("campaign", **arguments)
        except (Limited, OutcomeUnknown, ServerError, Unreachable):
            if not answered:
                raise
        else:
            if answer["status"] == "leader" or not wait:
                return sent_at, answer
            if not answered:
                print_message(f"holdfast: following {escape(answer['leader']['candidate_id'])}")
            answered = True
            pause = min(max(answer["retry_after_ms"] / 1000, 0.1), LONGEST_PAUSE)
        time.sleep(pause)


def _held_lease(client: Client, answer: dict[str, Any], ttl: int, sent_at: float) -> HeldLease:
    proof = {"id": answer["election_id"], "leader_token": answer["leader_token"]}
    renew = {**proof, "ttl_seconds": ttl}

    def renew_leadership(limit: float) -> float:
        client.call("renew_leadership", timeout=limit, deadline=limit, **renew)
        return float(ttl)

    return HeldLease(
        answer["election_id"],
        float(ttl),
        sent_at,
        {
            "HOLDFAST_ELECTION": answer["election_id"],
            "HOLDFAST_TOKEN": str(answer["leader"]["term"]),
            "HOLDFAST_EXPIRES_AT": answer["leader"]["expires_at"],
        },
        renew_leadership,
        lambda _: client.call("resign", timeout=RESIGN_SECONDS, deadline=RESIGN_SECONDS, **proof),
    )
