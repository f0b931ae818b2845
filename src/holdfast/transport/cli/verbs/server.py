"""Verbs for operators: run a server, verify and move its store, and check the setup."""

from __future__ import annotations

from holdfast.transport.cli.verbs.verb import OUTPUT, Argument, Verb, flag, positional, switch

TASK_FORMATS = ("jsonl", "csv")
_STORE = "sqlite:///path.db (four slashes for an absolute path), postgresql://… or memory:"


def _setting(flags: str, value: str, help: str) -> Argument:
    return flag(flags, flags.removeprefix("--").replace("-", "_"), value, help)


_FROM = _setting("--store", "URL", "the store, as for serve")
_REPLACE = switch("--replace", "replace", "replace what is there")
_COPY_FLAGS = (
    OUTPUT,
    switch("--no-verify", "no_verify", "do not compare the copy's rows with its log"),
)

SERVER_VERBS = (
    Verb(
        "serve",
        "start a server",
        (
            _setting("--host", "ADDRESS", "address to listen on (127.0.0.1)"),
            _setting("--port", "NUMBER", "port to listen on (7700); 0 picks a free one"),
            _setting("--store", "URL", _STORE),
            _setting("--plan", "ID", "plan of accounts without a purchase (self-hosted: no limits)"),
            _setting("--plans", "FILE", "TOML file with plans"),
            _setting("--workers", "NUMBER", "number of processes (chosen by store and processor cores)"),
            _setting("--public-url", "URL", "https://host[/path] under which clients reach the server"),
            _setting(
                "--trusted-proxies",
                "ADDRESSES",
                "proxies whose X-Forwarded-For and -Proto are trusted: addresses or\nCIDR blocks, separated by commas",
            ),
            _setting("--tls-cert", "FILE", "serve https with this certificate (PEM)"),
            _setting("--tls-key", "FILE", "private key of the certificate (PEM)"),
            switch("--allow-insecure-http", "allow_insecure_http", "accept keys over plain HTTP from other machines"),
        ),
        command="commands.serve:run",
        calls_server=False,
        more="Without flags: an SQLite file in your state folder, on 127.0.0.1:7700. Every flag can also be set in\n"
        "the environment: HOLDFAST_PORT for --port. Secrets are read only from the environment: HOLDFAST_ROOT_KEY,\n"
        "HOLDFAST_ADMIN_KEY, HOLDFAST_STATIC_TOKENS, HOLDFAST_STATIC_TOKENS_FILE.",
    ),
    Verb(
        "verify",
        "compare the rows of a store with its event log",
        (
            _setting("--store", "URL", "the store, as for serve"),
            OUTPUT,
        ),
        command="commands.verify:run",
        calls_server=False,
        more="Folds all events and reports every difference to the rows. Safe while a server runs.\n"
        "Exit status 0: no difference, 3: differences.",
    ),
    Verb(
        "backup",
        "write a whole store to one file; the server may run",
        (positional("FILE", "file", "the file to write; it must not exist"), _FROM, *_COPY_FLAGS, _REPLACE),
        command="commands.backup:run_backup",
        calls_server=False,
        more="The file gets its name only when it is complete and verified; only you can read it.\n"
        "`holdfast restore` restores it into SQLite or PostgreSQL, whichever store it came from.",
    ),
    Verb(
        "restore",
        "restore a store from a backup",
        (
            positional("FILE", "file", "the backup file"),
            flag("--to", "to", "URL", "the store to write, as for serve"),
            *_COPY_FLAGS,
            _REPLACE,
        ),
        command="commands.backup:run_restore",
        calls_server=False,
        more="Stop every server first. What happened after the backup is lost, so fencing tokens and event numbers\n"
        "continue far above it: no token is granted twice, and clients that follow the log get an error.",
    ),
    Verb(
        "migrate",
        "copy a store from SQLite to PostgreSQL, or back",
        (flag("--to", "to", "URL", "the store to write; it must be empty", required=True), _FROM, *_COPY_FLAGS),
        command="commands.backup:run_migrate",
        calls_server=False,
        more="Stop every server first. If it is interrupted, run it again: it continues where it stopped. No server\n"
        "opens the new store until it is complete and verified. The old store is left as it is: do not serve it again.",
    ),
    Verb(
        "import octostore",
        "take over the database of an OctoStore server",
        (
            positional("FILE", "file", "its database file; it is left unchanged"),
            _FROM,
            switch("--dry-run", "dry_run", "only report what would be imported"),
            switch("--skip-refused", "skip_refused", "leave out what cannot be imported, and import the rest"),
            OUTPUT,
        ),
        command="imports.octostore:run",
        calls_server=False,
        more="Stop OctoStore first. Users keep their tokens and what they hold, sessions and webhooks go on, and\n"
        "fencing tokens continue above those of the file. All is imported in one transaction, or nothing: then the\n"
        "exit status is 1. What has expired is left out.",
    ),
    Verb(
        "import tasks",
        "create the tasks of a file, in JSON lines or CSV",
        (
            positional("FILE", "file", "the file; - for stdin"),
            flag(
                "--format", "format", "|".join(TASK_FORMATS), "format of the file (from its name)", choices=TASK_FORMATS
            ),
            flag("--type", "type", "TYPE", "type of tasks that name none"),
            switch("--dry-run", "dry_run", "only check every line; no server is called"),
        ),
        command="imports.tasks:run",
        more="Each line has the fields of `POST /v1/tasks`. In CSV the first line names them; payload is JSON, and a\n"
        "column payload.NAME is one field of it. Refused lines are reported with their numbers; then the exit status\n"
        "is 1. Lines with a uniqueKey can be imported again: what is there already is not created twice.",
    ),
    Verb(
        "mcp",
        "serve MCP over stdin and stdout",
        (
            _setting("--store", "URL", "the store, as for serve; no server is used"),
            Argument(
                ("--tools",),
                "tools",
                "the set of tools: default, or operator: the default tools and those for operators",
                "SET",
                choices=("default", "operator"),
            ),
        ),
        command="commands.mcp:run",
        calls_server=False,
        more="Uses the server at HOLDFAST_URL, else the server that was started on this machine. The key is searched\n"
        "as for every verb, so on this machine none has to be set. With --store or HOLDFAST_STORE, or if there is no\n"
        "server, it opens a store itself. What is claimed through it is renewed while it runs, and free within a\n"
        "minute after it was killed; HOLDFAST_OWNER is the agent's name (user@host).",
    ),
)

PROGRAM_VERBS = (
    Verb(
        "doctor",
        "check the server, its store, your key and the clocks, and who uses which account",
        (
            switch("--set-clock", "set_clock", "set the clock of the store on this machine back to the wall clock"),
            _setting("--store", "URL", "the store, as for serve; for --set-clock"),
        ),
        command="commands.doctor:run",
        more="Says which server, key and account the command line, `holdfast mcp`, the Python client and the coding\n"
        "agents of this repository (.mcp.json, .cursor/mcp.json, .vscode/mcp.json, .codex/config.toml,\n"
        ".gemini/settings.json, opencode.json) would use, and warns if these are different accounts. Of a key only\n"
        "the beginning is shown; no key is sent to a server that only a file of the repository names.\n"
        "Exit status 0: no problem, 4: the key, 7: the server or its store.\n"
        "--set-clock: the clock of an SQLite store never goes back, so after a boot with a wrong wall clock it stays\n"
        "ahead. This sets it right and moves all deadlines with it. Set the wall clock first; servers may run.",
    ),
    Verb(
        "completion",
        "print a script that makes your shell complete verbs, flags and ids",
        (positional("SHELL", "shell", "bash, zsh or fish", choices=("bash", "zsh", "fish")),),
        command="commands.completion:run",
        calls_server=False,
        more='bash: eval "$(holdfast completion bash)". zsh: eval "$(holdfast completion zsh)".\n'
        "fish: holdfast completion fish | source\n"
        "Put the line into your shell's start file. Names of held jobs and ids of tasks, sessions, reservations, keys\n"
        "and webhooks are asked from the server while you complete.",
    ),
)
