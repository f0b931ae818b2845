"""Verbs for whoever runs a server."""

from __future__ import annotations

from holdfast.transport.cli.verbs.verb import Argument, Verb, flag, output, switch, word

_STORE = "sqlite:///path.db (four slashes for an absolute path), postgresql://… or memory:"


def _setting(flags: str, value: str, help: str) -> Argument:
    return flag(flags, flags.removeprefix("--").replace("-", "_"), value, help)


_FROM = _setting("--store", "URL", "which store (the same as for serve)")
_REPLACE = switch("--replace", "replace", "take the place of what is there")
_COPYING = (
    output("how to report (text)"),
    switch("--no-verify", "no_verify", "do not compare the log with the rows of the copy"),
)

SERVER_VERBS = (
    Verb(
        "serve",
        "start a server",
        (
            _setting("--host", "ADDRESS", "where to listen (127.0.0.1)"),
            _setting("--port", "NUMBER", "which port (7700); 0 takes a free one"),
            _setting("--store", "URL", _STORE),
            _setting("--plan", "ID", "what accounts have that bought nothing (self-hosted: no limits)"),
            _setting("--plans", "FILE", "plans of your own, as TOML"),
            _setting("--workers", "NUMBER", "processes (1); more only with PostgreSQL"),
            _setting("--public-url", "URL", "https://host[/path] where clients reach it"),
            _setting(
                "--trusted-proxies",
                "ADDRESSES",
                "whose X-Forwarded-For and X-Forwarded-Proto to believe: addresses or\nCIDR blocks, between commas",
            ),
            _setting("--tls-cert", "FILE", "speak https with this certificate (PEM)"),
            _setting("--tls-key", "FILE", "and this key"),
            switch("--allow-insecure-http", "allow_insecure_http", "let keys come over plain HTTP from other machines"),
        ),
        module="commands.serve",
        asks=False,
        more="With no flags: an SQLite file in your state folder, on 127.0.0.1:7700. Every flag has a variable too:\n"
        "--port is HOLDFAST_PORT. Secrets come from the environment only: HOLDFAST_ROOT_KEY, HOLDFAST_ADMIN_KEY,\n"
        "HOLDFAST_STATIC_TOKENS, HOLDFAST_STATIC_TOKENS_FILE.",
    ),
    Verb(
        "verify",
        "compare the log with the rows",
        (
            _setting("--store", "URL", "the same as for serve"),
            output("how to report (text)"),
        ),
        module="commands.verify",
        asks=False,
        more="Folds every event of the log and reports any difference with the rows. Safe while a server is at work.\n"
        "Exit status 0: no difference, 3: some.",
    ),
    Verb(
        "backup",
        "write everything a store holds to one file, while it is served",
        (word("FILE", "file", "where to; it must not exist yet"), _FROM, *_COPYING, _REPLACE),
        module="commands.backup",
        asks=False,
        more="The file has its name only when it is complete and has been verified; nobody but you can read it.\n"
        "`holdfast restore` puts it back, into a file or into PostgreSQL, whichever it came from.",
    ),
    Verb(
        "restore",
        "make a store of a backup again",
        (
            word("FILE", "file", "a backup"),
            flag("--to", "to", "URL", "into which store (the same as for serve)"),
            *_COPYING,
            _REPLACE,
        ),
        module="commands.backup",
        asks=False,
        more="With every server stopped. What happened after the backup was taken is lost, so fencing tokens and the\n"
        "numbers of events go on far beyond it: no token is granted twice, and whoever follows the log is told.",
    ),
    Verb(
        "migrate",
        "move a store from a file to PostgreSQL, or back",
        (flag("--to", "to", "URL", "into which store, which must be empty", required=True), _FROM, *_COPYING),
        module="commands.backup",
        asks=False,
        more="With every server stopped. If it is interrupted, run it again: it goes on where it was. Until it is\n"
        "complete and compared, no server opens the new store. The old one stays as it is: do not serve it again.",
    ),
    Verb(
        "mcp",
        "speak MCP over stdin and stdout",
        (_setting("--store", "URL", "the same as for serve; wins over HOLDFAST_URL"),),
        module="commands.mcp",
        asks=False,
        more="For the server that HOLDFAST_URL names (with the key in HOLDFAST_API_KEY), or without a server for a\n"
        "file of your own.",
    ),
)
