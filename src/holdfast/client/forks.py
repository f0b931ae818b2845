"""Clients in a child process after `fork()`: connections, threads and locks of the parent cannot be used there.

A child is a copy of the parent with one thread. A connection that both used would give the answers of one to the other;
a lock that another thread of the parent held would never be released; nothing renews the parent's leases.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

from holdfast.client.errors import LeaseLost, WrongProcess


class Forkable(Protocol):
    """An object that must drop what it shares with the parent."""

    def after_fork(self) -> None:
        """Called in the child, before any other code of the child."""


_forkable: weakref.WeakSet[Forkable] = weakref.WeakSet()


def call_after_fork(forkable: Forkable) -> None:
    """Call the object's `after_fork` in every child, as long as the object exists."""
    _forkable.add(forkable)


def copy_event(event: threading.Event) -> threading.Event:
    """An event in the same state with a lock of its own: another thread of the parent may have held the old one."""
    copy = threading.Event()
    if event.is_set():
        copy.set()
    return copy


def _run_in_child() -> None:
    for each in list(_forkable):
        each.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_run_in_child)


def store_of_parent() -> WrongProcess:
    """The error for an embedded store that was opened before the fork."""
    return WrongProcess(
        "this store was opened by the parent process, and its threads do not exist in this child process",
        hint="Open the store again in the child: holdfast.open(path).",
    )


def lease_of_parent(what: str) -> LeaseLost:
    """The error for a lease that was claimed before the fork."""
    return LeaseLost(
        f"{what} is held by the parent process, which renews it; this child process does not",
        code="forked",
        hint="Claim it in the process that uses it, or let the parent do this step.",
    )
