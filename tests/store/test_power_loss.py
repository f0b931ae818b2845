"""Power loss at any write: acknowledged changes survive, whatever the disk did with unflushed data.

A file system of our own remembers what was flushed and what was only written. At chosen moments it takes an image:
everything flushed, and of what was only written a random half of the sectors, torn at 512 bytes. Each image is then
opened like any file after a crash. Two controls show that the proof can fail: a store that does not flush at every
commit, and a disk that lies.
"""

from __future__ import annotations

import random
from pathlib import Path

import apsw
import pytest

from holdfast.core.lease import Lease
from holdfast.engine.verbs.job_claims import Claimed
from holdfast.store.sqlite import SqliteStore
from tests.proof_size import sized
from tests.support import check_log, claim, every, release, transact

SECTOR = 512
IMAGES = sized(10, 400)
STEPS = sized(60, 150)


class Contents:
    """One file: its flushed content, and the writes since."""

    def __init__(self) -> None:
        self.durable = bytearray()
        self.pending: list[tuple[int, bytes]] = []

    def image(self, rng: random.Random) -> bytes:
        """The content after a crash: each unflushed sector is written or not, at random."""
        image = bytearray(self.durable)
        for offset, data in self.pending:
            for start in range(0, len(data), SECTOR):
                if rng.random() < 0.5:
                    put(image, offset + start, data[start : start + SECTOR])
        return bytes(image)


def put(image: bytearray, offset: int, data: bytes) -> None:
    if len(image) < offset:
        image.extend(bytes(offset - len(image)))
    image[offset : offset + len(data)] = data


class PowerDisk(apsw.VFS):
    """A file system that records what was flushed."""

    def __init__(self, rng: random.Random, *, lies: bool = False) -> None:
        super().__init__("power", "unix", makedefault=True)
        self.files: dict[str, Contents] = {}
        self.rng = rng
        self.lies = lies
        self.acknowledged: list[tuple[str, int]] = []
        self.images: list[tuple[dict[str, bytes], int]] = []

    def xOpen(self, name, flags):
        return PowerFile(self, name, flags)

    def xDelete(self, filename, syncdir):
        self.files.pop(filename, None)
        super().xDelete(filename, syncdir)

    def moment(self) -> None:
        """Take an image here, at random: the state after a power loss at this moment."""
        if self.rng.random() < 0.15:
            files = {path: contents.image(self.rng) for path, contents in self.files.items()}
            self.images.append((files, len(self.acknowledged)))


class PowerFile(apsw.VFSFile):
    """A file that reports its writes and syncs to its disk."""

    def __init__(self, disk: PowerDisk, name, flags) -> None:
        super().__init__("unix", name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._disk = disk
        self._contents = disk.files.setdefault(path, Contents()) if path else Contents()

    def xWrite(self, data, offset):
        self._disk.moment()
        self._contents.pending.append((offset, bytes(data)))
        super().xWrite(data, offset)

    def xSync(self, flags):
        self._disk.moment()
        if not self._disk.lies:
            for offset, data in self._contents.pending:
                put(self._contents.durable, offset, data)
            self._contents.pending.clear()
        super().xSync(flags)


@pytest.fixture
def power(tmp_path):
    """Runs claims and releases on a new disk; returns the images it took."""
    disks = []

    def run(*, lies: bool = False, synchronous: str | None = None) -> PowerDisk:
        disk = PowerDisk(random.Random(7), lies=lies)
        disks.append(disk)
        store = SqliteStore(tmp_path / "power.db")
        store.open()
        if synchronous is not None:
            store._writer.pragma("synchronous", synchronous)
        store.checkpoint_pages = 20  # often, so that power losses during checkpoints are tested too
        disk.images.clear()
        for step in range(STEPS):
            work(store, disk, step)
        store.close()
        disk.unregister()
        return disk

    yield run
    for disk in disks:
        disk.unregister()


def work(store: SqliteStore, disk: PowerDisk, step: int) -> None:
    commands = [claim(f"job-{step}-{number}", f"l{step}-{number}") for number in range(3)]
    if step:
        commands.append(release(f"job-{step - 1}-0", f"l{step - 1}-0"))
    outcomes = transact(store, *commands)
    disk.acknowledged += [
        (outcome.lease.id, outcome.lease.token) for outcome in outcomes if isinstance(outcome, Claimed)
    ]


def losses(disk: PowerDisk, folder: Path) -> int:
    """In how many images an acknowledged change is missing."""
    lost = 0
    every = max(len(disk.images) // IMAGES, 1)
    for number, (files, known) in enumerate(disk.images[::every][:IMAGES]):
        place = folder / f"image-{number}"
        place.mkdir()
        for path, data in files.items():
            (place / Path(path).name).write_bytes(data)
        lost += not survives(place / "power.db", dict(disk.acknowledged[:known]))
    return lost


def survives(path: Path, acknowledged: dict[str, int]) -> bool:
    store = SqliteStore(path)
    try:
        store.open()
        tokens = {lease.id: lease.token for lease in every(store, Lease)}
        with store.read() as reader:
            following = reader.next_token()
            whole = reader.value("PRAGMA integrity_check") == "ok"
        check_log(store)
    except Exception:
        return False
    finally:
        store.close()
    kept = all(tokens.get(name) == token for name, token in acknowledged.items())
    return whole and kept and following > max(acknowledged.values(), default=0)


def test_acknowledged_changes_survive_power_loss_at_any_write(power, tmp_path, covered):
    disk = power()
    assert len(disk.images) >= IMAGES
    assert len(disk.acknowledged) == 3 * STEPS
    covered("disk images after a power loss", IMAGES)
    assert losses(disk, tmp_path) == 0


def test_the_proof_notices_a_commit_that_is_not_flushed(power, tmp_path):
    assert losses(power(synchronous="normal"), tmp_path) > 0


def test_the_proof_notices_a_disk_that_does_not_flush(power, tmp_path):
    assert losses(power(lies=True), tmp_path) > 0
