"""`holdfast mcp`: speak MCP over stdin and stdout, for a server or for a file."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping

from holdfast import extras
from holdfast.addresses import url_problem
from holdfast.app import running_engine
from holdfast.core.errors import HoldfastError
from holdfast.settings import BadSettings, load
from holdfast.store.contract import UnusableStore
from holdfast.transport.cli.verbs.verb import Verb

FINE, UNAVAILABLE, CONFIGURATION = 0, 1, 2


def run(verb: Verb, flags: Mapping[str, str | None]) -> int:  # noqa: ARG001 - every room has this shape
    """The exit status. A store on the command line wins over a server in the environment."""
    if not extras.is_installed(extras.MCP):
        return _complain(f"MCP is not installed: {extras.install_command(extras.MCP)}", CONFIGURATION)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    url = os.environ.get("HOLDFAST_URL")
    if url and flags.get("store") is None:
        return _for_server(url, os.environ.get("HOLDFAST_API_KEY"))
    return _embedded(flags.get("store"))


def _for_server(url: str, key: str | None) -> int:
    problem = url_problem(url)
    if problem is not None:
        return _complain(f"HOLDFAST_URL: {problem}", CONFIGURATION)
    if not key:
        return _complain("HOLDFAST_API_KEY: the server that HOLDFAST_URL names needs a key", CONFIGURATION)
    from holdfast.transport.mcp.stdio import serve_remote  # noqa: PLC0415 - mistakes are told without waiting for it

    serve_remote(url, key)
    return FINE


def _embedded(store: str | None) -> int:
    try:
        settings, _ = load({"store": store})
    except BadSettings as error:
        return _complain("\nholdfast: ".join(error.problems), CONFIGURATION)
    from holdfast.transport.mcp.stdio import serve_embedded  # noqa: PLC0415 - the same

    try:
        with running_engine(settings, serving=False) as engine:
            serve_embedded(engine, settings)
    except (HoldfastError, UnusableStore) as error:
        return _complain(str(error), UNAVAILABLE)
    return FINE


def _complain(words: str, status: int) -> int:
    print(f"holdfast: {words}", file=sys.stderr)
    return status
