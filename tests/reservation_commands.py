"""Commands of reservations with defaults, for tests."""

from __future__ import annotations

from typing import Any

from holdfast.core.principal import Principal
from holdfast.core.reservation.row import EXCLUSIVE, Request
from holdfast.core.row import SECOND
from holdfast.engine.verbs.reservation_claims import Reserve
from holdfast.engine.verbs.reservations import (
    ExtendReservation,
    ForceReleaseReservation,
    HeartbeatReservation,
    ReleaseReservation,
)
from tests.support import ACCOUNT, ALICE, CAUSE

SPACE = "acme/shop"


def reserve(
    name: str,
    *paths: str,
    mode: str = EXCLUSIVE,
    space: str = SPACE,
    by: Principal = ALICE,
    ttl: int = 60 * SECOND,
    session: str | None = None,
    **more: Any,
) -> Reserve:
    """Reserve paths: `name` is the owner, the id of the reservation and its lease id."""
    request = Request(
        space=space, mode=mode, paths=paths, owner=name, principal=by.id, ttl=ttl, session=session,
        reason=more.pop("reason", None), metadata=more.pop("metadata", None),
    )  # fmt: skip
    return Reserve(
        **{
            "account": by.account,
            "cause": CAUSE,
            "by": by,
            "request": request,
            "reservation_id": name,
            "lease_id": name,
        }
        | more
    )


def _of(name: str, **more: Any) -> dict[str, Any]:
    return {"account": ACCOUNT, "cause": CAUSE, "reservation_id": name} | more


def renew(name: str, **more: Any) -> HeartbeatReservation:
    return HeartbeatReservation(**_of(name, lease_id=name) | more)


def release_paths(name: str, *paths: str, **more: Any) -> ReleaseReservation:
    return ReleaseReservation(**_of(name, lease_id=name, paths=paths) | more)


def extend(name: str, *paths: str, space: str = SPACE, **more: Any) -> ExtendReservation:
    return ExtendReservation(**_of(name, lease_id=name, paths=paths, space=space) | more)


def force(name: str, **more: Any) -> ForceReleaseReservation:
    return ForceReleaseReservation(**_of(name, by="admin", reason="it hangs") | more)
