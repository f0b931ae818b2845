"""`holdfast doctor`: looks at everything a verb depends on, and says what to do about what is wrong."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from holdfast import __version__
from holdfast.client.client import Client
from holdfast.client.errors import AuthError, HoldfastError
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.credentials import read_key
from holdfast.transport.cli.http_sender import address_of, client_of
from holdfast.transport.cli.output import bold, document, escape, is_document
from holdfast.transport.cli.verbs.verb import Verb

_FAR_OFF = 5.0
"""Seconds between two clocks that are worth a word. No lease depends on it: only times that people read do."""


class Finding(NamedTuple):
    """What was looked at, how it is, and what to do."""

    what: str
    ok: bool
    told: str
    advice: str = ""
    status: int = exit_status.OK


def run(verb: Verb, arguments: dict[str, Any]) -> int:  # noqa: ARG001 - every room has this shape
    """Look, show, and tell by the exit status what is worst."""
    url, key = address_of(arguments["url"]), read_key(arguments["key_file"], arguments["url"])
    client = client_of(url, key)
    looks: tuple[Callable[[Client, str], Finding], ...] = (_program, _server, _store)
    findings = [look(client, url) for look in looks]
    if findings[1].ok:
        findings += [_key(client, key), _clock(client)]
    if is_document(arguments["output"]):
        document([finding._asdict() for finding in findings], arguments["output"])
    else:
        for finding in findings:
            print(f"{bold('ok ' if finding.ok else 'BAD')}  {finding.what:<8} {escape(finding.told)}")
            if finding.advice:
                print(f"     {'':<8} -> {finding.advice}")
    return max(finding.status for finding in findings)


def _program(_: Client, __: str) -> Finding:
    python = ".".join(map(str, sys.version_info[:3]))
    return Finding("program", True, f"holdfast {__version__} on Python {python}")  # noqa: FBT003 - a row of a table


def _server(client: Client, url: str) -> Finding:
    try:
        version = str(client.call("version").get("version", "?"))
    except HoldfastError as error:
        advice = "start one with `holdfast serve`, or name another with --url or HOLDFAST_URL"
        return Finding("server", ok=False, told=error.message, advice=advice, status=exit_status.UNREACHABLE)
    older = "" if version == __version__ else f"this program is {__version__}: install the same version on both sides"
    return Finding("server", ok=True, told=f"holdfast {version} at {url}", advice=older)


def _store(client: Client, _: str) -> Finding:
    try:
        return Finding("store", ok=True, told=str(client.call("readyz").get("store")))
    except HoldfastError as error:
        advice = "look at the server's log and at the disk or the database under it"
        return Finding("store", ok=False, told=error.message, advice=advice, status=exit_status.UNREACHABLE)


def _key(client: Client, key: str | None) -> Finding:
    if key is None:
        advice = "set HOLDFAST_API_KEY to the key that `holdfast serve` printed at its first start"
        return Finding("key", ok=False, told="none is set", advice=advice, status=exit_status.DENIED)
    try:
        account = client.call("read_account")
    except AuthError as error:
        advice = "ask for a new one, or start the server once with HOLDFAST_ROOT_KEY set"
        return Finding("key", ok=False, told=error.message, advice=advice, status=exit_status.DENIED)
    except HoldfastError as error:
        return Finding("key", ok=False, told=error.message, advice=error.hint, status=exit_status.UNREACHABLE)
    scopes = " ".join(account["key"]["scopes"])
    told = (
        f"{account['key']['name']} of account {account['accountId']}, opens {scopes}, plan {account['plan']['planId']}"
    )
    return Finding("key", ok=True, told=told)


def _clock(client: Client) -> Finding:
    """The server's clock against ours, as well as one health document can tell."""
    try:
        told = client.call("health")["leaseExpiryJob"]
    except (HoldfastError, KeyError):
        return Finding("clock", ok=True, told="the server does not tell its time")
    if told.get("lastRunAt") is None:
        return Finding("clock", ok=True, told="the server has not told its time yet")
    theirs = datetime.fromisoformat(told["lastRunAt"]).timestamp() + (told.get("staleSec") or 0)
    apart = time.time() - theirs
    advice = "" if abs(apart) < _FAR_OFF else "set both clocks by NTP; leases do not depend on it, but times look wrong"
    return Finding("clock", ok=True, told=f"{abs(apart):.0f} s from the server's", advice=advice)
