"""Verb `doctor`: checks everything that verbs depend on, and prints what to do about each problem."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from holdfast import __version__
from holdfast.client.client import Client
from holdfast.client.errors import AuthError, HoldfastError
from holdfast.server_keys import WRITTEN_BY_SERVE, FoundKey
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.connection import make_client
from holdfast.transport.cli.display.styles import coloured
from holdfast.transport.cli.next_steps import START_SERVER, known_servers
from holdfast.transport.cli.output import escape, is_document, print_document
from holdfast.transport.cli.repository import Repository
from holdfast.transport.cli.server_setup.store_clock import set_store_clock
from holdfast.transport.cli.targets.targets import (
    Accounts,
    ProgramTarget,
    describe,
    group_by_account,
    host_targets,
    own_targets,
    shorten,
)
from holdfast.transport.cli.verbs.verb import Invocation

_CLOCK_TOLERANCE = 5.0
"""Seconds between the two clocks that are worth a warning. Leases do not depend on it, only displayed times do."""

_GET_KEY = (
    "run `holdfast serve` on this machine as this user, which writes a key, or set HOLDFAST_API_KEY to one that the"
    " operator gives you; do not register: a new account does not see the other agents' work"
)
_OTHER_SERVER = (
    "the server that answers is not the one that wrote this key: it may be another user's. Start yours with another"
    " --port and set HOLDFAST_URL to its address, or set HOLDFAST_API_KEY to a key of this server"
)
_NEW_KEY = (
    "set HOLDFAST_API_KEY to a key of this server; if all are lost, start it once with HOLDFAST_ROOT_KEY set to a new"
    " one of 24 characters or more"
)
_SAME_ACCOUNT = (
    "agents in different accounts do not see each other: unset HOLDFAST_URL and HOLDFAST_API_KEY to use this machine's"
    " server, or set both to the same values for every program"
)


class Finding(NamedTuple):
    """Result of one check."""

    what: str
    detail: str
    advice: str = ""
    status: int = exit_status.OK
    facts: Mapping[str, str | None] = MappingProxyType({})
    """More about it, for programs."""

    @property
    def is_ok(self) -> bool:
        return self.status == exit_status.OK

    @property
    def label(self) -> str:
        """How it is marked: wrong, worth a look, or good."""
        return "BAD " if not self.is_ok else "WARN" if self.advice else "ok  "


def run(invocation: Invocation) -> int:
    """Run all checks and print them; the exit status is that of the worst."""
    arguments = invocation.arguments
    if arguments["set_clock"]:
        return set_store_clock(arguments["store"])
    targets = own_targets(arguments["url"], arguments["key_file"])
    url, key = targets[0].server, None if targets[0].key is None else targets[0].key.key
    client = make_client(url, key)
    server = _check_server(client, url)
    findings = [_check_program(), server, _check_store(client)]
    if server.is_ok:
        findings += [_check_key(client, targets[0].key), _check_clock(client)]
    findings += _check_targets(targets)
    if is_document(invocation.output):
        print_document([_to_document(finding) for finding in findings], invocation.output)
    else:
        for finding in findings:
            print(f"{coloured(finding.label)} {finding.what:<8} {escape(finding.detail)}")
            if finding.advice:
                print(f"     {'':<8} -> {finding.advice}")
    return max(finding.status for finding in findings)


def _check_targets(own: list[ProgramTarget]) -> list[Finding]:
    """What each program of this user and each coding agent of this repository would use, and whether they agree."""
    targets, accounts = [*own, *host_targets(Repository().root)], Accounts(own)
    known = [(target, accounts.of(target)) for target in targets]
    findings = []
    for target, account in known:
        has_none = not target.is_store and target.key is None and not target.problem
        facts = {"server": target.server, "server_source": target.source, "account": account, **_key_facts(target.key)}
        advice = "correct it" if target.problem else _how_to_get_a_key() if has_none else ""
        findings.append(Finding(target.name, describe(target, account), advice, facts=facts))
    groups = group_by_account(known)
    if len(groups) > 1:
        detail = "; ".join(f"{', '.join(names)}: {account}" for account, names in groups)
        findings.append(Finding("accounts", f"these programs use different accounts: {detail}", _SAME_ACCOUNT))
    return findings


def _how_to_get_a_key() -> str:
    return ". ".join((_GET_KEY, *known_servers()))


def _key_facts(key: FoundKey | None) -> dict[str, str | None]:
    return {"key": None if key is None else shorten(key.key), "key_source": None if key is None else key.source}


def _to_document(finding: Finding) -> dict[str, object]:
    return {
        "what": finding.what,
        "ok": finding.is_ok,
        "told": finding.detail,
        "advice": finding.advice,
        "status": finding.status,
        **finding.facts,
    }


def _check_program() -> Finding:
    python = ".".join(map(str, sys.version_info[:3]))
    return Finding("program", f"holdfast {__version__} on Python {python}")


def _check_server(client: Client, url: str) -> Finding:
    try:
        version = str(client.call("version").get("version", "?"))
    except HoldfastError as error:
        advice = ". ".join((START_SERVER, *known_servers()))
        return Finding("server", error.message, advice, exit_status.UNREACHABLE)
    advice = "" if version == __version__ else f"this program is {__version__}: install the same version on both"
    return Finding("server", f"holdfast {version} at {url}", advice)


def _check_store(client: Client) -> Finding:
    try:
        document = client.call("readyz")
        if document.get("damaged_rows"):
            advice = "run `holdfast verify` on the server's machine: it names each of them and what is wrong"
            return Finding("store", f"{document.get('store')}: it has damaged rows", advice, exit_status.UNREACHABLE)
        return Finding("store", str(document.get("store")))
    except HoldfastError as error:
        advice = "read the server's log, and check its disk or database"
        return Finding("store", error.message, advice, exit_status.UNREACHABLE)


def _check_key(client: Client, key: FoundKey | None) -> Finding:
    if key is None:
        return Finding("key", "there is no key for this server", _how_to_get_a_key(), exit_status.DENIED)
    try:
        account = client.call("read_account")
    except AuthError as error:
        advice = _OTHER_SERVER if WRITTEN_BY_SERVE in key.source else _NEW_KEY
        return Finding("key", error.message, advice, exit_status.DENIED)
    except HoldfastError as error:
        return Finding("key", error.message, error.hint, exit_status.UNREACHABLE)
    name, scopes = account["key"]["name"], " ".join(account["key"]["scopes"])
    plan = account["plan"]["planId"]
    return Finding("key", f"{name} of account {account['accountId']}, scopes {scopes}, plan {plan}")


def _check_clock(client: Client) -> Finding:
    """Compare the server's clock with ours, as exactly as the health document allows."""
    try:
        job = client.call("health")["leaseExpiryJob"]
    except (HoldfastError, KeyError):
        return Finding("clock", "the server does not report its time")
    if job.get("lastRunAt") is None:
        return Finding("clock", "the server has not reported its time yet")
    server_time = datetime.fromisoformat(job["lastRunAt"]).timestamp() + (job.get("staleSec") or 0)
    difference = abs(time.time() - server_time)
    advice = ""
    if difference >= _CLOCK_TOLERANCE:
        advice = "synchronize both clocks with NTP; if the store's clock stays ahead, run `holdfast doctor --set-clock`"
    return Finding("clock", f"{difference:.0f} s from the server's", advice)
