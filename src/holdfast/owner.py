"""The name under which this program holds things, where none is given."""

from __future__ import annotations

import os
import platform


def default_owner() -> str:
    """HOLDFAST_OWNER, else the user and the machine, such as `ana@laptop`."""
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or "user"
    return os.environ.get("HOLDFAST_OWNER") or f"{user}@{platform.node()}"
