"""A real server, and `holdfast` as a process."""

import itertools

import pytest

from tests.cli.shell import Shell
from tests.compat.octostore.server import Server

ROOT_KEY = "the-root-key-of-the-command-line-tests"
names = itertools.count(1)


@pytest.fixture(scope="package")
def server(tmp_path_factory):
    server = Server(f"sqlite:///{tmp_path_factory.mktemp('cli')}/x.db", ROOT_KEY=ROOT_KEY).start()
    yield server
    server.close()


@pytest.fixture
def shell(server, tmp_path):
    """A shell with the address of the server and its root key."""
    return Shell(server.port, ROOT_KEY, tmp_path)


@pytest.fixture
def job():
    """An unused job name."""
    return f"job/{next(names)}"
