"""Verb `guard`: refuses changes of files that another agent has claimed, or checks that a job is still held."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from holdfast.client.lease_memory import JOB
from holdfast.core.names import normal_job_id
from holdfast.owner import default_owner
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.credentials import address_of
from holdfast.transport.cli.git import ask_git
from holdfast.transport.cli.hooks.claims import describe, find_conflicts
from holdfast.transport.cli.hooks.events import Hook, answer_decision, check_edit
from holdfast.transport.cli.hooks.payload import Payload
from holdfast.transport.cli.hooks.server import Refused, Server, Unanswered
from holdfast.transport.cli.hooks.window import Window, environment_leases, memory_of
from holdfast.transport.cli.hosts.host import BEFORE_TOOL
from holdfast.transport.cli.hosts.table import BY_NAME, HOSTS
from holdfast.transport.cli.output import escape, print_message
from holdfast.transport.cli.repository import Repository, space_or_none
from holdfast.transport.cli.verbs.verb import Invocation, WrongUsage

BLOCKED = 2
"""The exit status by which every host knows that a hook refuses."""


def run(invocation: Invocation) -> int:
    """Guard the job of a lease, git's staged files, the files in a hook's JSON, or paths."""
    arguments = invocation.arguments
    names: list[str] = arguments["names"]
    if arguments["staged"]:
        return _guard_paths(invocation, _inside(_staged_files()))
    job_id, lease_id = _job_and_lease(names, arguments)
    if lease_id is not None:
        return _guard_job(invocation, job_id, lease_id)
    if names:
        return _guard_paths(invocation, [Repository().file(name) for name in names])
    text = "" if sys.stdin.isatty() else sys.stdin.read()
    if not text.strip():
        raise WrongUsage("nothing to guard: name files, use --staged, write a hook's JSON to stdin, or give --lease")
    try:
        return _guard_hook(invocation, Payload(text))
    except ValueError as error:
        raise WrongUsage(f"stdin is no JSON of a hook: {error}") from error


def _job_and_lease(names: list[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    """The job to guard and its lease: as given, of `holdfast run` around this, or remembered."""
    running = os.environ.get("HOLDFAST_JOB")
    job_id = normal_job_id(names[0]) if names else running or ""
    if len(names) > 1 or not job_id:
        if arguments["lease_id"] is not None:
            raise WrongUsage("--lease needs the name of its job, and only one")
        return "", None
    if arguments["lease_id"] is not None:
        return job_id, str(arguments["lease_id"])
    if running in {None, job_id} and os.environ.get("HOLDFAST_LEASE"):
        return job_id, os.environ["HOLDFAST_LEASE"]
    memory = memory_of(address_of(arguments["url"]), arguments["owner"] or default_owner())
    return job_id, memory.find(JOB, job_id)


def _guard_job(invocation: Invocation, job_id: str, lease_id: str) -> int:
    """Check that a job is still held: prints nothing if it is. Any failed heartbeat means stop."""
    from holdfast.client.errors import HoldfastError
    from holdfast.transport.cli.connection import client_for
    from holdfast.transport.cli.held_leases import remembering

    given = invocation.arguments
    arguments = {"job_id": job_id, "lease_id": lease_id, "owner": given["owner"]}
    arguments |= {"url": given["url"], "key_file": given["key_file"]}
    renewal = invocation._replace(arguments=arguments, verb=invocation.verb._replace(operation="heartbeat_job"))
    try:
        with remembering(renewal) as remember:
            remember(client_for(arguments).call("heartbeat_job", **arguments))
    except HoldfastError as error:
        print_message(f"holdfast: stop work on {escape(job_id)}: {escape(error.message)} ({escape(error.code)})")
        return invocation.held_status(exit_status.STALE)
    return exit_status.OK


def _guard_paths(invocation: Invocation, found: list[str]) -> int:
    """Print what keeps the agent from changing these files, relative to the root."""
    arguments, paths = invocation.arguments, list(dict.fromkeys(found))
    if not paths:
        return exit_status.OK
    try:
        space = space_or_none(arguments["space"])
        server = Server(arguments["url"], arguments["key_file"])
        own = memory_of(server.url, arguments["owner"] or default_owner()).all() | environment_leases()
        required = bool(arguments["require_claim"])
        conflicts = find_conflicts(server, space, paths, own, require_claim=required)
    except (Unanswered, Refused) as error:
        print_message(f"holdfast: cannot check who has claimed these files: {escape(str(error))}")
        if arguments["if_unreachable"] == "refuse":
            return invocation.held_status(exit_status.UNREACHABLE)
        return exit_status.OK
    if not conflicts:
        return exit_status.OK
    print_message(f"holdfast: {describe(conflicts)}")
    return invocation.held_status(exit_status.NOT_ALLOWED)


def _guard_hook(invocation: Invocation, payload: Payload) -> int:
    """Answer a host before one of its tools changes a file, on stdout in its own form and by the exit status."""
    arguments = invocation.arguments
    events = {event.name: host for host in reversed(HOSTS) for event in host.hooks.events if event.kind == BEFORE_TOOL}
    host = BY_NAME[arguments["host"]] if arguments["host"] else events.get(payload.event, HOSTS[0])
    style, event = host.hooks.answer, payload.event or "PreToolUse"
    refuse = arguments["if_unreachable"] == "refuse"
    try:
        server = Server(arguments["url"], arguments["key_file"])
    except Unanswered as error:
        print_message(f"holdfast: {escape(str(error))}")
        return BLOCKED if refuse else exit_status.OK
    window = Window(server.url, host.name, payload.session)
    window.memories += [memory_of(server.url, arguments["owner"])] if arguments["owner"] else []
    hook = Hook(style, event, payload, server, window, bool(arguments["require_claim"]), refuse_unreachable=refuse)
    decision = check_edit(hook)
    if not decision.text:
        return exit_status.OK
    print(json.dumps(answer_decision(decision, style, event)))
    print_message(f"holdfast: {decision.text}")
    return invocation.held_status(BLOCKED) if decision.refused else exit_status.OK


def _inside(names: list[str]) -> list[str]:
    """Those of the files that are below the root: a repository may have its space in a folder."""
    repository, found = Repository(), []
    for name in names:
        with suppress(WrongUsage):
            found.append(repository.file(name))
    return found


def _staged_files() -> list[str]:
    """Files that the next commit changes, with both names of a renamed one."""
    folder = Path.cwd()
    top = ask_git(folder, "rev-parse", "--show-toplevel")
    changed = ask_git(folder, "diff", "--cached", "--name-only", "--no-renames", "-z")
    if top is None or changed is None:
        raise WrongUsage("git cannot tell what is staged: is this a repository?")
    return [f"{top.rstrip(chr(10))}/{name}" for name in changed.split("\0") if name]
