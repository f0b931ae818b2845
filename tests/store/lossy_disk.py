"""An ext4 file system on a loop file that can lose power: what was not flushed is gone after the next mount.

The shutdown request of ext4 stops every write at once, also those that wait in the page cache and in the journal.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.postgres import memory_folder

SIZE = 512 << 20
SHUTDOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN."""
WITHOUT_FLUSH = 2
"""EXT4_GOING_FLAGS_NOLOGFLUSH: the journal is not written either, as if the power had failed."""


class LossyDisk:
    """One mounted file system."""

    def __init__(self) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root may mount a file system that loses power")
        self._folder = Path(tempfile.mkdtemp(prefix="hf-power-", dir=memory_folder()))
        self._folder.chmod(0o755)  # PostgreSQL runs as the user `nobody`
        self._image, self.path = self._folder / "image", self._folder / "disk"
        self.path.mkdir()
        with self._image.open("wb") as file:
            file.truncate(SIZE)
        try:
            _run("/sbin/mkfs.ext4", "-q", "-F", "-m", "0", self._image)
            self.mount()
        except (OSError, subprocess.CalledProcessError) as error:
            self.remove()
            reason = getattr(error, "stderr", "") or error
            pytest.skip(f"this machine cannot mount ext4 on a loop file: {reason}")
        nobody = pwd.getpwnam("nobody")
        os.chown(self.path, nobody.pw_uid, nobody.pw_gid)

    def mount(self) -> None:
        """Mount it; ext4 repeats what its journal has."""
        _run("/bin/mount", "-t", "ext4", "-o", "loop", self._image, self.path)

    def unmount(self) -> None:
        """Unmount it; no process may use it."""
        _run("/bin/umount", self.path)

    def flush(self) -> None:
        """Write everything to the disk: what was set up before a test counts as old."""
        _run("/bin/sync", "--file-system", self.path)

    def lose_power(self) -> None:
        """From now on nothing reaches the disk, and every write fails."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, WITHOUT_FLUSH.to_bytes(4, "little"))
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Leave nothing behind, whatever happened before."""
        subprocess.run(["/bin/umount", "--lazy", self.path], check=False, capture_output=True)
        self._image.unlink(missing_ok=True)
        self.path.rmdir()
        self._folder.rmdir()


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
