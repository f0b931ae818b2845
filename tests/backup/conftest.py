"""Stores to copy, and a place to copy them to."""

import itertools
import os
import subprocess

import pytest

from holdfast.settings import Settings
from tests.backup.victim import Victims

numbers = itertools.count(1)


@pytest.fixture
def new_place(new_postgres_database, tmp_path):
    """Call it with a kind for the settings of a store that is not there yet."""

    def place(kind):
        url = new_postgres_database() if kind == "postgres" else f"sqlite:///{tmp_path}/{next(numbers)}.db"
        return Settings(store=url)

    return place


@pytest.fixture(scope="module")
def victims():
    """Runs copies that are killed."""
    with Victims() as victims:
        yield victims


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], check=True)
    yield place
    subprocess.run(["/bin/umount", "--lazy", place], check=True)
