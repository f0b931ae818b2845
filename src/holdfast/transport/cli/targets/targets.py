"""Which server, key and account the command line, `holdfast mcp`, the Python client and each coding agent would use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from holdfast.client.errors import AuthError, HoldfastError
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.private_files import UnusableFile
from holdfast.server_keys import (
    DEFAULT_URL,
    URL_VARIABLE,
    FoundKey,
    Servers,
    addresses_of,
    configured_key,
    environment_key,
)
from holdfast.settings import default_store, describe_store, store_address
from holdfast.transport.cli.connection import make_client
from holdfast.transport.cli.credentials import address_of, find_key
from holdfast.transport.cli.targets.host_files import HostEntry, UnreadFile, read_host_files
from holdfast.transport.cli.targets.mcp_target import McpTarget, find_target
from holdfast.transport.cli.verbs.verb import WrongUsage

UNKNOWN = "unknown"
_SHOWN = {True: 12, False: 4}
"""Characters of a key that are shown: of ours the fixed beginning and four more, of other tokens four."""


class ProgramTarget(NamedTuple):
    """The server and key, or the store, that a program uses."""

    name: str
    """The program, or the configuration file of a coding agent."""
    server: str
    """A URL, or the store if `is_store`."""
    source: str
    """What chose the server."""
    key: FoundKey | None = None
    is_store: bool = False
    problem: str = ""
    """Why it is not known what the program would use."""


def own_targets(url: str | None, key_file: str | None) -> list[ProgramTarget]:
    """What this user's own programs use: the command line with these flags, `holdfast mcp` and the Python client."""
    source = "--url" if url else URL_VARIABLE if os.environ.get(URL_VARIABLE) else "the default"
    cli = ProgramTarget("cli", address_of(url), source, find_key(key_file, url))
    return [cli, _mcp_target("mcp", None, os.environ), _python_target(os.environ)]


def host_targets(root: Path) -> Iterator[ProgramTarget]:
    """What each entry in a configuration file of a coding agent uses."""
    for entry in read_host_files(root, os.environ):
        if isinstance(entry, UnreadFile):
            yield ProgramTarget(entry.file, "", "", problem=f"cannot be read: {entry.problem}")
        elif entry.url is not None:
            key = None if entry.key is None else FoundKey(entry.key, entry.file)
            yield ProgramTarget(entry.file, entry.url, entry.file, key)
        else:
            yield _mcp_target(entry.file, entry, entry.variables)


def _mcp_target(name: str, entry: HostEntry | None, environ: Mapping[str, str]) -> ProgramTarget:
    store = None if entry is None else entry.store
    try:
        target = find_target(store, environ)
    except WrongUsage as error:
        return ProgramTarget(name, "", "", problem=str(error))
    if target.url is not None:
        return ProgramTarget(name, target.url, target.source, target.key)
    return ProgramTarget(name, _describe(store, target, environ), target.source, is_store=True)


def _describe(store: str | None, target: McpTarget, environ: Mapping[str, str]) -> str:
    named = store or environ.get(target.source)
    return describe_store(store_address(named) if named else default_store())


def _python_target(environ: Mapping[str, str]) -> ProgramTarget:
    address = address_of(None, environ)
    source = URL_VARIABLE if environ.get(URL_VARIABLE) else "the default"
    try:
        key = environment_key(environ) or configured_key(address, is_named=False)
    except UnusableFile as error:
        return ProgramTarget("python", address, source, problem=str(error))
    return ProgramTarget("python", address, source, key)


class Accounts:
    """Reads the account of each program's key, once for each server and key.

    A server is asked only if it is the user's own choice: a repository must not choose where a key is sent.
    """

    def __init__(self, own: list[ProgramTarget]) -> None:
        self._own = {address for target in own if not target.is_store for address in addresses_of(target.server)}
        self._known: dict[tuple[str, str], str] = {}

    def of(self, target: ProgramTarget) -> str:
        """The account; `UNKNOWN` if the server is not asked or does not say."""
        if target.is_store:
            return DEFAULT_ACCOUNT
        if target.key is None or not self._own & set(addresses_of(target.server)):
            return UNKNOWN
        known = (target.server, target.key.key)
        if known not in self._known:
            self._known[known] = _read_account(*known)
        return self._known[known]


def _read_account(url: str, key: str) -> str:
    try:
        return str(make_client(url, key).call("read_account")["accountId"])
    except AuthError:
        return "none: the server refuses the key"
    except (HoldfastError, WrongUsage):
        return UNKNOWN


def describe(target: ProgramTarget, account: str) -> str:
    """One line about what a program uses. Of the key only its beginning."""
    if target.problem:
        return target.problem
    if target.is_store:
        return f"the store {target.server} ({target.source}), without a server or a key, account {account}"
    if target.key is None:
        return f"{target.server} ({target.source}), no key"
    key = f"key {shorten(target.key.key)} from {target.key.source}"
    return f"{target.server} ({target.source}), {key}, account {account}"


def shorten(key: str) -> str:
    """The beginning of a key, by which a person recognises it."""
    return f"{key[: _SHOWN[key.startswith('hf_')]]}…"


def group_by_account(targets: list[tuple[ProgramTarget, str]]) -> list[tuple[str, list[str]]]:
    """The accounts that these programs use, each with their names: agents see each other if there is only one."""
    servers: dict[str, dict[str, list[str]]] = {}
    for target, account in targets:
        if not target.problem and (target.is_store or target.key is not None):
            servers.setdefault(_server(target), {}).setdefault(account, []).append(target.name)
    for accounts in servers.values():
        if len(accounts) > 1:  # an account that is not known may be one of the others
            accounts.pop(UNKNOWN, None)
    return [
        (f"{server}, account {account}", list(dict.fromkeys(names)))
        for server, accounts in servers.items()
        for account, names in accounts.items()
    ]


def _server(target: ProgramTarget) -> str:
    """The server, or the store unless it is that of the server on this machine: then the server."""
    if target.is_store and target.server != _store_of_default_server():
        return f"the store {target.server}"
    address = next(iter(addresses_of(DEFAULT_URL if target.is_store else target.server)), target.server)
    return address.replace("[127.0.0.1]", "127.0.0.1")


def _store_of_default_server() -> str | None:
    try:
        entry = Servers().find(DEFAULT_URL)
    except UnusableFile:
        return None
    return None if entry is None else entry.store
