"""`agent_contract` of the list of what a key holds."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.holdings.held_by import Holding
from holdfast.core.session import Session
from holdfast.transport.advice.contract import Contract, action, continue_work, contract

_RENEW = "Before `expires_in_seconds` is over, each with its lease id."


def listed(rows: Sequence[Holding], next_page: str | None = None) -> Contract:
    """A page of what the caller's key holds; `next_page` is the query of the next one."""
    if next_page is not None:
        return contract(action("list_mine", query=next_page, best=True, why="There is more."))
    if not rows:
        return continue_work("You hold nothing.", action("claim_job"), action("claim_task"))
    renewals = [action("heartbeat_leases", why=_RENEW)]
    session = next((row for row in rows if isinstance(row, Session)), None)
    if session is not None:
        why = "Renews the session and everything it holds."
        renewals.insert(0, action("heartbeat_session", session.id, why=why))
    return continue_work("Go on with what is yours, and renew it. Other agents may use this key too.", *renewals)
