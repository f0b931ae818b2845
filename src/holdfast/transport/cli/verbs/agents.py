"""Verbs for agents in a repository: setup, an overview at the start, and a check for hooks."""

from __future__ import annotations

from holdfast.transport.cli.verbs.verb import HELD_STATUS, Verb, flag, positional, switch

AGENT_VERBS = (
    Verb(
        "init",
        "set up a repository so that its agents use Holdfast",
        (
            positional("FOLDER", "folder", "the repository (.)", required=False),
            flag("--url", "url", "URL", "the server for its agents ($HOLDFAST_URL, or http://127.0.0.1:7700)"),
            switch("-y --yes", "yes", "do not ask before writing"),
            switch("--undo", "undo", "remove what init wrote, and nothing else"),
        ),
        command="commands.init:run",
        calls_server=False,
        more="Writes a marked block into AGENTS.md, an entry into .mcp.json, a skill, and .holdfast.toml with the\n"
        "name under which its files are reserved: origin's owner/name, else the folder's name. Commit these files.\n"
        "Shows the changes and asks first. No key is written: agents read it from HOLDFAST_API_KEY.",
    ),
    Verb(
        "prime",
        "print the rules and the current state for an agent that starts",
        command="commands.overview:prime",
        more="For a hook at the start of an agent's session: the rules, the held jobs and the open tasks.",
    ),
    Verb(
        "guard",
        "succeed only while a job is still yours",
        (
            positional("NAME", "job_id", "name of the job ($HOLDFAST_JOB)", required=False),
            flag("--lease", "lease_id", "ID", "the lease_id from the claim ($HOLDFAST_LEASE, or remembered)"),
            flag("--owner", "owner", "WHO", "your name, as in the claim ($HOLDFAST_OWNER, or user@host)"),
            HELD_STATUS,
        ),
        "heartbeat_job",
        "commands.jobs:guard",
        more="For hooks: sends a heartbeat and prints nothing if it succeeds. Exit status 5, or the value of -E, if\n"
        "the job is lost or the server cannot be asked; some hooks stop an agent only on status 2.",
    ),
    Verb(
        "top",
        "show held jobs and open tasks, and keep updating",
        (
            flag("--every", "every", "SECONDS", "update at least this often (2)", float),
            switch("--once", "once", "print once and exit"),
        ),
        command="commands.overview:top",
    ),
)
