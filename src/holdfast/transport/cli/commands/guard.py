"""`holdfast guard`: a check for hooks. Silent while the job is ours; otherwise it stops whoever asked."""

from __future__ import annotations

import os
from typing import Any

from holdfast.client.errors import HoldfastError
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.call import client_for
from holdfast.transport.cli.http_sender import BadAddress
from holdfast.transport.cli.output import escape, say
from holdfast.transport.cli.verbs.verb import Verb


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Renew, and tell only if that failed: not knowing is reason enough to stop."""
    status = arguments.pop("conflict_status")
    arguments.pop("output")
    job_id = arguments["job_id"] = arguments["job_id"] or os.environ.get("HOLDFAST_JOB")
    if job_id is None or arguments["lease_id"] is None:
        raise BadAddress("no job to guard: name it and its lease, or run inside `holdfast run`")
    try:
        client_for(arguments).call(verb.operation, **arguments)
    except HoldfastError as error:
        say(f"holdfast: stop work on {escape(job_id)}: {escape(error.message)} ({escape(error.code)})")
        return exit_status.STALE if status is None else int(status)
    return exit_status.OK
