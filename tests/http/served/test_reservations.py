"""Reservations that wait over HTTP: served in order, skipped after a disconnect, continued by the waiting id."""

import json
import socket

import pytest

from tests.http.job_client import Callers, fresh, ok
from tests.support import wait_until


@pytest.fixture
def space():
    return fresh("acme/shop")


def body_of(space, owner, *paths, **fields):
    return {"space": space, "owner": owner, "paths": paths, **fields}


def reserve(caller, *given, **fields):
    return ok(caller.post("/v1/reservations", body_of(*given, **fields)))


def release(caller, reserved, **fields):
    path = f"/v1/reservations/{reserved['reservation_id']}/release"
    return ok(caller.post(path, {"lease_id": reserved["lease_id"], **fields}))


def waiting(caller, space):
    listed = ok(caller.get(f"/v1/reservations?space={space.replace('/', '%2F')}"))["reservations"]
    return [each["owner"] for each in listed if each["status"] == "waiting"]


def test_a_waiter_gets_the_files_when_some_paths_are_released(alice, bob, space):
    held = reserve(alice, space, "alice", "src/", "docs/")
    with Callers() as callers:
        waiter = callers.send(reserve, bob, space, "bob", "src/a", wait_seconds=30)
        wait_until(lambda: waiting(alice, space) == ["bob"])
        assert release(alice, held, paths=["src/"])["paths"] == ["docs/"]
        got, _ = waiter.result(20)
    assert (got["status"], got["paths"]) == ("reserved", ["src/a"])
    assert waiting(alice, space) == []


def test_a_caller_whose_connection_is_cut_is_in_nobodys_way(server, alice, bob, space):
    reserve(alice, space, "alice", "src/a")
    body = json.dumps(body_of(space, "gone", "src/", wait_seconds=60)).encode()
    head = f"POST /v1/reservations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {bob.token}\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        wait_until(lambda: waiting(alice, space) == ["gone"])
        answer = reserve(alice, space, "late", "src/b")
        assert (answer["status"], answer["waiting"]) == ("held", 1)
    wait_until(lambda: reserve(alice, space, "late", "src/b")["status"] == "reserved")


def test_who_asks_again_with_its_waiting_id_stays_before_those_who_came_later(alice, bob, space):
    held = reserve(alice, space, "alice", "src/")
    first = reserve(bob, space, "first", "src/a", wait_seconds=0.05)
    assert (first["status"], bool(first["waiting_id"])) == ("held", True)
    with Callers() as callers:
        later = callers.send(reserve, alice, space, "later", "src/*", wait_seconds=30)
        wait_until(lambda: sorted(waiting(alice, space)) == ["first", "later"])
        again = callers.send(reserve, bob, space, "first", "src/a", wait_seconds=30, waiting_id=first["waiting_id"])
        release(alice, held)
        got, _ = again.result(20)
        assert got["status"] == "reserved"
        assert not later.done()
        release(bob, got)
        assert later.result(20)[0]["status"] == "reserved"


def test_a_waiting_id_is_of_no_use_to_another_principal(alice, bob, space):
    reserve(alice, space, "alice", "src/")
    place = reserve(bob, space, "bob", "src/a", wait_seconds=0.05)["waiting_id"]
    answer = reserve(alice, space, "thief", "src/a", waiting_id=place)
    assert sorted(each["owner"] for each in answer["conflicts"]) == ["alice", "bob"]
    assert answer.get("waiting_id") is None
