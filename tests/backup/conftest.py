"""Settings of new stores to copy from and to, and a runner for copies that are killed."""

import itertools
import os
import subprocess

import pytest

from holdfast.settings import Settings
from tests.backup.kill_runner import KillRunner

numbers = itertools.count(1)


@pytest.fixture
def new_store_settings(new_empty_postgres_database, tmp_path):
    """Call it with a kind of store: the settings of a store that does not exist yet."""

    def make(kind):
        url = new_empty_postgres_database() if kind == "postgres" else f"sqlite:///{tmp_path}/{next(numbers)}.db"
        return Settings(store=url)

    return make


@pytest.fixture(scope="module")
def kill_runner():
    """Runs copies that are killed."""
    with KillRunner() as runner:
        yield runner


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["/bin/umount", "--lazy", disk], check=True)
