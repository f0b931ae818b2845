"""What `holdfast mcp` works on: a server, or a store that it opens itself."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from holdfast.private_files import UnusableFile
from holdfast.server_keys import DEFAULT_URL, URL_VARIABLE, FoundKey, Servers, with_scheme
from holdfast.settings import default_store, describe_store
from holdfast.transport.cli.credentials import BadAddress, find_key

CONNECT_SECONDS = 0.5
_STORE_VARIABLES = ("HOLDFAST_STORE", "HOLDFAST_DATABASE_URL")


class McpTarget(NamedTuple):
    """A server with the key for it, or a store if `url` is None."""

    url: str | None
    source: str
    """What chose it."""
    key: FoundKey | None = None


def find_target(store: str | None, environ: Mapping[str, str] = os.environ) -> McpTarget:
    """--store, else HOLDFAST_URL, else HOLDFAST_STORE, else the server of this machine, else its default store.

    The server of this machine is known by its entry in the user's configuration. While it does not run, its store is
    opened instead if that is the default one: what is claimed there, the server knows when it starts.
    """
    if store is not None:
        return McpTarget(None, "--store")
    url = environ.get(URL_VARIABLE)
    if url:
        return McpTarget(with_scheme(url), URL_VARIABLE, find_key(None, None, environ))
    variable = next((name for name in _STORE_VARIABLES if environ.get(name)), None)
    if variable is not None:
        return McpTarget(None, variable)
    return _find_local(environ)


def _find_local(environ: Mapping[str, str]) -> McpTarget:
    try:
        entry = Servers().find(DEFAULT_URL)
    except UnusableFile as error:
        raise BadAddress(str(error)) from error
    if entry is None or (entry.store == describe_store(default_store()) and not _listens(DEFAULT_URL)):
        return McpTarget(None, "the default")
    return McpTarget(DEFAULT_URL, "the default", find_key(None, None, environ))


def _listens(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 0), CONNECT_SECONDS):
            return True
    except OSError:
        return False
