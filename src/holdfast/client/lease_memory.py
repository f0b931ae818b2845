"""Lease ids of what an agent holds, kept in a file that only its user can read.

Programs that run one after another, such as the verbs of the command line and the hooks of an agent, are one agent
together: what one claims, another releases. There is one file for each server and agent. A change is made under a lock
and written to a new file that replaces the old one: programs that run at once lose nothing, and a program that is
killed leaves the old file or the new one.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from holdfast.decoding import decode

JOB, RESERVATION, TASK = "job", "reservation", "task"
"""Kinds of what is held."""
KEPT_SECONDS = 7 * 24 * 3600.0
"""How long a lease that was neither released nor found lost is kept after its time is over."""
_LOCK_FILE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE = 0o600


class Entry(msgspec.Struct):
    """A lease that the agent has."""

    lease_id: str
    until: float
    """When its time is over unless it is renewed, by the clock of this machine."""


Entries = dict[str, Entry]
"""By kind and id: `job:deploy/web`."""


class Document(msgspec.Struct):
    """The content of the file. Server and owner are for people who look into it."""

    server: str
    owner: str
    held: Entries


class LeaseMemory:
    """The file of one agent on one server. A problem with it is reported and never raised."""

    def __init__(self, url: str, owner: str, report: Callable[[str], None], folder: Path | None = None) -> None:
        self.url = url
        self.owner = owner
        self._report = report
        name = hashlib.sha256(f"{url}\n{owner}".encode()).hexdigest()[:24]
        self.path = (folder or default_folder()) / f"{name}.json"
        self._process_lock: int | None = None

    @classmethod
    def of_process(cls, url: str, owner: str, report: Callable[[str], None], folder: Path | None = None) -> LeaseMemory:
        """The memory of a process that stays: while it lives, a second one with its owner gets `<owner>-2` instead."""
        for number in itertools.count(1):
            memory = cls(url, owner if number == 1 else f"{owner}-{number}", report, folder)
            if memory._lock_process():
                return memory
        raise AssertionError("unreachable")

    def find(self, kind: str, row_id: str) -> str | None:
        """The lease id of what the agent holds, if it is known."""
        entry = self._read().get(f"{kind}:{row_id}")
        return None if entry is None else entry.lease_id

    def remember(self, kind: str, row_id: str, lease_id: str, seconds: float) -> None:
        """Keep the lease id of what the agent claimed or renewed, and that its time is over after some seconds."""
        entry = Entry(lease_id, time.time() + seconds)
        self._change(lambda entries: entries | {f"{kind}:{row_id}": entry})

    def forget(self, kind: str, row_id: str, lease_id: str) -> None:
        """Remove a lease that is over, unless the agent has another one by now."""
        over = (f"{kind}:{row_id}", lease_id)
        if self.find(kind, row_id) == lease_id:
            self._change(lambda held: {key: each for key, each in held.items() if (key, each.lease_id) != over})

    def close(self) -> None:
        """Let another process have this owner."""
        if self._process_lock is not None:
            os.close(self._process_lock)
            self._process_lock = None

    def _change(self, change: Callable[[Entries], Entries]) -> None:
        """Write the changed entries, without those whose time was over long ago."""
        oldest = time.time() - KEPT_SECONDS
        try:
            with _locked(self.path.with_suffix(".lock")):
                entries = change(self._read())
                self._write({key: entry for key, entry in entries.items() if entry.until > oldest})
        except OSError as error:
            self._report(f"cannot remember lease ids in {self.path}: {error.strerror or error}")

    def _read(self) -> Entries:
        """What the file has; nothing if it is missing or damaged."""
        try:
            with os.fdopen(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                return decode(file.read(), Document).held
        except FileNotFoundError:
            return {}
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._report(f"{self.path} is damaged, so the lease ids in it are lost: it is replaced by the next claim")
        except OSError as error:
            self._report(f"cannot read lease ids in {self.path}: {error.strerror or error}")
        return {}

    def _write(self, entries: Entries) -> None:
        new = self.path.with_suffix(".new")
        with os.fdopen(os.open(new, _NEW_FILE, _PRIVATE), "wb") as file:
            os.fchmod(file.fileno(), _PRIVATE)
            file.write(msgspec.json.encode(Document(self.url, self.owner, entries)))
        new.replace(self.path)

    def _lock_process(self) -> bool:
        """Whether no living process has this memory; then this one has it."""
        try:
            self._process_lock = _open_lock(self.path.with_suffix(".process"))
            fcntl.flock(self._process_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            return False
        except OSError as error:
            self._report(f"cannot lock {self.path}: {error.strerror or error}")
        return True


def default_folder() -> Path:
    """The folder of all agents of this user."""
    import platformdirs  # only a program that claims something needs it

    return platformdirs.user_state_path("holdfast") / "agents"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait until no other program changes the file. The lock is another file, because that one is replaced."""
    file = _open_lock(path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(OSError):
            os.close(file)


def _open_lock(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(path, _LOCK_FILE, _PRIVATE)
