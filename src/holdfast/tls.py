"""Checks the TLS certificate and key before the server starts, so that an error is one line of text."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path


class _Locked(Exception):
    """The key is encrypted with a password."""


def tls_problems(tls_cert: str | None, tls_key: str | None) -> list[tuple[str, str]]:
    """(setting, problem) pairs; empty if certificate and key can be used together, or if neither is set."""
    if tls_cert is None and tls_key is None:
        return []
    if tls_cert is None or tls_key is None:
        return [("tls_cert" if tls_cert is None else "tls_key", "a certificate needs its key: set both")]
    problems = [
        (name, problem)
        for name, path in (("tls_cert", tls_cert), ("tls_key", tls_key))
        if (problem := _read_problem(path)) is not None
    ]
    return problems or _load_problems(tls_cert, tls_key) or _mode_problems(tls_key)


def _read_problem(path: str) -> str | None:
    try:
        Path(path).read_bytes()
    except OSError as error:
        return f"cannot read {path}: {error.strerror or error}"
    return None


def _mode_problems(key: str) -> list[tuple[str, str]]:
    """A group may be allowed to read the key, as distributions do for their servers; everybody may not."""
    if Path(key).stat().st_mode & stat.S_IROTH:
        return [("tls_key", f"every user of this machine can read the private key {key}: run chmod 600 on it")]
    return []


def _load_problems(cert: str, key: str) -> list[tuple[str, str]]:
    try:
        ssl.create_default_context().load_verify_locations(cert)
    except ssl.SSLError:
        return [("tls_cert", f"{cert} contains no certificate in PEM format")]
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, _refuse_password)
    except _Locked:
        return [("tls_key", f"{key} is encrypted with a password; remove the password")]
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            return [("tls_key", f"{key} is not the key of the certificate in {cert}")]
        return [("tls_key", f"{key} contains no private key in PEM format that fits the certificate")]
    return []


def _refuse_password() -> str:
    raise _Locked
