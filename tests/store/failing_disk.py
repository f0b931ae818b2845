"""A file system whose flushes can be made to fail."""

from __future__ import annotations

import apsw


class FailingDisk(apsw.VFS):
    """A file system whose next flush can be made to fail, and which counts the writes after that."""

    def __init__(self) -> None:
        super().__init__("failing", "unix", makedefault=True)
        self.fails_at = ""
        """The ending of the file whose next flush fails."""
        self.has_failed = False
        self.writes_since = 0

    def xOpen(self, name, flags):
        return FailingFile(self, name, flags)

    def xDelete(self, filename, syncdir):
        self.writes_since += self.has_failed
        super().xDelete(filename, syncdir)


class FailingFile(apsw.VFSFile):
    def __init__(self, disk: FailingDisk, name, flags) -> None:
        super().__init__("unix", name, flags)
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self._disk = disk

    def xWrite(self, data, offset):
        self._disk.writes_since += self._disk.has_failed
        super().xWrite(data, offset)

    def xTruncate(self, size):
        self._disk.writes_since += self._disk.has_failed
        super().xTruncate(size)

    def xSync(self, flags):
        if self._disk.fails_at and self._path.endswith(self._disk.fails_at):
            self._disk.fails_at, self._disk.has_failed = "", True
            error = apsw.IOError("the disk failed to flush")
            error.extendedresult = apsw.SQLITE_IOERR_FSYNC
            raise error
        super().xSync(flags)
