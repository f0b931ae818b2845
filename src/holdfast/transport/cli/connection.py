"""Address of the server, and the client that a verb calls it with."""

from __future__ import annotations

from typing import Any

from holdfast.client.client import Client
from holdfast.transport.cli.credentials import address_of, read_key
from holdfast.transport.cli.http_sender import ANSWER_SECONDS, HttpSender
from holdfast.transport.cli.safe_address import check_address


def client_for(arguments: dict[str, Any]) -> Client:
    """Client for the flags --url and --key-file, which it removes from the arguments."""
    url = arguments.pop("url", None)
    return make_client(url, read_key(arguments.pop("key_file", None), url))


def make_client(url: str | None, key: str | None) -> Client:
    """Client for one verb. A request is sent again when its answer is lost, but not when no server is reached."""
    address = address_of(url)
    check_address(address, key)
    return Client(transport=HttpSender(address, key), timeout=ANSWER_SECONDS, deadline=ANSWER_SECONDS)
