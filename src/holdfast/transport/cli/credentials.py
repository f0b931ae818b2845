"""Address of the server and the key for it: from a file, the environment, a keyring or .netrc.

Never from an argument, because other users of the machine can list the arguments of a process.
"""

from __future__ import annotations

import importlib.util
import netrc
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.transport.cli.verbs.verb import WrongUsage

DEFAULT_URL = "http://127.0.0.1:7700"
SERVICE = "holdfast"
"""Service name of our entries in a keyring."""


class BadAddress(WrongUsage):
    """The address or the key cannot be used."""


def address_of(url: str | None) -> str:
    """Address of the server: as given, else HOLDFAST_URL, else the default on this machine."""
    return (url or os.environ.get("HOLDFAST_URL") or DEFAULT_URL).rstrip("/")


def read_key(path: str | None, url: str | None) -> str | None:
    """The key in this file (`-`: stdin). Without a path: HOLDFAST_API_KEY, the keyring, .netrc, the settings folder.

    A keyring and .netrc say which server a key is for. The file in the settings folder does not, so it is not used
    for a server that a flag names.
    """
    if path is not None:
        return _check_key(sys.stdin.readline() if path == "-" else read_private(path))
    address = address_of(url)
    return (
        _check_key(os.environ.get("HOLDFAST_API_KEY", ""))
        or _read_keyring(address)
        or _read_netrc(urlsplit(address).hostname or "")
        or (_read_settings_folder() if url is None else None)
    )


def read_private(path: str) -> str:
    """Content of a file; refused if other users can read it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(file, encoding="utf-8") as opened:
            if os.fstat(file).st_mode & 0o077:
                raise BadAddress(f"other users can read {path}: run chmod 600 on it")
            return opened.read()
    except OSError as error:
        raise BadAddress(f"cannot read the key in {path}: {error.strerror}") from error


def _read_keyring(address: str) -> str | None:
    """The password for our service and this address. Servers without a desktop have no keyring."""
    if importlib.util.find_spec("keyring") is None:
        return None
    import keyring  # type: ignore[import-not-found]

    try:
        return _check_key(keyring.get_password(SERVICE, address) or "") or None
    except keyring.errors.KeyringError:
        return None


def _read_netrc(host: str) -> str | None:
    """The password of exactly this host. The `default` entry is not used: it is for other servers."""
    try:
        entry = netrc.netrc().hosts.get(host)
    except FileNotFoundError:
        return None
    except (OSError, netrc.NetrcParseError) as error:
        raise BadAddress(f"cannot read .netrc: {error}") from error
    return None if entry is None else _check_key(entry[2]) or None


def _read_settings_folder() -> str | None:
    import platformdirs

    path: Path = platformdirs.user_config_path("holdfast") / "key"
    return _check_key(read_private(str(path))) or None if path.exists() else None


def _check_key(text: str) -> str:
    key = text.strip()
    if not key.isascii() or not key.isprintable():
        raise BadAddress("the key must be one line of printable ASCII characters")
    return key
