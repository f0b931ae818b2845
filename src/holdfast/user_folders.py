"""Folders of the user for Holdfast's files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

NAME = "holdfast"


def state_folder(platform: str = sys.platform) -> Path:
    """For what programs remember: `~/.local/state/holdfast`, or where the system keeps such files.

    Importing platformdirs takes longer than all else that a hook does, so it is asked only where the answer is not
    simply that of the XDG specification.
    """
    if platform != "linux":
        import platformdirs

        return platformdirs.user_state_path(NAME)
    named = os.environ.get("XDG_STATE_HOME", "")
    return Path(named if named.strip() else Path.home() / ".local" / "state") / NAME
