"""Keys in the user's configuration folder, found by every program of this user.

`servers.json` has one entry for each server:

    {"http://127.0.0.1:7700": {"key": "hf_live_…", "written_by": "holdfast serve", "store": "/home/ana/x.db"}}

`holdfast serve` writes the entry of its own address. An entry without `written_by` is a person's and is never changed.
The file `key` has one key for whichever server is the default.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from holdfast.addresses import is_this_machine
from holdfast.private_files import UnusableFile, locked, read_private_or_none, write_beside

DEFAULT_URL = "http://127.0.0.1:7700"
KEY_VARIABLE, URL_VARIABLE = "HOLDFAST_API_KEY", "HOLDFAST_URL"
WRITTEN_BY_SERVE = "holdfast serve"
_PORTS = {"http": 80, "https": 443}


class FoundKey(NamedTuple):
    """A key, and where it was found."""

    key: str
    source: str


class ServerEntry(NamedTuple):
    """One entry of `servers.json`."""

    key: str
    is_own: bool
    """Whether a person wrote it."""
    store: str
    """The store of the server that wrote it."""


class Servers:
    """The content of `servers.json`."""

    def __init__(self) -> None:
        self.path = config_folder() / "servers.json"
        self._content: dict[str, Any] = _read_object(self.path)

    def find(self, url: str) -> ServerEntry | None:
        """The entry of a server. `localhost` is the same as 127.0.0.1 and ::1."""
        wanted = addresses_of(url)
        found = [entry for name, entry in self._content.items() if set(addresses_of(name)) & set(wanted)]
        found.sort(key=_is_own, reverse=True)
        return self._parse(url, found[0]) if found else None

    def written_for(self, store: str) -> Iterator[ServerEntry]:
        """Entries that servers on this store wrote, for any address."""
        for url, entry in self._content.items():
            if not _is_own(entry) and entry.get("store") == store:
                yield self._parse(url, entry)

    @property
    def urls(self) -> list[str]:
        """Every server that has an entry."""
        return list(self._content)

    def write_with(self, url: str, key: str, store: str) -> Path:
        """Write a file with this entry beside the present one, which the caller then replaces."""
        entry = {"key": key, "written_by": WRITTEN_BY_SERVE, "store": store}
        return write_beside(self.path, json.dumps(self._content | {url: entry}, indent=2).encode() + b"\n")

    def _parse(self, url: str, entry: Any) -> ServerEntry:
        key = entry.get("key") if isinstance(entry, dict) else None
        if not isinstance(key, str) or not key:
            raise UnusableFile(f'{self.path}: the entry of {url} must have a "key"')
        return ServerEntry(check_key(key), _is_own(entry), str(entry.get("store", "")))


def _is_own(entry: Any) -> bool:
    """Whether a person wrote it."""
    return not isinstance(entry, dict) or entry.get("written_by") != WRITTEN_BY_SERVE


def config_folder() -> Path:
    """The user's configuration folder."""
    import platformdirs  # noqa: PLC0415 - a program with its key in the environment does not need it

    return platformdirs.user_config_path("holdfast")


@contextmanager
def changing_servers() -> Iterator[Servers]:
    """The content of `servers.json`, while no other program changes it."""
    path = config_folder() / "servers.json"
    if not path.is_absolute():
        raise UnusableFile("this user has no home folder")
    with locked(path.with_suffix(".lock")):
        yield Servers()


def address_of(url: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """Address of the server: as given, else HOLDFAST_URL, else the default on this machine."""
    return with_scheme(url or environ.get(URL_VARIABLE) or DEFAULT_URL)


def with_scheme(address: str) -> str:
    """An address without a slash at its end; `localhost:7700` and other loopback addresses get `http://`."""
    address = address.rstrip("/")
    if "://" in address:
        return address
    return f"http://{address}" if is_this_machine(address) else address


def environment_key(environ: Mapping[str, str] = os.environ) -> FoundKey | None:
    """The key in HOLDFAST_API_KEY.

    `${HOLDFAST_API_KEY}` is what some MCP hosts pass on if their configuration names a variable that is not set.
    """
    key = environ.get(KEY_VARIABLE, "").strip()
    return None if not key or key.startswith("${") else FoundKey(check_key(key), KEY_VARIABLE)


def configured_key(url: str, *, is_named: bool) -> FoundKey | None:
    """The key in the user's configuration: a person's entry of the server, the file `key`, the entry of `serve`.

    The file does not say which server it is for, so it is not used for one that the caller named.
    """
    servers = Servers()
    entry = servers.find(url)
    if entry is not None and entry.is_own:
        return FoundKey(entry.key, str(servers.path))
    path = config_folder() / "key"
    text = None if is_named else read_private_or_none(path)
    if text is not None and text.strip():
        return FoundKey(check_key(text), str(path))
    return None if entry is None else FoundKey(entry.key, f"{servers.path}, written by `{WRITTEN_BY_SERVE}`")


def check_key(text: str) -> str:
    """The key without surrounding space; UnusableFile if it cannot be one."""
    key = text.strip()
    if not key.isascii() or not key.isprintable():
        raise UnusableFile("the key must be one line of printable ASCII characters")
    return key


def addresses_of(url: str) -> list[str]:
    """The spellings under which entries of this server are compared, best first; none if it is no address."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return []
    hosts = ["127.0.0.1", "::1"] if parts.hostname == "localhost" else [parts.hostname or ""]
    return [f"{parts.scheme}://[{host}]:{port}{parts.path.rstrip('/')}" for host in hosts]


def _read_object(path: Path) -> dict[str, Any]:
    text = read_private_or_none(path)
    try:
        content = {} if text is None else json.loads(text)
    except json.JSONDecodeError as error:
        raise UnusableFile(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise UnusableFile(f"{path} must be a JSON object with one entry for each server")
    return content
