"""Verbs for agents in a repository: setup, an overview at the start, and a check for hooks."""

from __future__ import annotations

from holdfast.transport.cli.durations import parse_duration
from holdfast.transport.cli.verbs.verb import Verb, duration, flag, positional, switch

_HOST_NAMES = ("claude-code", "codex", "cursor", "vscode", "gemini", "opencode")
_POLICY = (
    switch("--require-claim", "require_claim", "refuse also files that you have not claimed"),
    flag(
        "--if-unreachable",
        "if_unreachable",
        "WHAT",
        "if the server cannot be asked: allow or refuse (allow)",
        choices=("allow", "refuse"),
    ),
)
"""Flags of what is refused."""

AGENT_VERBS = (
    Verb(
        "init",
        "set up a repository so that its agents use Holdfast",
        (
            positional("FOLDER", "folder", "the repository (.)", required=False),
            flag("--url", "url", "URL", "the server for its agents ($HOLDFAST_URL, or http://127.0.0.1:7700)"),
            flag(
                "--host",
                "hosts",
                "NAME",
                "also for this host, repeatable: claude-code, codex, cursor, vscode,\n"
                "gemini, opencode, or all (those whose files are in the repository)",
                many=True,
            ),
            switch(
                "--require-claim", "require_claim", "hooks refuse a change of a file that its agent has not claimed"
            ),
            switch("-y --yes", "yes", "do not ask before writing"),
            switch("--undo", "undo", "remove what init wrote, and nothing else"),
        ),
        command="commands.init:run",
        calls_server=False,
        more="Writes a marked block into AGENTS.md, .holdfast.toml with the name under which files are reserved\n"
        "(origin's owner/name, else the folder's name), and for each host its MCP server, its hooks (`holdfast hook`)\n"
        "and what else it reads: for Claude Code a skill, and CLAUDE.md if there is one. If no host is in use, init\n"
        "sets up Claude Code. Shows the changes and asks first; all other content of these files stays as it is.\n"
        "Commit them. No key is written.",
    ),
    Verb(
        "prime",
        "print the rules and the current state for an agent that starts",
        command="commands.overview:prime",
        more="For a hook at the start of an agent's session: the rules, the held jobs and the open tasks.",
    ),
    Verb(
        "guard",
        "succeed only if no other agent has claimed these files, or while a job is still yours",
        (
            positional(
                "PATH", "names", "a file to change, or with --lease the name of a job", required=False, many=True
            ),
            switch("--staged", "staged", "the files that the next commit changes"),
            flag("--host", "host", "NAME", "whose JSON is on stdin (found by its event)", choices=_HOST_NAMES),
            *_POLICY,
            flag("--space", "space", "NAME", "the repository ($HOLDFAST_SPACE, or as in .holdfast.toml)"),
            flag("--lease", "lease_id", "ID", "the lease_id of a job ($HOLDFAST_LEASE, or remembered)"),
            flag("--owner", "owner", "WHO", "your name, as in the claim ($HOLDFAST_OWNER, or user@host)"),
            flag("-E", "conflict_status", "NUMBER", "exit status of a refusal (9; job: 5; hook's JSON: 2)", int),
        ),
        command="commands.guard:run",
        more="Refuses a file that another agent's reservation covers, or that is the name of a job that another\n"
        "agent holds, and prints who has it until when. What nobody has claimed is allowed, and so is everything,\n"
        "with a warning, if the server cannot be asked. What you hold is known from the lease ids that this machine\n"
        "remembers for --owner. Without arguments it reads the JSON that the hook of a coding agent gets before a\n"
        "tool changes files, and answers as that host expects. In git's pre-commit hook: `holdfast guard --staged`.\n"
        "With the lease of a job it sends a heartbeat, and prints nothing if the job is still yours: exit status 5 if\n"
        "it is lost or the server cannot be asked.",
    ),
    Verb(
        "hook",
        "answer a hook of a coding agent; `holdfast init` sets it up",
        (
            positional("HOST", "host", "the host: claude-code, codex, cursor, vscode, gemini or opencode"),
            positional("EVENT", "event", "the host's name of the event, such as PreToolUse"),
            *_POLICY,
        ),
        command="commands.hook:run",
        for_people=False,
        usage_status=1,
        more="Reads the host's JSON on stdin and answers on stdout. At the start of a session it tells the model the\n"
        "rules, who owns what, and what the window still holds. Before a tool changes files it asks as\n"
        "`holdfast guard` does. After a tool it renews what the window holds, also what the agent claimed with tools\n"
        "of the MCP server. When the agent stops it leaves a note and a checkpoint where the agent left none, and at\n"
        "the end of the session it releases. Windows of one host are different agents, told apart by its session ids.",
    ),
    Verb(
        "top",
        "show held jobs and open tasks, and keep updating",
        (
            duration("--every", "every", "update at least this often (2)", parse_duration),
            switch("--once", "once", "print once and exit"),
        ),
        command="commands.overview:top",
        more="On a terminal it fills the screen, and q or Esc quits. `waiting` counts the callers that wait for a job\n"
        "at this server process. Elsewhere it prints once.",
    ),
)
