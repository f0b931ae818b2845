"""Commands by which the holder of a reservation offers it to a taker, and withdraws the offer."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core import offer as offers
from holdfast.core.lease import SESSION_ENDED, proof_of
from holdfast.core.reservation import lifecycle
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant
from holdfast.engine.verbs.job_offers import is_session_live
from holdfast.engine.verbs.reservations import ChangedReservation, HolderOfReservation, find_reservation
from holdfast.engine.view import View


class OfferReservation(HolderOfReservation, frozen=True, kw_only=True):
    """Offer the reservation to whoever claims it with the code. Its answer shows the code, so it is never stored."""

    code: str
    lasts: Instant
    to: str | None = None
    note: str | None = None
    checkpoint: str | None = None

    def size(self) -> int:
        """The size of its texts."""
        return len(self.note or "") + len(self.checkpoint or "")

    def decide(self, view: View) -> ChangedReservation:
        """The offered reservation: it is held at least until the end of the offer, and belongs to no session."""
        row = self.find_held(view)
        left = replace(
            row,
            note=row.note if self.note is None else self.note,
            checkpoint=row.checkpoint if self.checkpoint is None else self.checkpoint,
        )
        offered = offers.make(left, proof=proof_of(self.code), to=self.to, lasts=self.lasts, now=view.now)
        return ChangedReservation(row=view.put(offered, offers.OFFERED), now=view.now)


class WithdrawReservationOffer(HolderOfReservation, frozen=True, kw_only=True):
    """Withdraw the offer of a reservation; without an offer nothing changes."""

    def stored(self, view: View) -> Reservation:
        """The reservation, with an offer that is over as well: withdrawing it ends it if its session is over."""
        return find_reservation(view, self.account, self.reservation_id)

    def decide(self, view: View) -> ChangedReservation:
        """The reservation with its ordinary deadline, in its session again; ended if that session is over."""
        row = self.find_held(view)
        if row.offer is None:
            return self.changed(view, row)
        kept = offers.withdraw(row)
        if not is_session_live(view, kept.account, kept.session):
            ended = lifecycle.end(kept, SESSION_ENDED, now=view.now, reason="session ended")
            return ChangedReservation(row=view.put(ended, "released"), now=view.now)
        kept = view.put(replace(kept, expires_at=view.now + kept.ttl), offers.OFFER_WITHDRAWN)
        return self.changed(view, kept)
