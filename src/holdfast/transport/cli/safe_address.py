"""Check of the server's address before a key is sent to it."""

from __future__ import annotations

import os

from holdfast.addresses import url_problem
from holdfast.transport.cli.credentials import BadAddress


def check_address(url: str, key: str | None) -> None:
    """Refuse an address that is invalid, or that would send a key unencrypted over the network."""
    insecure = os.environ.get("HOLDFAST_ALLOW_INSECURE_HTTP", "").lower() in {"1", "true"}
    is_plain = url.startswith("http://") and (key is None or insecure)
    problem = url_problem("https" + url.removeprefix("http") if is_plain else url)
    if problem is not None:
        raise BadAddress(f"the address {url}: {problem}")
