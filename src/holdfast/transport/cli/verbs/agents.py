"""Verbs for agents in a repository: how they learn of Holdfast, and how they stop when a job is no longer theirs."""

from __future__ import annotations

from holdfast.transport.cli.verbs.jobs import HELD_STATUS
from holdfast.transport.cli.verbs.verb import Verb, flag, switch, word

REPOSITORY_VERBS = (
    Verb(
        "init",
        "teach the agents of a repository to use Holdfast",
        (
            word("FOLDER", "folder", "the repository (.)", required=False),
            flag("--url", "url", "URL", "which server its agents use ($HOLDFAST_URL, or http://127.0.0.1:7700)"),
            switch("-y --yes", "yes", "do not ask"),
            switch("--undo", "undo", "take out what init wrote, and nothing else"),
        ),
        module="commands.init",
        asks=False,
        more="Writes a marked block into AGENTS.md, an entry into .mcp.json, and a skill. Shows what would change and\n"
        "asks first. No key is written: agents find it in HOLDFAST_API_KEY.",
    ),
    Verb(
        "prime",
        "what an agent should know as it begins",
        module="commands.prime",
        more="The rules, who owns what, and how much work waits: for a hook at the start of an agent's session.",
    ),
    Verb(
        "guard",
        "go on only if a job is still ours",
        (
            word("NAME", "job_id", "which job ($HOLDFAST_JOB)", required=False),
            flag("--lease", "lease_id", "ID", "the proof that the claim answered ($HOLDFAST_LEASE)"),
            HELD_STATUS,
        ),
        "heartbeat_job",
        "commands.guard",
        more="For hooks: a heartbeat that says nothing while all is well. Exit status 5, or the one that -E names,\n"
        "when the job is lost or that cannot be known; some hooks stop an agent only on 2.",
    ),
    Verb(
        "top",
        "who owns what, and how much waits, again and again",
        (flag("--every", "every", "SECONDS", "how often (2)", float), switch("--once", "once", "only once")),
        module="commands.top",
    ),
)
