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
from holdfast.transport.cli.doors.host_files import HostEntry, UnreadFile, read_host_files
from holdfast.transport.cli.doors.mcp_target import McpTarget, find_target
from holdfast.transport.cli.verbs.verb import WrongUsage

UNKNOWN = "unknown"
_SHOWN = {True: 12, False: 4}
"""Characters of a key that are shown: of ours the fixed beginning and four more, of other tokens four."""


class Door(NamedTuple):
    """A program that reaches a server, or opens a store, with a key."""

    name: str
    server: str
    """A URL, or the store if `is_store`."""
    source: str
    """What chose the server."""
    key: FoundKey | None = None
    is_store: bool = False
    problem: str = ""
    """Why it cannot be told what the door would use."""


def own_doors(url: str | None, key_file: str | None) -> list[Door]:
    """The doors of this user: the command line with these flags, `holdfast mcp` and the Python client."""
    source = "--url" if url else URL_VARIABLE if os.environ.get(URL_VARIABLE) else "the default"
    cli = Door("cli", address_of(url), source, find_key(key_file, url))
    return [cli, _mcp_door("mcp", None, os.environ), _python_door(os.environ)]


def host_doors(root: Path) -> Iterator[Door]:
    """One door for each entry in a configuration file of a coding agent."""
    for entry in read_host_files(root, os.environ):
        if isinstance(entry, UnreadFile):
            yield Door(entry.file, "", "", problem=f"cannot be read: {entry.problem}")
        elif entry.url is not None:
            key = None if entry.key is None else FoundKey(entry.key, entry.file)
            yield Door(entry.file, entry.url, entry.file, key)
        else:
            yield _mcp_door(entry.file, entry, entry.variables)


def _mcp_door(name: str, entry: HostEntry | None, environ: Mapping[str, str]) -> Door:
    store = None if entry is None else entry.store
    try:
        target = find_target(store, environ)
    except WrongUsage as error:
        return Door(name, "", "", problem=str(error))
    if target.url is not None:
        return Door(name, target.url, target.source, target.key)
    return Door(name, _describe(store, target, environ), target.source, is_store=True)


def _describe(store: str | None, target: McpTarget, environ: Mapping[str, str]) -> str:
    named = store or environ.get(target.source)
    return describe_store(store_address(named) if named else default_store())


def _python_door(environ: Mapping[str, str]) -> Door:
    address = address_of(None, environ)
    source = URL_VARIABLE if environ.get(URL_VARIABLE) else "the default"
    try:
        return Door("python", address, source, environment_key(environ) or configured_key(address, is_named=False))
    except UnusableFile as error:
        return Door("python", address, source, problem=str(error))


class Accounts:
    """Reads the account of each door's key, once for each server and key.

    A server is asked only if it is the user's own choice: a repository must not choose where a key is sent.
    """

    def __init__(self, own: list[Door]) -> None:
        self._own = {address for door in own if not door.is_store for address in addresses_of(door.server)}
        self._known: dict[tuple[str, str], str] = {}

    def of(self, door: Door) -> str:
        """The account; `UNKNOWN` if the server is not asked or does not say."""
        if door.is_store:
            return DEFAULT_ACCOUNT
        if door.key is None or not self._own & set(addresses_of(door.server)):
            return UNKNOWN
        known = (door.server, door.key.key)
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


def describe(door: Door, account: str) -> str:
    """One line about a door. Of the key only its beginning."""
    if door.problem:
        return door.problem
    if door.is_store:
        return f"the store {door.server} ({door.source}), without a server or a key, account {account}"
    if door.key is None:
        return f"{door.server} ({door.source}), no key"
    return f"{door.server} ({door.source}), key {shorten(door.key.key)} from {door.key.source}, account {account}"


def shorten(key: str) -> str:
    """The beginning of a key, by which a person recognises it."""
    return f"{key[: _SHOWN[key.startswith('hf_')]]}…"


def find_split(doors: list[tuple[Door, str]]) -> list[tuple[str, list[str]]]:
    """The fleets that these doors lead to, each with its doors: agents see each other if there is only one."""
    fleets: dict[str, dict[str, list[str]]] = {}
    for door, account in doors:
        if not door.problem and (door.is_store or door.key is not None):
            fleets.setdefault(_server(door), {}).setdefault(account, []).append(door.name)
    for accounts in fleets.values():
        if len(accounts) > 1:  # an account that is not known may be one of the others
            accounts.pop(UNKNOWN, None)
    return [
        (f"{server}, account {account}", list(dict.fromkeys(names)))
        for server, accounts in fleets.items()
        for account, names in accounts.items()
    ]


def _server(door: Door) -> str:
    """The server, or the store unless it is that of the server on this machine: then the server."""
    if door.is_store and door.server != _store_of_default_server():
        return f"the store {door.server}"
    address = next(iter(addresses_of(DEFAULT_URL if door.is_store else door.server)), door.server)
    return address.replace("[127.0.0.1]", "127.0.0.1")


def _store_of_default_server() -> str | None:
    try:
        entry = Servers().find(DEFAULT_URL)
    except UnusableFile:
        return None
    return None if entry is None else entry.store
