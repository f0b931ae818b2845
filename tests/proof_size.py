"""Sizes of the expensive proofs: reduced in `make test`, complete in `make prove` (HOLDFAST_PROOF=full)."""

import os

OPERATIONS = "operations in one order"
"""A property of a test: how many operations it recorded and checked. The run prints the sum of each property."""
FULL = os.environ.get("HOLDFAST_PROOF") == "full"


def sized(small: int, full: int) -> int:
    """The size for this run."""
    return full if FULL else small
