"""A purchase: a plan that somebody wants to pay for, from the first ask to the money."""

from __future__ import annotations

import msgspec


class Capture(msgspec.Struct, frozen=True):
    """Money that a provider has taken."""

    id: str
    """One payment, one id: it activates a plan once."""
    purchase_id: str
    """What the provider was told the money is for."""
    cents: int
    currency: str
