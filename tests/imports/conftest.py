"""Stores with a driven clock, an OctoStore file with everything in it, and servers on what was imported."""

from __future__ import annotations

import time
import uuid
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from tests.compat.octostore.server import ADMIN_KEY
from tests.http.in_process_app import InProcessServer
from tests.imports.octostore_database import Database
from tests.support import STORES, DrivenClock, make_store

ALICE, BOB = "alice-token-0123456789abcdef", "short"


@pytest.fixture
def clock():
    """A clock that only the test moves; it begins at the real time, with which answers are compared."""
    return DrivenClock(time.time_ns() // 1000)


@pytest.fixture(params=STORES)
def store(request, tmp_path, clock):
    """Each store."""
    with ExitStack() as stack:
        if request.param == "postgres":
            yield stack.enter_context(request.getfixturevalue("postgres_stores").store(clock))
            return
        store = make_store(request.param, tmp_path, str, clock)
        stack.callback(store.close)
        yield store


@pytest.fixture
def memory(clock, tmp_path):
    return make_store("memory", tmp_path, str, clock)


@pytest.fixture
def octostore(tmp_path, clock):
    """An empty OctoStore file."""
    octostore = Database(tmp_path / "octostore.db", clock.now)
    yield octostore
    octostore.close()


@pytest.fixture
def full(octostore):
    """A file with records of every kind, and what its clients know."""
    alice, bob = octostore.user("alice", ALICE), octostore.user("bob", BOB, namespace="team")
    session, leader = octostore.session(alice), str(uuid.uuid4())
    known = SimpleNamespace(alice=alice, bob=bob, session=session, leader=leader)
    known.deploy = octostore.lock("deploy/web", alice, 7, metadata='{"branch":"fix"}')
    known.held_by_session = octostore.lock("by-session", session, 8, session_id=session, ephemeral=1)
    known.delayed = octostore.lock("team.delayed", bob, 9, lock_delay_seconds=15)
    known.guarded = octostore.lock("guarded", alice, 10)
    known.election = octostore.lock("__election/some-room", leader, 11, metadata='{"candidate_id":"n1","metadata":"x"}')
    octostore.lock("over", alice, 12, ends=-1)
    octostore.lock("just-over", alice, 13, ends=-10, lock_delay_seconds=30)
    octostore.session(bob, ends=-1)
    octostore.delay("cooling", 25, ends=20)
    octostore.delay("cooled", 25, ends=-1)
    octostore.acl("guarded", "user:Alice", f"token:{ALICE}")
    octostore.acl("reserved", "user:bob")
    known.webhook = octostore.webhook(alice, secret="webhook-secret", lock_pattern="deploy*")
    octostore.webhook(bob, active=0)
    known.path = octostore.close()
    return known


@pytest.fixture
def serve():
    """Start a server in this process on a store."""
    servers = []

    def serve(store, **variables):
        named = {f"HOLDFAST_{name}": value for name, value in variables.items()}
        servers.append(InProcessServer(store, {"HOLDFAST_ADMIN_KEY": ADMIN_KEY, **named}))
        return servers[-1]

    yield serve
    for server in servers:
        server.close()
