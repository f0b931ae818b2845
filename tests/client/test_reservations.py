"""Files that are reserved inside a block, with every kind of client."""

import asyncio
import threading
import time

import pytest

import holdfast
from holdfast.client.async_embedded import AsyncEmbeddedTransport
from holdfast.client.embedded import EmbeddedTransport
from holdfast.client.errors import Held, Invalid, LeaseLost, NotFound
from holdfast.client.leases import claims
from holdfast.operations.bounds import Range
from tests.client.test_faults import client_of
from tests.client.test_forks import in_child
from tests.support import in_background, wait_until

pytestmark = pytest.mark.waits(12)


@pytest.fixture
def space(name):
    return f"acme/{name}"


def test_files_are_reserved_inside_the_block_and_free_after_it(client, space):
    with client.reserve("src/auth/**", "README.md", space=space, owner="agent-3", reason="login") as files:
        files.check()
        assert files.paths == ("src/auth/**", "README.md")
        assert (files.space, files.token > 0, 890 < files.remaining <= 900) == (space, True, True)
        found = client.read_reservation(files.reservation_id)
        assert (found["owner"], found["mode"], found["reason"]) == ("agent-3", "exclusive", "login")
        assert client.check_files(space, ["src/auth/a.py"])["all_allowed"] is False
        assert client.check_files(space, ["src/auth/a.py"], [files.lease_id])["all_allowed"] is True
        first = files.token
    assert client.read_reservation(files.reservation_id)["ended"]["how"] == "released"
    assert client.list_reservations(space)["reservations"] == []
    with client.reserve("README.md", space=space) as files:
        assert files.token > first


def test_held_says_which_files_are_in_the_way(client, space):
    with (
        client.reserve("src/auth/**", space=space, owner="agent-3"),
        client.reserve("docs/", space=space, owner="agent-4"),
    ):
        with pytest.raises(Held) as caught, client.reserve("src/*/a.py", "docs/x.md", space=space):
            pytest.fail("two owners at once")
        conflicts = sorted(caught.value.conflicts, key=lambda conflict: conflict["owner"])
        assert [conflict["paths"] for conflict in conflicts] == [
            [{"yours": "src/*/a.py", "theirs": "src/auth/**"}],
            [{"yours": "docs/x.md", "theirs": "docs/"}],
        ]
        assert caught.value.owner in {"agent-3", "agent-4"}
        assert caught.value.retry_after > 0
        assert "1 more conflicting reservations" in str(caught.value)
        with client.reserve("src/other.py", space=space) as files:
            files.check()


def test_shared_files_have_several_holders(client, space):
    with (
        client.reserve("src/**", space=space, mode="shared") as one,
        client.reserve("src/**", space=space, mode="shared") as two,
    ):
        assert one.reservation_id != two.reservation_id
        with pytest.raises(Held) as caught, client.reserve("src/a.py", space=space):
            pytest.fail("exclusive beside shared")
        assert len(caught.value.conflicts) == 2


def test_a_short_reservation_outlives_its_ttl_because_it_is_renewed(client, space):
    with client.reserve("src/**", space=space, ttl_seconds=1) as files:
        for _ in range(25):
            time.sleep(0.1)
            files.check()
        assert client.read_reservation(files.reservation_id)["status"] == "reserved"


def test_check_raises_after_the_files_were_taken_away(client, space):
    with pytest.raises(LeaseLost), client.reserve("src/**", space=space, ttl_seconds=2) as files:
        client.force_release_reservation(files.reservation_id, "we need them")
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            files.check()
            time.sleep(0.02)


def test_lost_files_raise_at_the_end_of_the_block_without_a_check(client, space):
    with pytest.raises(LeaseLost) as caught, client.reserve("src/**", space=space) as files:
        client.force_release_reservation(files.reservation_id, "we need them")
    assert caught.value.document["reason"] == "we need them"


def test_lost_files_can_neither_be_extended_nor_released(client, space):
    with pytest.raises(LeaseLost), client.reserve("src/**", space=space) as files:
        client.force_release_reservation(files.reservation_id, "we need them")
        with pytest.raises(LeaseLost):
            files.extend("docs/")
        assert files.remaining == 0
        files.check()


def test_a_wait_gets_the_files_when_they_are_free(client, space):
    entered = threading.Event()

    def hold():
        with client.reserve("src/**", space=space):
            entered.set()
            time.sleep(0.7)

    first = in_background(hold)
    assert entered.wait(5)
    with client.reserve("src/a.py", "docs/", space=space, ttl_seconds=2, wait=10) as files:
        # It waited for a good part of its TTL: what can be proved begins anew.
        files.check()
        assert files.remaining > 1.5
    first.result(10)


def test_a_wait_that_is_over_is_refused(client, space):
    with client.reserve("src/**", space=space, owner="agent-3"):
        began = time.monotonic()
        with pytest.raises(Held) as caught, client.reserve("src/a.py", space=space, wait=0.6):
            pytest.fail("two owners at once")
        assert 0.5 < time.monotonic() - began < 5
        assert caught.value.owner == "agent-3"


def test_a_wait_that_takes_several_requests_keeps_its_place(space, monkeypatch):
    monkeypatch.setattr(claims, "WAIT", Range(0, 0.3))  # seconds that one request waits at most
    order = []

    def wait(owner):
        with client.reserve("src/**", space=space, owner=owner, wait=20):
            order.append(owner)

    with holdfast.open(":memory:") as client:
        held = client.reserve_files(space, "holder", ["src/a.py"])
        first, second = (threading.Thread(target=wait, args=(owner,)) for owner in ("first", "second"))
        first.start()
        wait_until(lambda: len(client.list_reservations(space)["reservations"]) == 2)
        (waiting,) = [row for row in client.list_reservations(space)["reservations"] if row["status"] == "waiting"]
        monkeypatch.setattr(claims, "WAIT", Range(0, 60))
        second.start()
        time.sleep(0.8)  # the first one has asked again by now
        assert client.read_reservation(waiting["reservation_id"])["status"] == "waiting"
        client.release_files(held["reservation_id"], held["lease_id"])
        first.join(20)
        second.join(20)
    assert order == ["first", "second"]


def test_files_are_added_and_some_are_released(client, space):
    with client.reserve("src/auth/**", "README.md", space=space) as files:
        files.extend("docs/", "Makefile")
        assert files.paths == ("src/auth/**", "README.md", "docs/", "Makefile")
        assert client.check_files(space, ["docs/a.md"], [files.lease_id])["all_allowed"] is True
        assert files.release("README.md", "docs/")["paths"] == ["src/auth/**", "Makefile"]
        assert files.paths == ("src/auth/**", "Makefile")
        with client.reserve("README.md", space=space), pytest.raises(Held), client.reserve("Makefile", space=space):
            pytest.fail("still held")
        files.renew()
        files.check()
    assert client.list_reservations(space)["reservations"] == []


def test_files_that_others_hold_are_not_added_and_the_rest_is_kept(client, space):
    with client.reserve("src/**", space=space) as files, client.reserve("docs/", space=space, owner="agent-5"):
        with pytest.raises(Held) as caught:
            files.extend("Makefile", "docs/a.md")
        assert caught.value.conflicts[0]["paths"] == [{"yours": "docs/a.md", "theirs": "docs/"}]
        assert caught.value.owner == "agent-5"
        assert files.paths == ("src/**",)
        files.check()
        with client.reserve("Makefile", space=space):
            pass


def test_a_pattern_that_is_not_reserved_cannot_be_released(client, space):
    with client.reserve("src/**", space=space) as files:
        with pytest.raises(Invalid, match="not one of the reserved patterns"):
            files.release("src/a.py")
        files.check()
        assert files.paths == ("src/**",)


@pytest.mark.parametrize("paths", [(), ("src/**", "docs/")])
def test_after_everything_was_released_nothing_is_held_and_nothing_raises_at_the_end(client, space, paths):
    with client.reserve("src/**", "docs/", space=space) as files:
        files.release(*paths)
        assert (files.paths, files.remaining) == ((), 0)
        with client.reserve("src/**", space=space):
            pass
        with pytest.raises(LeaseLost, match="you have released"):
            files.check()


def test_a_reservation_for_a_session_is_sure_no_longer_than_the_session(client, space, name):
    session = client.begin_session(name, ttl_seconds=10)
    with client.reserve("src/**", space=space, session_id=session["session_id"]) as files:
        assert 5 < files.remaining <= 10
        files.renew()
        assert 5 < files.remaining <= 10


def test_the_plain_methods_return_the_answers(client, space):
    mine = client.reserve_files(space, "agent-3", ["src/**", "docs/"], ttl_seconds=60, metadata={"branch": "fix"})
    proof = (mine["reservation_id"], mine["lease_id"])
    assert (mine["status"], mine["ttl_seconds"], mine["metadata"]) == ("reserved", 60, {"branch": "fix"})
    assert client.reserve_files(space, "agent-5", ["src/a.py"])["status"] == "held"
    assert client.heartbeat_reservation(*proof, token=mine["token"], ttl_seconds=90)["ttl_seconds"] == 90
    assert client.extend_reservation(*proof, ["Makefile"])["paths"] == ["src/**", "docs/", "Makefile"]
    assert client.release_files(*proof, ["docs/"])["paths"] == ["src/**", "Makefile"]
    (listed,) = client.list_reservations(space, path="src/x.py", owner="agent-3", limit=1)["reservations"]
    assert listed["reservation_id"] == mine["reservation_id"]
    assert client.release_files(*proof)["status"] == "released"
    with pytest.raises(NotFound) as caught:
        client.read_reservation("0" * 8 + "-0000-4000-8000-" + "0" * 12)
    assert caught.value.code == "reservation_not_found"


def test_a_repeated_request_reserves_once(client, space):
    first, second = (
        client.call("reserve_files", space=space, owner="me", paths=["src/**"], idempotency_key=space) for _ in range(2)
    )
    assert first["reservation_id"] == second["reservation_id"]
    assert len(client.list_reservations(space)["reservations"]) == 1


def test_a_child_process_neither_changes_nor_releases_what_its_parent_reserved(sqlite_server, space):
    with client_of(sqlite_server) as client, client.reserve("src/**", space=space) as files:

        def use():
            raised = []
            for act in (files.check, files.release, lambda: files.extend("docs/")):
                try:
                    act()
                except LeaseLost as error:
                    raised.append(error.code)
            files.__exit__(None, None, None)
            return raised

        assert in_child(use)() == {"result": ["forked"] * 3}
        files.check()
        assert client.read_reservation(files.reservation_id)["status"] == "reserved"


class SlowFirstExtension(EmbeddedTransport):
    """A transport on which the answer to the first extension arrives late."""

    def __init__(self):
        super().__init__("memory:")
        self.sent = 0
        self.is_handled = threading.Event()

    def send(self, request, timeout):
        self.sent += request.target.endswith("/extend")
        is_late = request.target.endswith("/extend") and self.sent == 1
        answer = super().send(request, timeout)
        if is_late:
            self.is_handled.set()
            time.sleep(0.4)
        return answer


def test_paths_are_those_of_the_last_change_also_if_an_earlier_answer_is_late(space):
    transport = SlowFirstExtension()
    with holdfast.Client(transport=transport) as client, client.reserve("a", space=space) as files:
        first = in_background(lambda: files.extend("b"))
        assert transport.is_handled.wait(10)
        files.extend("c")
        first.result(10)
        assert files.paths == ("a", "b", "c")


def test_paths_are_those_of_the_last_change_with_the_asyncio_client_too(space):
    class Slow(AsyncEmbeddedTransport):
        sent = 0

        async def send(self, request, timeout):  # noqa: ASYNC109 - the transport's protocol
            self.sent += request.target.endswith("/extend")
            is_late = request.target.endswith("/extend") and self.sent == 1
            answer = await super().send(request, timeout)
            if is_late:
                await asyncio.sleep(0.4)
            return answer

    async def scenario():
        async with holdfast.AsyncClient(transport=Slow("memory:")) as client, client.reserve("a", space=space) as files:
            await asyncio.gather(files.extend("b"), files.extend("c"))
            assert files.paths == ("a", "b", "c")

    asyncio.run(scenario())


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A repository without a space, which is the current folder."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_SPACE", raising=False)
    return tmp_path


@pytest.fixture
def embedded():
    with holdfast.open(":memory:") as client:
        yield client


def test_the_space_is_that_of_the_argument_or_the_environment_or_the_repository(embedded, nowhere, monkeypatch):
    (nowhere / ".holdfast.toml").write_text('space = "acme/shop"\n')
    with embedded.reserve("src/**") as files:
        assert files.space == "acme/shop"
    monkeypatch.setenv("HOLDFAST_SPACE", "acme/other")
    with embedded.reserve("src/**") as files:
        assert files.space == "acme/other"
    with embedded.reserve("src/**", space="acme/third") as files:
        assert files.space == "acme/third"


def test_without_a_space_the_error_says_how_to_set_it(embedded, nowhere):
    with pytest.raises(Invalid, match=r"holdfast init.*HOLDFAST_SPACE") as caught:
        embedded.reserve("src/**")
    assert caught.value.code == "no_space"


def test_a_file_without_a_space_is_named_in_the_error(embedded, nowhere):
    (nowhere / ".holdfast.toml").write_text("")
    with pytest.raises(Invalid, match=r"\.holdfast\.toml must name the space") as caught:
        embedded.reserve("src/**")
    assert caught.value.code == "invalid_space_file"


def test_the_owner_is_that_of_the_argument_or_the_environment_or_the_user(embedded, space, monkeypatch):
    monkeypatch.delenv("HOLDFAST_OWNER", raising=False)
    monkeypatch.setenv("USER", "ana")
    with embedded.reserve("a", space=space) as files:
        assert files.document["owner"].startswith("ana@")
    monkeypatch.setenv("HOLDFAST_OWNER", "agent-7")
    with embedded.reserve("a", space=space) as files:
        assert files.document["owner"] == "agent-7"
    with embedded.reserve("a", space=space, owner="agent-8") as files:
        assert files.document["owner"] == "agent-8"


def test_the_embedded_asyncio_client_reserves_files(space):
    async def scenario():
        async with holdfast.open_async(":memory:") as client:
            async with client.reserve("src/**", space=space, ttl_seconds=1) as files:
                await files.extend("docs/")
                await asyncio.sleep(1.5)
                files.check()
                with pytest.raises(Held):
                    async with client.reserve("docs/a.md", space=space):
                        pytest.fail("two owners at once")
                await files.release("src/**")
                async with client.reserve("src/a.py", space=space, wait=1) as other:
                    assert other.token > files.token
            return (await client.list_reservations(space))["reservations"]

    assert asyncio.run(scenario()) == []
