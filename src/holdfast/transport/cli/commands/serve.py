"""`holdfast serve`: check the settings, open the store, say where everything is, answer until told to stop."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from holdfast.addresses import is_loopback
from holdfast.app import has_credential, payments_of, running_engine, settle_identities, traces_of
from holdfast.core.errors import HoldfastError
from holdfast.engine.engine import Engine
from holdfast.settings import BadSettings, Settings, load, sqlite_path
from holdfast.store.contract import UnusableStore
from holdfast.telemetry import logs
from holdfast.telemetry.traces import NoOpenTelemetry, check_installed
from holdfast.transport.cli.verbs.verb import Verb
from holdfast.transport.dashboard.sign_in_link import make_admin_link
from holdfast.transport.http.server import SOCKET_FD, bind, follow_parent, supervise
from holdfast.transport.http.server import serve as answer
from holdfast.transport.webhooks.dispatcher import dispatching

CONFIGURATION, UNAVAILABLE = 2, 1

_WAYS_TO_A_KEY = "set HOLDFAST_ROOT_KEY or HOLDFAST_STATIC_TOKENS, or start once on 127.0.0.1 to be given one"


def run(verb: Verb, arguments: Mapping[str, Any]) -> int:  # noqa: ARG001 - every room has this shape
    """Run a server; the exit status."""
    flags = {name: "true" if value is True else value for name, value in arguments.items()}
    try:
        settings, warnings = load(flags)
    except BadSettings as error:
        for problem in error.problems:
            _say(f"holdfast: {problem}")
        return CONFIGURATION
    for warning in warnings:
        _say(f"holdfast: {warning}")
    logs.set_up(settings.log_format, settings.log_level)
    try:
        if settings.traces:
            check_installed()
    except NoOpenTelemetry as error:
        _say(f"holdfast: {error}")
        return CONFIGURATION
    return _start(settings)


def _start(settings: Settings) -> int:
    try:
        listener = bind(settings)
    except OSError as error:
        _say(f"holdfast: cannot listen on {settings.host} port {settings.port}: {error.strerror or error}")
        return UNAVAILABLE
    settings = replace(settings, port=listener.getsockname()[1])
    try:
        with running_engine(settings) as engine:
            if not is_loopback(listener.getsockname()[0]) and not has_credential(engine, settings):
                _say(f"holdfast: {settings.host} is open to other machines, and there is no key yet: {_WAYS_TO_A_KEY}")
                return CONFIGURATION
            first_key = settle_identities(engine, settings)
            if SOCKET_FD not in os.environ:
                # A link opens everything, so it is for eyes alone: what is no terminal may be a log that many read.
                _greet(settings, first_key, make_admin_link(engine, settings) if sys.stderr.isatty() else None)
            if SOCKET_FD in os.environ:
                follow_parent()
            if settings.workers == 1 or SOCKET_FD in os.environ:
                _answer(engine, settings, listener)
                return 0
        supervise(settings, listener)
    except (UnusableStore, OSError) as error:
        _say(f"holdfast: {error}")
        return UNAVAILABLE
    except HoldfastError as error:
        _say(f"holdfast: {error.message}")
        return UNAVAILABLE
    return 0


def _answer(engine: Engine, settings: Settings, listener: socket.socket) -> None:
    traces = traces_of(settings)
    engine.trace(traces)
    try:
        with dispatching(engine, settings) as webhooks:
            answer(engine, settings, listener, payments_of(settings), webhooks.wake, traces=traces)
    finally:
        engine.trace(None)
        if traces is not None:
            traces.close()


def _greet(settings: Settings, first_key: str | None, link: str | None) -> None:
    _say(f"Holdfast is listening on {settings.url}")
    if settings.public_url is not None:
        _say(f"  shown  {settings.public_url}")
    _say(f"  data   {_place(settings.store)}")
    if first_key is not None:
        _say(f"  key    {first_key}")
        _say("         It opens everything and is shown only now: keep it.")
    _say(f"  look   {link or settings.home}")
    if link is None:
        _say("         `holdfast dashboard` makes a link that signs a browser in.")
    else:
        _say("         It signs a browser in once, within 10 minutes; `holdfast dashboard` makes another.")
    key = first_key or "$HOLDFAST_API_KEY"
    quote = "'" if first_key else '"'
    _say("  try    curl -d '{\"owner\": \"me\"}' -H 'Content-Type: application/json' \\")
    _say(f"              -H {quote}Authorization: Bearer {key}{quote} {settings.home}/v1/jobs/hello/claim")


def _place(store: str) -> str:
    if store == "memory:":
        return "in memory: gone when this process ends"
    if store.startswith("sqlite:///"):
        return str(sqlite_path(store).resolve())
    address = store.rpartition("@")[2]
    return f"PostgreSQL at {address.partition('?')[0] or 'the local socket'}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
