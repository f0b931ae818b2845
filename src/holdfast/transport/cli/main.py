"""`holdfast`: what it can do, and how it starts."""

from __future__ import annotations

import argparse
import sys

from holdfast import __version__

USAGE = 2


def main() -> None:
    """Parse the command line and do what it says."""
    arguments = _parser().parse_args()
    if arguments.command == "serve":
        from holdfast.transport.cli.serve import serve  # noqa: PLC0415 - help should not wait for a web server

        flags = {name: value for name, value in vars(arguments).items() if name != "command"}
        sys.exit(serve(flags))
    if arguments.command == "verify":
        from holdfast.transport.cli.verify import run  # noqa: PLC0415 - the same

        sys.exit(run(vars(arguments)))
    if arguments.command == "mcp":
        from holdfast.transport.cli import mcp  # noqa: PLC0415 - the same

        sys.exit(mcp.run(vars(arguments)))
    _parser().print_help(sys.stderr)
    sys.exit(USAGE)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holdfast", description="One live owner, a visible history and automatic recovery for agent work."
    )
    parser.add_argument("--version", action="version", version=f"holdfast {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    serve = commands.add_parser(
        "serve",
        help="start a server",
        description="Start a server. With no flags: an SQLite file in your state folder, on 127.0.0.1:7700.",
        epilog="Secrets come from the environment only: HOLDFAST_ROOT_KEY, HOLDFAST_ADMIN_KEY, HOLDFAST_STATIC_TOKENS, "
        "HOLDFAST_STATIC_TOKENS_FILE. Every flag has a variable too: --port is HOLDFAST_PORT.",
    )
    serve.add_argument("--host", metavar="ADDRESS", help="where to listen (127.0.0.1)")
    serve.add_argument("--port", metavar="NUMBER", help="which port (7700); 0 takes a free one")
    serve.add_argument(
        "--store",
        metavar="URL",
        help="sqlite:///path.db (four slashes for an absolute path), postgresql://… or memory:",
    )
    serve.add_argument("--plan", metavar="ID", help="what accounts have that bought nothing (self-hosted: no limits)")
    serve.add_argument("--plans", metavar="FILE", help="plans of your own, as TOML")
    serve.add_argument("--workers", metavar="NUMBER", help="processes (1); more only with PostgreSQL")
    serve.add_argument("--public-url", metavar="URL", help="https://host[/path] where clients reach it")
    serve.add_argument(
        "--trusted-proxies",
        metavar="ADDRESSES",
        help="whose X-Forwarded-For and X-Forwarded-Proto to believe: addresses or CIDR blocks, between commas",
    )
    serve.add_argument("--tls-cert", metavar="FILE", help="speak https with this certificate (PEM)")
    serve.add_argument("--tls-key", metavar="FILE", help="and this key")
    serve.add_argument(
        "--allow-insecure-http",
        action="store_const",
        const="true",
        help="let keys come over plain HTTP from other machines",
    )
    verify = commands.add_parser(
        "verify",
        help="compare the log with the rows",
        description="Fold every event of the log and report any difference with the rows. "
        "Safe while a server is at work. Exit status 0: no difference, 3: some.",
    )
    verify.add_argument("--store", metavar="URL", help="the same as for serve")
    verify.add_argument("-o", "--output", choices=["text", "json"], help="how to report (text)")
    mcp = commands.add_parser(
        "mcp",
        help="speak MCP over stdin and stdout",
        description="Speak the Model Context Protocol over stdin and stdout, for the server that HOLDFAST_URL names "
        "(with the key in HOLDFAST_API_KEY), or without a server for a file of your own.",
    )
    mcp.add_argument("--store", metavar="URL", help="the same as for serve; wins over HOLDFAST_URL")
    return parser
