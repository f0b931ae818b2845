"""Holdfast: one live owner, a visible history and automatic recovery for every piece of agent work.

Names are fetched when they are first used, so that `import holdfast` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.client.aio import AsyncClient
    from holdfast.client.client import Client
    from holdfast.client.errors import HoldfastError

__version__ = "0.1.0"

__all__ = ["AsyncClient", "Client", "HoldfastError", "__version__"]

_ROOMS = {
    "AsyncClient": "holdfast.client.aio",
    "Client": "holdfast.client.client",
    "HoldfastError": "holdfast.client.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_ROOMS[name]), name)
    globals()[name] = found
    return found
