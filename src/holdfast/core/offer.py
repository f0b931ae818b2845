"""Offers: a holder lets a taker that knows a code become the holder, without a moment in which nobody holds it.

While an offer is open its row is held until the end of the offer and belongs to no session, so the giver may stop. The
rules need only the columns that every row with a lease has: `proof`, `expires_at`, `session` and `offer`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, cast

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import OfferRefused, OfferRestricted
from holdfast.core.row import Instant, Row
from holdfast.decoding import decode

R = TypeVar("R", bound=Row)

OFFERED, OFFER_WITHDRAWN, HANDED_OVER = "offered", "offer_withdrawn", "handed_over"
"""Verbs of the events of an offer; the last one is also how the giver's lease ends."""


class Offer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The offer of a holder, as the column `offer` keeps it."""

    proof: str
    """SHA-256 of the code. Only the code proves that a taker was meant."""
    until: Instant
    lasts: Instant
    """For how long the offer was made."""
    to: str | None = None
    """The name of the only session that may accept it."""
    session: str | None = None
    """The session that the row was claimed for: it belongs to it again when the offer is withdrawn or over."""


class Offerable(Protocol):
    """The columns of a row whose holder can offer it."""

    @property
    def id(self) -> str:
        """The id of the row."""

    @property
    def expires_at(self) -> Instant | None:
        """When the lease expires while it is held, else None."""

    @property
    def session(self) -> str | None:
        """The session with which the lease ends."""

    @property
    def offer(self) -> str | None:
        """An Offer as JSON."""


def offer_of(row: Offerable) -> Offer | None:
    """The last offer of the present holder, open or over."""
    return None if row.offer is None else decode(row.offer, Offer)


def open_offer(row: Offerable, now: Instant) -> Offer | None:
    """The offer that can be accepted now."""
    offer = offer_of(row)
    return offer if offer is not None and offer.until > now else None


def claimed_for(row: Offerable) -> str | None:
    """The session that a row was claimed for, also while it is offered."""
    offer = None if row.session is not None else offer_of(row)
    return row.session if offer is None else offer.session


def make(row: R, *, proof: str, to: str | None, lasts: Instant, now: Instant) -> R:
    """Offer a held row, in the place of an earlier offer: it is held at least until the end of the offer."""
    held = cast("Offerable", row)
    offer = Offer(proof=proof, until=now + lasts, lasts=lasts, to=to, session=claimed_for(held))
    return _with_offer(row, offer, session=None, expires_at=max(held.expires_at or 0, offer.until))


def withdraw(row: R) -> R:
    """The row without its offer, in the session that it was claimed for. The caller sets its deadline."""
    return replace(row, offer=None, session=claimed_for(cast("Offerable", row)))


def without_past_offer(row: R, now: Instant) -> R:
    """The row as its holder's next write finds it: once its offer is over, it belongs to its session again."""
    held = cast("Offerable", row)
    return row if held.offer is None or open_offer(held, now) is not None else withdraw(row)


def renewed_until(row: Offerable, until: Instant, now: Instant) -> Instant:
    """The deadline after a renewal to `until`: a renewal never shortens a lease that is offered."""
    return until if open_offer(row, now) is None else max(until, row.expires_at or 0)


def check_code(row: Offerable, proof: str, session_name: str | None, now: Instant) -> None:
    """Refuse a taker whose code does not accept the open offer, or that is not the session that it names."""
    offer = offer_of(row)
    if offer is None:
        raise OfferRefused(
            f"{row.id} has no open offer: it was never made, withdrawn, or accepted already", reason="no_offer"
        )
    if offer.proof != proof:
        raise OfferRefused(
            f"the code does not belong to the offer of {row.id}: it is wrong, or a newer offer replaced it",
            reason="wrong_code",
        )
    if offer.until <= now:
        raise OfferRefused(f"the offer of {row.id} has expired", reason="expired", ended_at=offer.until)
    if offer.to is not None and offer.to != session_name:
        raise OfferRestricted(f"this offer of {row.id} is for another session", to=offer.to)


def with_end(row: R, end: Callable[[Offer], Instant]) -> R:
    """The row with another end of its offer, where outages and changes of the clock move deadlines."""
    offer = offer_of(cast("Offerable", row))
    if offer is None or (until := end(offer)) == offer.until:
        return row
    return _with_offer(row, replace(offer, until=until))


def longest(row: Offerable, ttl: Instant) -> Instant:
    """The longest time that the row can be held without a renewal: its TTL, or that of its offer."""
    offer = offer_of(row)
    return ttl if offer is None else max(ttl, offer.lasts)


def _with_offer(row: R, offer: Offer, **columns: Instant | None) -> R:
    return replace(row, offer=msgspec.json.encode(offer).decode(), **columns)
