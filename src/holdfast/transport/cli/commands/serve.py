"""Verb `serve`: checks the settings, opens the store, prints its addresses and serves until it is stopped."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import socket
import sys
from pathlib import Path

from msgspec.structs import replace

from holdfast.addresses import is_loopback, own_host
from holdfast.app import has_credential, make_payment_provider, make_traces, running_engine, sync_credentials
from holdfast.core.errors import HoldfastError
from holdfast.engine.engine import Engine
from holdfast.server_keys import DEFAULT_URL, addresses_of
from holdfast.settings import BadSettings, Settings, describe_store, load
from holdfast.store.contract import NewerSchema, UnusableStore
from holdfast.telemetry import logs
from holdfast.telemetry.traces import NoOpenTelemetry, check_installed
from holdfast.transport.cli.output import print_message
from holdfast.transport.cli.server_setup.first_key import first_key_path, write_first_key
from holdfast.transport.cli.server_setup.machine_key import provide_machine_key
from holdfast.transport.cli.verbs.verb import Invocation
from holdfast.transport.dashboard.access.link import make_admin_link
from holdfast.transport.fronts.processes import EngineSide, serve_engine, supervise_fronts
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.server import SOCKET_FD, bind
from holdfast.transport.http.server import serve as serve_http
from holdfast.transport.http.workers import OUTDATED_STATUS, follow_parent, supervise_servers
from holdfast.transport.webhooks.dispatcher import dispatching

CONFIGURATION, UNAVAILABLE = 2, 1

_PORT_IN_USE = """\
  next: `{doctor}` says whether a server of yours runs there already
        --port chooses another port; in a checkout: make run ARGS='--port {port}'"""
_HOW_TO_GET_A_KEY = "set HOLDFAST_ROOT_KEY or HOLDFAST_STATIC_TOKENS, or start once on 127.0.0.1 to get a key"


def run(invocation: Invocation) -> int:
    """Run a server until it is stopped."""
    flags = {name: "true" if value is True else value for name, value in invocation.arguments.items()}
    try:
        settings, warnings = load(flags)
    except BadSettings as error:
        for problem in error.problems:
            print_message(f"holdfast: {problem}")
        return CONFIGURATION
    for warning in warnings:
        print_message(f"holdfast: {warning}")
    logs.set_up(settings.log_format, settings.log_level)
    try:
        if settings.traces:
            check_installed()
    except NoOpenTelemetry as error:
        print_message(f"holdfast: {error}")
        return CONFIGURATION
    return _start(settings)


def _start(settings: Settings) -> int:
    try:
        listener = bind(settings)
    except OSError as error:
        print_message(f"holdfast: cannot listen on {settings.host} port {settings.port}: {error.strerror or error}")
        if error.errno == errno.EADDRINUSE:
            print_message(_PORT_IN_USE.format(doctor=_own_verb("doctor", settings), port=settings.port + 1))
        return UNAVAILABLE
    settings = replace(settings, port=listener.getsockname()[1])
    if settings.has_fronts and SOCKET_FD not in os.environ:
        return supervise_fronts(settings, listener, lambda side: _report_errors(settings, listener, side))
    return _report_errors(settings, listener)


def _report_errors(settings: Settings, listener: socket.socket, fronts: EngineSide | None = None) -> int:
    try:
        return _run_server(settings, listener, fronts)
    except NewerSchema as error:
        return _outdated(str(error))
    except (UnusableStore, OSError) as error:
        print_message(f"holdfast: {error}")
    except HoldfastError as error:
        print_message(f"holdfast: {error.message}")
    return UNAVAILABLE


def _run_server(settings: Settings, listener: socket.socket, fronts: EngineSide | None) -> int:
    with running_engine(settings) as engine:
        if not is_loopback(listener.getsockname()[0]) and not has_credential(engine, settings):
            print_message(f"holdfast: {settings.host} is open to other machines and has no key: {_HOW_TO_GET_A_KEY}")
            return CONFIGURATION
        first_key = sync_credentials(engine, settings)
        is_worker = SOCKET_FD in os.environ
        if not is_worker or (fronts is not None and fronts.is_first):
            agents = _provide_machine_key(engine, settings, listener)
            # The link gives full access, so it is printed only on a terminal: anything else may be a shared log.
            link = make_admin_link(engine, settings) if sys.stderr.isatty() else None
            _print_addresses(settings, first_key, agents, link)
        if fronts is not None:
            fronts.report_ready()
        elif is_worker:
            follow_parent()
        if settings.workers == 1 or is_worker:
            _serve(engine, settings, listener, fronts)
            return 0 if engine.outdated is None else _outdated(engine.outdated.message)
    return 0 if supervise_servers(settings, listener) else UNAVAILABLE


def _provide_machine_key(engine: Engine, settings: Settings, listener: socket.socket) -> str | None:
    """Write the key of this machine if only this machine can reach the server; returns a line about it."""
    host, port = listener.getsockname()[:2]
    if not settings.machine_key or not is_loopback(host):
        return None
    url = replace(settings, host=host, port=port).url
    return provide_machine_key(engine, url, describe_store(settings.store))


def _outdated(message: str) -> int:
    """Print that the store needs a newer Holdfast; a worker exits with a status that its parent recognizes."""
    print_message(f"holdfast: {message}")
    return OUTDATED_STATUS if SOCKET_FD in os.environ else UNAVAILABLE


def _serve(engine: Engine, settings: Settings, listener: socket.socket, fronts: EngineSide | None) -> None:
    traces = make_traces(settings)
    engine.lanes.trace(traces)
    try:
        with dispatching(engine, settings) as webhooks:
            ctx = HandlerContext(engine, settings, make_payment_provider(settings), webhooks.wake, traces)
            if fronts is None:
                serve_http(ctx, listener)
            else:
                serve_engine(ctx, listener, fronts)
    finally:
        engine.lanes.trace(None)
        if traces is not None:
            traces.close()


def _print_addresses(settings: Settings, first_key: str | None, agents: str | None, link: str | None) -> None:
    print_message(f"Holdfast is listening on {settings.url}")
    if settings.public_url is not None:
        print_message(f"  public {settings.public_url}")
    print_message(f"  data   {describe_store(settings.store)}")
    key, quote = "$HOLDFAST_API_KEY", '"'
    if first_key is not None and not sys.stderr.isatty():
        path = _hand_over(settings, first_key)
        if path is not None:
            key = f"$(cat {shlex.quote(str(path))})"
    elif first_key is not None:
        print_message(f"  key    {first_key}")
        print_message("         This key may do everything and is shown only once: keep it.")
        key, quote = first_key, "'"
    if agents is not None:
        print_message(f"  agents {agents}")
    print_message(f"  web    {link or settings.home}")
    dashboard = f"`{_own_verb('dashboard', settings)}`"
    if link is None:
        print_message(f"         {dashboard} prints a link that signs a browser in.")
    else:
        print_message(f"         This link signs in one browser, within 10 minutes; {dashboard} prints another.")
    if first_key is None and agents is not None:  # the command line finds the key of this machine
        print_message(f"  try    {_own_verb('claim hello', settings)}")
        return
    print_message("  try    curl -d '{\"owner\": \"me\"}' -H 'Content-Type: application/json' \\")
    print_message(f"              -H {quote}Authorization: Bearer {key}{quote} {settings.home}/v1/jobs/hello/claim")


def _own_verb(verb: str, settings: Settings) -> str:
    """What to type on this machine to run a verb for this server."""
    url = replace(settings, host=own_host(settings.host)).url
    is_default = addresses_of(url) == addresses_of(DEFAULT_URL)
    return f"{own_command(sys.argv[0])} {verb}{'' if is_default else f' --url {url}'}"


def own_command(program: str) -> str:
    """What to type to run this program again: `holdfast`, or its path if the PATH does not have it (`make run`)."""
    is_script = Path(program).name == "holdfast"
    return shlex.quote(program) if is_script and shutil.which("holdfast") is None else "holdfast"


def _hand_over(settings: Settings, first_key: str) -> Path | None:
    """Write the first key to a file and return its path: what is not a terminal may be a log that others read."""
    path = first_key_path(settings)
    try:
        write_first_key(path, first_key)
    except OSError as error:
        print_message(f"  key    could not be written to {path}: {error.strerror or error}")
        print_message("         Set HOLDFAST_ROOT_KEY and start again.")
        return None
    print_message(f"  key    in {path}, which only you can read")
    print_message("         This key may do everything: store it elsewhere, then delete the file.")
    return path
