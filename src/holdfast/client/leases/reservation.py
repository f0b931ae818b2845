"""How files are reserved, and what both clients keep of a reservation. Nothing here sends."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.client.errors import Document, Held, HoldfastError, Invalid, LeaseLost
from holdfast.client.leases.base import LeaseBase
from holdfast.client.leases.claims import advised_pause, wait_seconds
from holdfast.client.leases.state import Duration, Terms
from holdfast.owner import default_owner
from holdfast.space import HOW_TO_SET, InvalidSpaceFile, find_space


class ReservationClaim(msgspec.Struct, frozen=True):
    """Claim of files."""

    space: str
    owner: str
    paths: tuple[str, ...]
    more: dict[str, Any]
    """The other fields of the operation."""
    operation: str = "reserve_files"

    def arguments(self, left: float, /) -> dict[str, Any]:
        fields = {"space": self.space, "owner": self.owner, "paths": self.paths}
        return fields | self.more | {"wait_seconds": wait_seconds(left)}

    def terms(self, document: Document) -> Terms | None:
        if document["status"] != "reserved":
            return None
        lease_id, reservation_id = document["lease_id"], document["reservation_id"]
        return Terms(
            what=f"the reservation of {_enumerate(document['paths'])}",
            token=document["token"],
            **self.duration(document)._asdict(),
            proof={"id": reservation_id, "lease_id": lease_id},
            renewal="heartbeat_reservation",
            release="release_files",
            document=document,
            entry={"reservation_id": reservation_id, "lease_id": lease_id},
        )

    def duration(self, document: Document, /) -> Duration:
        return Duration(float(document["expires_in_seconds"]), float(document["heartbeat_every_seconds"]))

    def refusal(self, document: Document) -> HoldfastError:
        return _held(document)

    def pause(self, _: Document, /) -> float:
        return 0.0


class ReservationBase(LeaseBase):
    """Reserved files."""

    _changed: Document | None = None
    """The last answer to a change of the paths."""

    @property
    def reservation_id(self) -> str:
        """The id by which others read it; no proof."""
        return str(self.terms.proof["id"])

    @property
    def lease_id(self) -> str:
        """The proof of being the holder, such as for `check_files`. Keep it secret."""
        return str(self.terms.proof["lease_id"])

    @property
    def space(self) -> str:
        """The repository."""
        return str(self.document["space"])

    @property
    def paths(self) -> tuple[str, ...]:
        """The patterns that are reserved now."""
        return () if self.is_settled else tuple((self._changed or self.document)["paths"])

    def changed(self, document: Document) -> Document:
        """Keep the answer to a release or an extension. Raises Held if it is what others hold."""
        if document["status"] == "held":
            raise _held(document, "You keep what you have. Leave the other files alone, or extend again later.")
        if document["status"] == "released":
            self.is_settled = True
            self.state.refused(LeaseLost(f"you have released {self.terms.what}"))
        self._changed = document
        return document


def reservation_claim(
    paths: tuple[str, ...], *, space: str | None, owner: str | None, more: dict[str, Any]
) -> ReservationClaim:
    """The claim of files. The space defaults to that of the repository in which the program runs."""
    return ReservationClaim(space or _space_of_repository(), owner or default_owner(), paths, more)


def _space_of_repository() -> str:
    try:
        space = find_space()
    except InvalidSpaceFile as error:
        raise Invalid(str(error), code="invalid_space_file") from error
    if space is None:
        raise Invalid("the space of this repository is not known", code="no_space", hint=f"Pass `space`. {HOW_TO_SET}")
    return space


def _held(document: Document, hint: str | None = None) -> Held:
    first, *others = document["conflicts"]
    yours, theirs = (first["paths"][0][side] for side in ("yours", "theirs"))
    how = "waited for" if first["status"] == "waiting" else "reserved"
    text = f"{yours} is {how} by {first['owner']}" + (f" with {theirs}" if theirs != yours else "")
    text += f", and there are {len(others)} more conflicting reservations" if others else ""
    return Held(text, hint=hint, retry_after=advised_pause(document), document=document)


def _enumerate(paths: list[str]) -> str:
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
