"""`holdfast elect`: leads a group for as long as a command runs. Elections need no key."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError, Limited, ServerError, Unreachable
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.call import client_for
from holdfast.transport.cli.hold.renewal import clock
from holdfast.transport.cli.hold.supervisor import Holding, Signals, Stopped, hold
from holdfast.transport.cli.output import escape, say
from holdfast.transport.cli.verbs.verb import Verb

TTL = 30
RESIGN_SECONDS = 5.0
LONGEST_PAUSE = 2.0
"""Seconds between two tries: a leader may resign long before its time is over."""


def run(verb: Verb, arguments: dict[str, Any]) -> int:  # noqa: ARG001 - every room has this shape
    """Campaign, run, resign; the exit status is the command's."""
    signals = Signals()
    command, conflict_status = arguments.pop("command"), arguments.pop("conflict_status")
    nonblock = arguments.pop("nonblock")
    arguments.pop("output")
    client = client_for(arguments)
    arguments["ttl_seconds"] = arguments["ttl_seconds"] or TTL
    answer: dict[str, Any] = {}
    try:
        sent_at, answer = _campaign(client, arguments, patient=not nonblock)
        if answer["status"] == "follower":
            say(f"holdfast: {answer['election_id']} is led by {escape(answer['leader']['candidate_id'])}")
            return exit_status.HELD if conflict_status is None else int(conflict_status)
        return hold(_holding(client, answer, arguments["ttl_seconds"], sent_at), command, signals)
    except Stopped as stopped:
        if "leader_token" in answer:
            with suppress(HoldfastError):
                _holding(client, answer, arguments["ttl_seconds"], 0.0).release()
        return stopped.status


def _campaign(client: Client, arguments: dict[str, Any], *, patient: bool) -> tuple[float, dict[str, Any]]:
    """When the last campaign was sent, and what came of it. The first trouble is told, later ones are waited out."""
    answered = False
    while True:
        sent_at = clock()
        pause = LONGEST_PAUSE
        try:
            answer = client.call("campaign", **arguments)
        except (Limited, ServerError, Unreachable):
            if not answered:
                raise
        else:
            if answer["status"] == "leader" or not patient:
                return sent_at, answer
            if not answered:
                say(f"holdfast: following {escape(answer['leader']['candidate_id'])}")
            answered = True
            pause = min(max(answer["retry_after_ms"] / 1000, 0.1), LONGEST_PAUSE)
        time.sleep(pause)


def _holding(client: Client, answer: dict[str, Any], ttl: int, sent_at: float) -> Holding:
    proof = {"id": answer["election_id"], "leader_token": answer["leader_token"]}
    renew = {**proof, "ttl_seconds": ttl}
    return Holding(
        answer["election_id"],
        float(ttl),
        sent_at,
        {
            "HOLDFAST_ELECTION": answer["election_id"],
            "HOLDFAST_TOKEN": str(answer["leader"]["term"]),
            "HOLDFAST_EXPIRES_AT": answer["leader"]["expires_at"],
        },
        lambda limit: client.call("renew_leadership", timeout=limit, deadline=limit, **renew),
        partial(client.call, "resign", timeout=RESIGN_SECONDS, deadline=RESIGN_SECONDS, **proof),
    )
