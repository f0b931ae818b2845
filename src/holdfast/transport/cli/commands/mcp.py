"""Verb `mcp`: serves MCP over stdin and stdout, for a server or for a store."""

from __future__ import annotations

import logging
import os
import re
import sys

from holdfast import extras
from holdfast.addresses import url_problem
from holdfast.app import running_engine
from holdfast.core.errors import HoldfastError
from holdfast.server_keys import FoundKey
from holdfast.settings import BadSettings, load
from holdfast.settings.model import sqlite_path
from holdfast.settings.reader import Reader
from holdfast.store.contract import UnusableStore
from holdfast.transport.cli.output import print_message
from holdfast.transport.cli.targets.mcp_target import find_target
from holdfast.transport.cli.verbs.verb import Invocation, WrongUsage
from holdfast.transport.mcp.operator_tools import DEFAULT

OK, UNAVAILABLE, CONFIGURATION = 0, 1, 2
_TIMES = ("mcp_session_seconds", "mcp_idle_minutes")
"""Settings of the agent's session."""


def run(invocation: Invocation) -> int:
    """Serve until stdin ends, for the server or the store that `find_target` chooses."""
    if not extras.is_installed(extras.MCP):
        return _report(f"MCP is not installed: {extras.install_command(extras.MCP)}", CONFIGURATION)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    store = invocation.arguments["store"]
    tools = invocation.arguments["tools"] or DEFAULT
    try:
        target = find_target(store)
    except WrongUsage as error:
        return _report(str(error), CONFIGURATION)
    return _serve_store(store, tools) if target.url is None else _serve_server(target.url, target.key, tools)


def _serve_server(url: str, key: FoundKey | None, tools: str) -> int:
    problem = url_problem(url)
    if problem is not None:
        return _report(f"HOLDFAST_URL: {problem}", CONFIGURATION)
    if key is None:  # it is served all the same: the refusal of every call tells the agent what to do
        how = "set HOLDFAST_API_KEY to one that its operator gives you; `holdfast doctor` says what is used"
        print_message(f"holdfast: there is no key for {url}, so every call is refused: {how}")
    reader = Reader({}, os.environ)
    times = {name: reader.number(name) for name in _TIMES}
    if reader.problems:
        return _report("\nholdfast: ".join(reader.problems), CONFIGURATION)
    # Imported late: wrong settings are reported without loading the MCP library.
    from holdfast.transport.mcp.stdio import AgentTimes, serve_remote

    serve_remote(url, None if key is None else key.key, AgentTimes(*times.values()), tools)
    return OK


def _serve_store(store: str | None, tools: str) -> int:
    try:
        settings, _ = load({"store": store})
    except BadSettings as error:
        return _report("\nholdfast: ".join(error.problems), CONFIGURATION)
    from holdfast.transport.mcp.stdio import AgentTimes, serve_embedded

    times = AgentTimes(*(getattr(settings, name) for name in _TIMES))
    try:
        with running_engine(settings, serving=False) as engine:
            serve_embedded(engine, settings, _store_name(settings.store), times, tools)
    except (HoldfastError, UnusableStore) as error:
        return _report(str(error), UNAVAILABLE)
    return OK


def _store_name(store: str) -> str:
    """The store as one name for all folders in which it is used, without a password."""
    if store.startswith("sqlite:"):
        return f"sqlite:///{sqlite_path(store).absolute()}"
    return re.sub(r"//[^/]*@", "//", store)


def _report(message: str, status: int) -> int:
    print_message(f"holdfast: {message}")
    return status
