"""Address of the server and the key for it: from a file, the environment, a keyring, .netrc or the configuration.

Never from an argument, because other users of the machine can list the arguments of a process.
"""

from __future__ import annotations

import importlib.util
import netrc
import os
import sys
from collections.abc import Mapping
from urllib.parse import urlsplit

from holdfast import private_files
from holdfast.private_files import UnusableFile
from holdfast.server_keys import FoundKey, address_of, check_key, configured_key, environment_key
from holdfast.transport.cli.verbs.verb import WrongUsage

__all__ = ["BadAddress", "address_of", "find_key", "read_key", "read_private"]

SERVICE = "holdfast"
"""Service name of our entries in a keyring."""


class BadAddress(WrongUsage):
    """The address or the key cannot be used."""


def read_key(path: str | None, url: str | None) -> str | None:
    """The key that `find_key` finds."""
    found = find_key(path, url)
    return None if found is None else found.key


def find_key(path: str | None, url: str | None, environ: Mapping[str, str] = os.environ) -> FoundKey | None:
    """The key in this file (`-`: stdin). Without a path: HOLDFAST_API_KEY, the keyring, .netrc, the configuration.

    `url` is the server that a flag names, if one does.
    """
    try:
        if path is not None:
            key = check_key(sys.stdin.readline() if path == "-" else read_private(path))
            return FoundKey(key, "stdin" if path == "-" else path)
        address = address_of(url, environ)
        return (
            environment_key(environ)
            or _read_keyring(address)
            or _read_netrc(urlsplit(address).hostname or "")
            or configured_key(address, is_named=url is not None)
        )
    except UnusableFile as error:
        raise BadAddress(str(error)) from error


def read_private(path: str) -> str:
    """Content of a file; refused if other users can read it."""
    try:
        return private_files.read_private(path)
    except UnusableFile as error:
        raise BadAddress(str(error)) from error


def _read_keyring(address: str) -> FoundKey | None:
    """The password for our service and this address. Servers without a desktop have no keyring."""
    if importlib.util.find_spec("keyring") is None:
        return None
    import keyring  # type: ignore[import-not-found]

    try:
        key = check_key(keyring.get_password(SERVICE, address) or "")
    except keyring.errors.KeyringError:
        return None
    return FoundKey(key, "the keyring") if key else None


def _read_netrc(host: str) -> FoundKey | None:
    """The password of exactly this host. The `default` entry is not used: it is for other servers."""
    try:
        entry = netrc.netrc().hosts.get(host)
    except FileNotFoundError:
        return None
    except (OSError, netrc.NetrcParseError) as error:
        raise BadAddress(f"cannot read .netrc: {error}") from error
    key = "" if entry is None else check_key(entry[2])
    return FoundKey(key, ".netrc") if key else None
