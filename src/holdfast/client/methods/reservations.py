"""Reservations: files of a repository, held by one owner or shared."""

from __future__ import annotations

from typing import Any

from holdfast.client.methods.base import Caller, R


class ReservationMethods(Caller[R]):
    """Reservations: files of a repository, held by one owner or shared."""

    def reserve_files(
        self,
        space: str,
        owner: str,
        paths: list[str],
        *,
        mode: str | None = None,
        ttl_seconds: int | None = None,
        reason: str | None = None,
        metadata: dict[str, Any] | None = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
        wait_seconds: float | None = None,
        waiting_id: str | None = None,
    ) -> R:
        """Reserve files of a repository, all or none. `mode` is `exclusive` or `shared`.

        `status` in the answer is `reserved`, with `reservation_id`, `lease_id` and `token`; or `held`, with the
        `conflicts`. See `Client.reserve` for a reservation that is renewed and released for you.
        """
        return self.call(
            "reserve_files",
            space=space,
            owner=owner,
            paths=paths,
            mode=mode,
            ttl_seconds=ttl_seconds,
            reason=reason,
            metadata=metadata,
            session_id=session_id,
            session_lease_id=session_lease_id,
            wait_seconds=wait_seconds,
            waiting_id=waiting_id,
        )

    def heartbeat_reservation(
        self,
        reservation_id: str,
        lease_id: str,
        *,
        token: int | None = None,
        ttl_seconds: int | None = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
    ) -> R:
        """Renew a reservation."""
        return self.call(
            "heartbeat_reservation",
            id=reservation_id,
            lease_id=lease_id,
            token=token,
            ttl_seconds=ttl_seconds,
            session_id=session_id,
            session_lease_id=session_lease_id,
        )

    def release_files(
        self,
        reservation_id: str,
        lease_id: str,
        paths: list[str] | None = None,
        *,
        token: int | None = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
    ) -> R:
        """Release all files of a reservation, or some: `paths` are patterns of it, as they were written."""
        return self.call(
            "release_files",
            id=reservation_id,
            lease_id=lease_id,
            paths=paths,
            token=token,
            session_id=session_id,
            session_lease_id=session_lease_id,
        )

    def extend_reservation(
        self,
        reservation_id: str,
        lease_id: str,
        paths: list[str],
        *,
        token: int | None = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
    ) -> R:
        """Add files to a reservation, all or none, at once. `status` is `reserved`, or `held` with `conflicts`."""
        return self.call(
            "extend_reservation",
            id=reservation_id,
            lease_id=lease_id,
            paths=paths,
            token=token,
            session_id=session_id,
            session_lease_id=session_lease_id,
        )

    def offer_reservation(
        self,
        reservation_id: str,
        lease_id: str,
        *,
        note: str | None = None,
        checkpoint: Any = None,
        expires_in_seconds: int | None = None,
        to: str | None = None,
    ) -> R:
        """Offer a reservation to who gets its code: the `offer` of the answer, to be sent with `claim_reservation`.

        The lease lasts until the end of the offer, so you may stop. `to` names the only session that may accept.
        """
        return self.call(
            "offer_reservation",
            id=reservation_id,
            lease_id=lease_id,
            note=note,
            checkpoint=checkpoint,
            expires_in_seconds=expires_in_seconds,
            to=to,
        )

    def withdraw_reservation_offer(self, reservation_id: str, lease_id: str) -> R:
        """Withdraw the offer of a reservation: its ordinary TTL counts from now."""
        return self.call("withdraw_reservation_offer", id=reservation_id, lease_id=lease_id)

    def claim_reservation(
        self,
        reservation_id: str,
        owner: str,
        offer: str,
        *,
        ttl_seconds: int | None = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
    ) -> R:
        """Take over a reservation that was offered, with its code. The answer is that of `reserve_files`."""
        return self.call(
            "claim_reservation",
            id=reservation_id,
            owner=owner,
            offer=offer,
            ttl_seconds=ttl_seconds,
            session_id=session_id,
            session_lease_id=session_lease_id,
        )

    def force_release_reservation(self, reservation_id: str, reason: str) -> R:
        """Release what another owner has reserved; needs a key with the scope `admin`."""
        return self.call("force_release_reservation", id=reservation_id, reason=reason)

    def read_reservation(self, reservation_id: str) -> R:
        """Read a reservation, or how it ended."""
        return self.call("read_reservation", id=reservation_id)

    def list_reservations(
        self,
        space: str | None = None,
        *,
        path: str | None = None,
        owner: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> R:
        """List the reservations, also of one path or owner."""
        return self.call("list_reservations", space=space, path=path, owner=owner, limit=limit, cursor=cursor)

    def check_files(self, space: str, paths: list[str], lease_ids: list[str] | None = None) -> R:
        """Read which files of a repository the caller may change: those that others have not reserved.

        `lease_ids` are those of the caller's own reservations.
        """
        return self.call("check_files", space=space, paths=paths, lease_ids=lease_ids)
