"""`agent_contract` of the list of what a key holds."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.holdings.held_by import Holding
from holdfast.core.session import Session
from holdfast.transport.advice.contract import Contract, action, contract

_RENEW = "Before `expires_in_seconds` is over, each with its lease id."


def listed(rows: Sequence[Holding], next_page: str | None = None) -> Contract:
    """A page of what the caller's key holds; `next_page` is the query of the next one."""
    if next_page is not None:
        return contract(action("list_mine", query=next_page, best=True, why="There is more."))
    session = next((row for row in rows if isinstance(row, Session)), None)
    if session is not None:
        renew = action("heartbeat_session", session.id, best=True, why="Renews the session and everything it holds.")
        return contract(renew, action("heartbeat_leases", why=_RENEW))
    if rows:
        return contract(action("heartbeat_leases", best=True, why=_RENEW))
    return contract(action("claim_job", best=True, why="You hold nothing."), action("claim_task"))
