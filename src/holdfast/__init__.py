"""Holdfast: one live owner, a visible history and automatic recovery for every piece of agent work."""

__version__ = "0.1.0"

__all__ = ["__version__"]
