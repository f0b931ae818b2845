"""Address of the server, and the client that a verb calls it with."""

from __future__ import annotations

import os
from typing import Any

from holdfast.addresses import url_problem
from holdfast.client.client import Client
from holdfast.transport.cli.credentials import BadAddress, address_of, read_key
from holdfast.transport.cli.http_sender import ANSWER_SECONDS, HttpSender


def client_for(arguments: dict[str, Any]) -> Client:
    """Client for the flags --url and --key-file, which it removes from the arguments."""
    url = arguments.pop("url", None)
    return make_client(url, read_key(arguments.pop("key_file", None), url))


def make_client(url: str | None, key: str | None) -> Client:
    """Client for one verb. A request is sent again when its answer is lost, but not when no server is reached."""
    address = address_of(url)
    check_address(address, key)
    return Client(transport=HttpSender(address, key), timeout=ANSWER_SECONDS, deadline=ANSWER_SECONDS)


def check_address(url: str, key: str | None) -> None:
    """Refuse an address that is invalid, or that would send a key unencrypted over the network."""
    insecure = os.environ.get("HOLDFAST_ALLOW_INSECURE_HTTP", "").lower() in {"1", "true"}
    is_plain = url.startswith("http://") and (key is None or insecure)
    problem = url_problem("https" + url.removeprefix("http") if is_plain else url)
    if problem is not None:
        raise BadAddress(f"the address {url}: {problem}")
