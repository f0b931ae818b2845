"""How large a proof is: small in `make test`, whole in `make prove`."""

import os

FULL = os.environ.get("HOLDFAST_PROOF") == "full"


def sized(small: int, full: int) -> int:
    return full if FULL else small
