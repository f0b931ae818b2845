"""Default owner name: `HOLDFAST_OWNER`, else user@host."""

from __future__ import annotations

import os
import platform
import pwd


def default_owner() -> str:
    """HOLDFAST_OWNER, else the user and the machine, such as `ana@laptop`."""
    return os.environ.get("HOLDFAST_OWNER") or f"{_user()}@{platform.node() or 'localhost'}"


def _user() -> str:
    """USER or LOGNAME; without them, as under cron or in a container, the name of the user id, or the id itself."""
    named = os.environ.get("USER") or os.environ.get("LOGNAME")
    if named:
        return named
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"
