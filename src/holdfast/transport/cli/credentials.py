"""The key: from a file, the environment, or where keys are kept; never from an argument, which others can see."""

from __future__ import annotations

import importlib.util
import netrc
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.transport.cli.http_sender import BadAddress, address_of

SERVICE = "holdfast"


def read_key(path: str | None, url: str | None) -> str | None:
    """The key in a file, or on stdin for `-`. Without a path: HOLDFAST_API_KEY, then where keys are kept for a server.

    A keyring and .netrc name the server that a key is for. The file in the settings folder does not: its key goes to
    the server one always uses, and not to another that a flag names.
    """
    if path is not None:
        return _clean(sys.stdin.readline() if path == "-" else read_private(path))
    given = _clean(os.environ.get("HOLDFAST_API_KEY", ""))
    return given or _kept_for(address_of(url)) or (_own_file() if url is None else None)


def read_private(path: str) -> str:
    """What is in a file that nobody else can read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(file, encoding="utf-8") as opened:
            if os.fstat(file).st_mode & 0o077:
                raise BadAddress(f"others can read {path}: chmod 600 it")
            return opened.read()
    except OSError as error:
        raise BadAddress(f"cannot read the key in {path}: {error.strerror}") from error


def _kept_for(address: str) -> str | None:
    return _in_keyring(address) or _in_netrc(urlsplit(address).hostname or "")


def _in_keyring(address: str) -> str | None:
    """The password under our name and the server's address; servers without a desktop have no keyring at all."""
    if importlib.util.find_spec("keyring") is None:
        return None
    import keyring  # type: ignore[import-not-found]  # noqa: PLC0415 - only where somebody has it

    try:
        return _clean(keyring.get_password(SERVICE, address) or "") or None
    except keyring.errors.KeyringError:
        return None


def _in_netrc(host: str) -> str | None:
    """The password of exactly this host: an entry for any other server is not ours to send."""
    try:
        entry = netrc.netrc().hosts.get(host)
    except FileNotFoundError:
        return None
    except (OSError, netrc.NetrcParseError) as error:
        raise BadAddress(f"cannot read .netrc: {error}") from error
    return None if entry is None else _clean(entry[2]) or None


def _own_file() -> str | None:
    import platformdirs  # noqa: PLC0415 - needed only where nothing else was found

    path: Path = platformdirs.user_config_path("holdfast") / "key"
    return _clean(read_private(str(path))) or None if path.exists() else None


def _clean(text: str) -> str:
    key = text.strip()
    if not key.isascii() or not (key.isprintable()):
        raise BadAddress("a key is one line of visible characters")
    return key
