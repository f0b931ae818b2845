"""The key of this machine: `serve` writes it to the user's configuration, where the user's programs find it."""

from __future__ import annotations

import platform
import secrets

from holdfast.app import KEY_BYTES
from holdfast.core.acl import hash_token
from holdfast.core.errors import HoldfastError
from holdfast.core.event import Cause
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.principal import MACHINE, MACHINE_SCOPES, Principal, admin_principal, format_key, mask_key
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.keys import CreateKey
from holdfast.private_files import UnusableFile
from holdfast.server_keys import DEFAULT_URL, Servers, addresses_of, changing_servers
from holdfast.transport.ids import ids


def provide_machine_key(engine: Engine, url: str, store: str) -> str:
    """See that the configuration has a key for this server; returns a line for the operator.

    An entry that works is kept. One that a server wrote and this store refuses is replaced; a person's is left. Servers
    on one store share a key.
    """
    try:
        with changing_servers() as servers:
            entry = servers.find(url)
            if entry is not None and entry.is_own:
                works = "" if _accepts(engine, entry.key) else ", whose key this server refuses"
                return f"use your own entry in {servers.path}{works}"
            if entry is None or not _accepts(engine, entry.key):
                _add_entry(engine, servers, url, store)
    except (OSError, UnusableFile, HoldfastError) as error:
        return f"need HOLDFAST_API_KEY: the key of this machine could not be written: {error}"
    needed = "nothing" if addresses_of(url) == addresses_of(DEFAULT_URL) else f"only HOLDFAST_URL={url}"
    return f"on this machine need {needed}: their key is in {servers.path}"


def _add_entry(engine: Engine, servers: Servers, url: str, store: str) -> None:
    """Write an entry, with the key that another server on this store wrote, or with a new one."""
    known = (entry.key for entry in servers.written_for(store) if _accepts(engine, entry.key))
    key = next(known, None)
    secret = key or format_key(secrets.token_bytes(KEY_BYTES))
    written = servers.write_with(url, secret, store)
    try:
        if key is None:
            _create(engine, secret)  # when it is certain that it can be written, so that no unused key is left
        written.replace(servers.path)
    except (OSError, HoldfastError):
        written.unlink()
        raise


def _create(engine: Engine, secret: str) -> None:
    key = Principal(
        DEFAULT_ACCOUNT,
        ids.uuid(),
        name=f"machine {platform.node()}",
        source=MACHINE,
        key_hash=hash_token(secret),
        shown=mask_key(secret),
        scopes=MACHINE_SCOPES,
    )
    by = admin_principal(DEFAULT_ACCOUNT, "")
    engine.call(
        CreateKey(account=DEFAULT_ACCOUNT, cause=Cause("settings", ""), by=by, by_hash="", key_id=key.id, key=key)
    )


def _accepts(engine: Engine, key: str) -> bool:
    return engine.read(lambda reader: reader.principal(hash_token(key))) is not None
