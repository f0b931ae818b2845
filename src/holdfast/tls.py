"""The certificate and its key, looked at before the server starts, so that what is wrong is told in one line."""

from __future__ import annotations

import ssl
from pathlib import Path


class _Locked(Exception):
    """The key wants a password."""


def tls_problems(tls_cert: str | None, tls_key: str | None) -> list[tuple[str, str]]:
    """(which of the two settings, what is wrong with it); empty if they can be used together, or if neither is set."""
    if tls_cert is None and tls_key is None:
        return []
    if tls_cert is None or tls_key is None:
        return [("tls_cert" if tls_cert is None else "tls_key", "a certificate and its key belong together: set both")]
    unreadable = [
        (name, problem)
        for name, path in (("tls_cert", tls_cert), ("tls_key", tls_key))
        if (problem := _unreadable(path)) is not None
    ]
    return unreadable or _misfit(tls_cert, tls_key)


def _unreadable(path: str) -> str | None:
    try:
        Path(path).read_bytes()
    except OSError as error:
        return f"cannot read {path}: {error.strerror or error}"
    return None


def _misfit(cert: str, key: str) -> list[tuple[str, str]]:
    try:
        ssl.create_default_context().load_verify_locations(cert)
    except ssl.SSLError:
        return [("tls_cert", f"{cert} holds no certificate in PEM form")]
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, _refuse)
    except _Locked:
        return [("tls_key", f"{key} is locked with a password; a server needs one without")]
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            return [("tls_key", f"{key} is not the key of the certificate in {cert}")]
        return [("tls_key", f"{key} holds no private key in PEM form that fits a certificate")]
    return []


def _refuse() -> str:
    raise _Locked
