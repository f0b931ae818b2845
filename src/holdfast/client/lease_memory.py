"""Lease ids of what an agent holds, and the secret of its session, kept in a file that only its user can read.

Programs that run one after another, such as the verbs of the command line and the hooks of an agent, are one agent
together: what one claims, another releases. There is one file for each server and agent. A change is made under a lock
and written to a new file that replaces the old one: programs that run at once lose nothing, and a program that is
killed leaves the old file or the new one.

The standard library reads and writes it, because hooks run before every tool call of an agent and must start quickly.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.private_files import locked, open_lock, write_beside
from holdfast.user_folders import state_folder

JOB, RESERVATION, TASK = "job", "reservation", "task"
"""Kinds of what is held."""
KEPT_SECONDS = 7 * 24 * 3600.0
"""How long a lease that was neither released nor found lost is kept after its time is over."""
FORMER_IDS = 8
"""How many earlier lease ids of one grant are kept."""


class Entry(NamedTuple):
    """A lease that the agent has."""

    lease_id: str
    until: float
    """When its time is over unless it is renewed, by the clock of this machine."""
    seconds: float = 0.0
    """How long it lasted when it was claimed or last renewed."""
    former: tuple[str, ...] = ()
    """Lease ids that it had before the agent resumed its session."""


class SessionSecret(NamedTuple):
    """What resumes the session of the agent's process."""

    name: str
    secret: str


Entries = dict[str, Entry]
"""By kind and id: `job:deploy/web`."""


class Document(NamedTuple):
    """The content of the file, which also has the server and the owner for people who look into it."""

    held: Entries
    session: SessionSecret | None = None


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
        entry = self._read().held.get(f"{kind}:{row_id}")
        return None if entry is None else entry.lease_id

    def find_current(self, kind: str, row_id: str, given: str) -> str:
        """The lease id by which the agent holds it now, if it was `given` one from before it resumed its session."""
        entry = self._read().held.get(f"{kind}:{row_id}")
        return entry.lease_id if entry is not None and given in entry.former else given

    def all(self) -> dict[tuple[str, str], Entry]:
        """Every lease that is known, by kind and id."""
        found = ((key.partition(":"), entry) for key, entry in self._read().held.items())
        return {(kind, row_id): entry for (kind, _, row_id), entry in found}

    def remember(self, kind: str, row_id: str, lease_id: str, seconds: float) -> None:
        """Keep the lease id of what the agent claimed, and that its time is over after some seconds."""
        key, entry = f"{kind}:{row_id}", Entry(lease_id, time.time() + seconds, seconds)

        def change(entries: Entries) -> Entries:
            known = entries.get(key)
            is_same = known is not None and known.lease_id == lease_id
            return entries | {key: entry._replace(former=known.former) if known and is_same else entry}

        self._change_held(change)

    def renew(self, kind: str, row_id: str, lease_id: str, seconds: float) -> None:
        """Keep that a lease was renewed, if it is still the one that the agent has."""
        if self.find(kind, row_id) == lease_id:
            self.update({(kind, row_id): (lease_id, seconds)}, ())

    def update(self, renewed: dict[tuple[str, str], tuple[str, float]], over: Iterable[tuple[str, str, str]]) -> None:
        """Keep the seconds that renewed leases last, and forget those (kind, id, lease id) that are over.

        A lease id that another program has replaced meanwhile stays as it is.
        """
        now = time.time()
        left = {(f"{kind}:{row_id}", lease): seconds for (kind, row_id), (lease, seconds) in renewed.items()}
        ended = {(f"{kind}:{row_id}", lease_id) for kind, row_id, lease_id in over}

        def change(entries: Entries) -> Entries:
            changed = {}
            for key, entry in entries.items():
                seconds = left.get((key, entry.lease_id))
                if seconds is not None:
                    changed[key] = entry._replace(until=now + seconds, seconds=seconds)
                elif (key, entry.lease_id) not in ended:
                    changed[key] = entry
            return changed

        self._change_held(change)

    def reissue(self, kind: str, row_id: str, lease_id: str, seconds: float) -> None:
        """Keep the new lease id of what the agent holds since before it resumed its session, beside the former ones."""
        key = f"{kind}:{row_id}"

        def change(entries: Entries) -> Entries:
            known = entries.get(key)
            former = () if known is None else (known.lease_id, *known.former)[:FORMER_IDS]
            return entries | {key: Entry(lease_id, time.time() + seconds, seconds, former)}

        self._change_held(change)

    def forget(self, kind: str, row_id: str, lease_id: str) -> None:
        """Remove a lease that is over, unless the agent has another one by now."""
        if self.find(kind, row_id) == lease_id:
            self.update({}, [(kind, row_id, lease_id)])

    def session(self) -> SessionSecret | None:
        """What resumes the session of the agent's last process, if it had one."""
        return self._read().session

    def remember_session(self, session: SessionSecret | None) -> None:
        """Keep what resumes the session, or forget it."""
        self._change(lambda document: document._replace(session=session))

    def close(self) -> None:
        """Let another process have this owner."""
        if self._process_lock is not None:
            os.close(self._process_lock)
            self._process_lock = None

    def _change_held(self, change: Callable[[Entries], Entries]) -> None:
        """Write the changed entries, without those whose time was over long ago."""
        oldest = time.time() - KEPT_SECONDS

        def change_document(document: Document) -> Document:
            held = {key: entry for key, entry in change(document.held).items() if entry.until > oldest}
            return document._replace(held=held)

        self._change(change_document)

    def _change(self, change: Callable[[Document], Document]) -> None:
        try:
            with locked(self.path.with_suffix(".lock")):
                self._write(change(self._load()))
        except OSError as error:
            self._report(f"cannot remember lease ids in {self.path}: {error.strerror or error}")

    def _read(self) -> Document:
        """What the file has; nothing if it is missing, damaged or cannot be read now."""
        try:
            return self._load()
        except OSError as error:
            self._report(f"cannot read lease ids in {self.path}: {error.strerror or error}")
        return Document({})

    def _load(self) -> Document:
        """What the file has; nothing if it is missing or damaged. One that cannot be read now must not be replaced."""
        try:
            with os.fdopen(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                return _decode(file.read())
        except FileNotFoundError:
            return Document({})
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            self._report(f"{self.path} is damaged, so the lease ids in it are lost: it is replaced by the next claim")
        return Document({})

    def _write(self, document: Document) -> None:
        held = {key: entry._asdict() for key, entry in document.held.items()}
        content = {"server": self.url, "owner": self.owner, "held": held}
        if document.session is not None:
            content["session"] = document.session._asdict()
        write_beside(self.path, json.dumps(content).encode()).replace(self.path)

    def _lock_process(self) -> bool:
        """Whether no living process has this memory; then this one has it."""
        try:
            self._process_lock = open_lock(self.path.with_suffix(".process"))
            fcntl.flock(self._process_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            return False
        except OSError as error:
            self._report(f"cannot lock {self.path}: {error.strerror or error}")
        return True


def owners_of(url: str, kind: str, row_id: str, folder: Path | None = None) -> list[str]:
    """The owners of this user whose memories have a lease of this job, task or reservation; none that is unreadable."""
    found = []
    for path in (folder or default_folder()).glob("*.json"):
        try:
            document = json.loads(path.read_bytes())
            if document["server"] == url and f"{kind}:{row_id}" in document["held"]:
                found.append(_text(document["owner"]))
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            continue
    return sorted(found)


def default_folder() -> Path:
    """The folder of all agents of this user."""
    return state_folder() / "agents"


def _decode(content: bytes) -> Document:
    """The content of a file. Raises one of several exceptions if it is damaged."""
    document: dict[str, Any] = json.loads(content)
    _text(document["server"]), _text(document["owner"])
    held = {key: _decode_entry(entry) for key, entry in document["held"].items()}
    session = document.get("session")
    if session is None:
        return Document(held)
    return Document(held, SessionSecret(_text(session["name"]), _text(session["secret"])))


def _decode_entry(entry: dict[str, Any]) -> Entry:
    former = tuple(map(_text, entry.get("former", ())))
    return Entry(_text(entry["lease_id"]), float(entry["until"]), float(entry.get("seconds", 0)), former)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
