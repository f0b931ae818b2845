"""One caller cannot take the server away from the others: by large bodies, by wrong keys, or by too many requests."""

import asyncio
import json
import threading
from functools import partial
from operator import le

import msgspec
import pytest

from holdfast.core.errors import Invalid, Overloaded
from holdfast.core.event import Cause
from holdfast.core.principal import Principal
from holdfast.core.row import SECOND
from holdfast.engine.verbs.locks import AcquireLock
from holdfast.store.sqlite import SqliteStore
from holdfast.transport.http import reads
from holdfast.transport.http.access import auth
from holdfast.transport.http.bodies.parsing import parse_body
from holdfast.transport.http.context import BODY_BUDGET
from holdfast.transport.http.octostore import lock_list
from holdfast.transport.http.overload import request_limiter
from holdfast.transport.http.overload.byte_budget import ByteBudget
from holdfast.transport.http.streams.limits import LOCK_LISTS_PER_ACCOUNT
from tests.compat.octostore.expect import eventually
from tests.http.concurrent_app import KEY, REMOTE, ConcurrentApp, longest_pause

MIB = 1024 * 1024
PIECE = b" " * 65_536
WRONG = "nobody-knows-this-token-number-"


class Body(msgspec.Struct, forbid_unknown_fields=True):
    owner: str
    ttl_seconds: int = 60


def unknown_fields(size):
    """JSON fields whose names resemble a known one, `size` bytes in all."""
    count = size // 18
    return ",".join(f'"ttl_sec{number:07}":0' for number in range(count)), count


# -- large bodies ------------------------------------------------------------------------------------------------


def test_only_the_first_unknown_fields_are_named():
    body, warnings = parse_body(json.dumps({"owner": "me", **{f"ttl_second{n}": 1 for n in range(500)}}).encode(), Body)
    assert body.owner == "me"
    assert len(warnings) == 11
    assert "did you mean 'ttl_seconds'" in warnings[0]
    assert warnings[-1] == "490 more unknown fields were ignored"


def test_a_long_unknown_name_is_shortened_and_gets_no_hint():
    _, (warning,) = parse_body(json.dumps({"owner": "me", "ttl_seconds" * 20: 1}).encode(), Body)
    assert len(warning) < 150
    assert "did you mean" not in warning


def test_a_missing_field_is_compared_with_few_names():
    with pytest.raises(Invalid) as found:
        parse_body(json.dumps({f"x{n}": 1 for n in range(100)} | {"owne": 1}).encode(), Body)
    assert found.value.errors[0]["message"] == "`owner` is required"


@pytest.mark.parametrize(("size", "status"), [(200_000, 200), (MIB - 200, 400)])
def test_a_large_body_does_not_hold_the_event_loop(size, status):
    fields, count = unknown_fields(size)

    async def scenario(app):
        body = f'{{"items": [{{"op": "resolve", "id": "x"}}], {fields}}}'.encode()
        call, task = app.begin("/v1/tasks/batch", pieces=[body])
        pause = await longest_pause(task)
        return call, pause

    call, pause = ConcurrentApp().run(scenario)
    assert call.status == status
    if status == 200:
        assert call.json["warnings"][-1] == f"{count - 10} more unknown fields were ignored"
    else:
        assert "unknown field `ttl_sec0000000`" in call.json["message"]
    assert pause < 1.0


def test_a_registration_has_a_small_body():
    async def scenario(app):
        fits = await app.ask("/v1/keys/register", body=b"{" + b" " * 65_534 + b"}", key=None)
        return fits, await app.ask("/v1/keys/register", body=b"{" + b" " * 65_535 + b"}", key=None)

    fits, larger = ConcurrentApp().run(scenario)
    assert fits.status == 201
    assert (larger.status, larger.headers["connection"]) == (400, "close")


@pytest.mark.parametrize("length", [2 * MIB, None], ids=["declared", "chunked"])
@pytest.mark.parametrize("key", [None, WRONG], ids=["no key", "wrong key"])
def test_a_large_body_is_not_read_before_the_key_is_known(key, length):
    async def scenario(app):
        call, task = app.begin("/locks/x/acquire", key=key, pieces=[PIECE] * 32, length=length)
        await asyncio.wait_for(task, 30)
        return call

    call = ConcurrentApp().run(scenario)
    assert call.status == 401
    assert call.headers["connection"] == "close"
    assert call.taken <= 2


def test_bodies_that_arrive_slowly_are_bounded_together_and_a_renewal_passes():
    async def scenario(app):
        job = await app.ask("/v1/jobs/x/claim", body={"owner": "me"})
        calls = [
            app.begin("/v1/tasks/batch", pieces=[PIECE], length=8 * MIB, ends=False) for _ in range(BODY_BUDGET // MIB)
        ]
        ended = await answered(task for _, task in calls)
        refused = [call for call, task in calls if task in ended]
        renewal = await app.ask("/v1/jobs/x/heartbeat", body={"lease_id": job.json["lease_id"]})
        return refused, len(calls), renewal, app.ctx

    refused, begun, renewal, ctx = ConcurrentApp().run(scenario)
    assert begun - len(refused) == BODY_BUDGET // 2 // (8 * MIB)  # an account has half
    for call in refused:
        assert (call.status, call.headers["connection"], call.headers["retry-after"]) == (503, "close", "1")
        assert call.json["applied"] == "no"
    assert renewal.status == 200
    assert ctx.body_budget.used == 0


def test_a_budget_of_bytes_leaves_half_to_others():
    budget = ByteBudget(100)
    assert budget.take("one", 70)  # nobody has any yet
    assert not budget.take("one", 1)
    assert budget.take("two", 30)
    assert not budget.take("three", 1)
    budget.give_back("one", 70)
    assert budget.take("three", 50)
    assert budget.used == 80


async def answered(tasks):
    """The tasks that end by themselves; the others wait for the rest of their body."""
    tasks = set(tasks)
    done = set()
    while True:
        more, rest = await asyncio.wait(tasks - done, timeout=0.3)
        done |= more
        if not more or not rest:
            return done


# -- more requests than places -----------------------------------------------------------------------------------


async def fill(app, places, key):
    """Take all places of a kind by requests whose bodies do not end."""
    calls = [app.begin("/v1/jobs/x/claim", key=key, pieces=[b"{"], ends=False)[0] for _ in range(places.limit)]
    await asyncio.gather(*(call.sent.wait() for call in calls))
    assert places.taken == places.limit


def test_an_overloaded_server_refuses_new_work_and_admits_holders(monkeypatch):
    monkeypatch.setattr(request_limiter, "FIRST_KNOWN", 20)

    async def scenario(app):
        claimed = (await app.ask("/v1/jobs/held/claim", body={"owner": "me"})).json
        await fill(app, app.app.request_limiter.known, KEY)
        lease = {"lease_id": claimed["lease_id"]}
        renewals = {"items": [{"op": "heartbeat", "id": "x", "lease_id": "y"}]}
        return {
            "claim": await app.ask("/v1/jobs/other/claim", body={"owner": "me"}),
            "acquire": await app.ask("/locks/other/acquire", body={}),
            "create": await app.ask("/v1/tasks", body={"type": "x", "payload": {}}),
            "creates": await app.ask("/v1/tasks/batch", body={"items": [{"op": "create", "type": "x", "payload": {}}]}),
            "read": await app.ask("/v1/jobs", "GET"),
        }, {
            "renew": await app.ask("/v1/jobs/held/heartbeat", body=lease),
            "renewals": await app.ask("/v1/tasks/batch", body=renewals),
            "heartbeats": await app.ask("/v1/heartbeats", body={"leases": [lease | {"job_id": "held"}]}),
            "release": await app.ask("/v1/jobs/held/release", body=lease),
            "probe": await app.ask("/healthz", "GET", key=None),
        }

    refused, admitted = ConcurrentApp().run(scenario)
    for name, call in refused.items():
        assert (call.status, call.headers["retry-after"]) == (503, "1"), name
        assert call.json["agent_contract"]["retryable"] is True, name
        assert call.json["request_id"] == call.headers["x-request-id"], name
    assert {name: call.status for name, call in admitted.items()} == dict.fromkeys(admitted, 200)


def test_an_account_that_takes_all_places_leaves_others_their_share(monkeypatch):
    monkeypatch.setattr(request_limiter, "FIRST_KNOWN", 20)

    async def scenario(app):
        other = (await app.ask("/v1/keys/register", body={}, key=None)).json["apiKey"]
        for key in (KEY, other):  # both keys are known from here on
            assert (await app.ask("/v1/jobs", "GET", key=key)).status == 200
        await fill(app, app.app.request_limiter.known, KEY)
        claim, path = {"owner": "me"}, "/v1/jobs/free/claim"
        before = await app.ask(path, body=claim, key=KEY), await app.ask(path, body=claim, key=other)
        for _ in range(10):  # half of the places
            begun, _ = app.begin("/v1/jobs/x/claim", key=other, pieces=[b"{"], ends=False)
            await asyncio.wait_for(begun.sent.wait(), 10)
        return *before, await app.ask(path, body=claim, key=other)

    flooding, other, beyond_its_share = ConcurrentApp().run(scenario)
    assert (flooding.status, flooding.headers["retry-after"]) == (503, "1")
    assert other.status == 200
    assert beyond_its_share.status == 503


def test_strangers_take_no_place_of_a_known_caller(monkeypatch):
    monkeypatch.setattr(request_limiter, "MAX_ANONYMOUS", 20)

    async def scenario(app):
        await app.ask("/v1/jobs/x/claim", body={"owner": "me"})
        app.app.request_limiter.unknown.limit = 0
        calls = [app.begin("/elections/room-123456/campaign", key=None, pieces=[b"{"], ends=False) for _ in range(20)]
        await asyncio.gather(*(call.sent.wait() for call, _ in calls))
        stranger = await app.ask("/v1/jobs/x/heartbeat", body={}, key=WRONG)
        anonymous = await app.ask("/elections/room-123456", "GET", key=None)
        return stranger, anonymous, await app.ask("/v1/jobs/other/claim", body={"owner": "me"})

    stranger, anonymous, known = ConcurrentApp().run(scenario)
    assert (stranger.status, anonymous.status, known.status) == (503, 503, 200)


def test_a_request_that_waits_leaves_its_place(monkeypatch):
    monkeypatch.setattr(request_limiter, "FIRST_KNOWN", 5)

    async def scenario(app):
        await app.ask("/v1/jobs/held/claim", body={"owner": "me"})
        body = json.dumps({"owner": "me", "wait_seconds": 20}).encode()
        for waiting in range(1, 11):
            app.begin("/v1/jobs/held/claim", pieces=[body])
            await asyncio.to_thread(eventually, app.engine.name_waiters.size, partial(le, waiting), within=10)
        return await app.ask("/v1/jobs/other/claim", body={"owner": "me"})

    assert ConcurrentApp().run(scenario).status == 200


def test_every_place_is_given_back():
    async def scenario(app):
        for path, method, key in [
            ("/v1/jobs/x/claim", "POST", KEY),
            ("/nowhere", "GET", None),
            ("/locks", "GET", "no"),
        ]:
            await app.ask(path, method, key=key)
        kinds = ("known", "unknown", "anonymous", "holders", "leaders", "probes")
        return [getattr(app.app.request_limiter, kind).taken for kind in kinds]

    assert ConcurrentApp().run(scenario) == [0] * 6


def test_a_read_that_fails_or_that_nobody_waits_for_any_more_gives_its_place_back(monkeypatch):
    monkeypatch.setattr(reads, "MAX_READS", 1)
    may_end = threading.Event()

    async def scenario(app):
        with pytest.raises(ZeroDivisionError):
            await app.ctx.read(lambda _: 1 / 0)
        left = asyncio.ensure_future(app.ctx.read(lambda _: may_end.wait(10)))
        await asyncio.sleep(0)  # it begins
        with pytest.raises(Overloaded):
            await app.ctx.read(lambda _: "refused")
        left.cancel()
        await asyncio.wait({left})
        may_end.set()
        return await app.ctx.read(lambda _: "read")

    assert ConcurrentApp().run(scenario) == "read"


def test_refusals_are_paced():
    async def scenario(app):
        await app.ask("/v1/jobs/x/claim", body={"owner": "me"})
        app.app.request_limiter.known.limit = 40
        await fill(app, app.app.request_limiter.known, KEY)
        calls = [app.begin("/v1/jobs/x/claim")[1] for _ in range(40)]
        await asyncio.wait(calls, timeout=0.2)
        soon = sum(task.done() for task in calls)
        await asyncio.gather(*calls)
        return soon

    assert ConcurrentApp().run(scenario) < 40


def test_a_late_event_loop_leaves_fewer_places_and_a_punctual_one_gives_them_back():
    places = ConcurrentApp().app.request_limiter
    assert places.known.limit == request_limiter.FIRST_KNOWN
    places.adapt(2 * request_limiter.LATE_SECONDS, used=0)
    assert places.known.limit == request_limiter.FIRST_KNOWN // 2
    places.adapt(100.0, used=0)
    assert places.known.limit == request_limiter.MIN_KNOWN
    places.adapt(0.0, used=1)
    assert places.known.limit == request_limiter.MIN_KNOWN  # more are not needed
    for _ in range(100):
        places.adapt(0.0, used=1000)
    assert places.known.limit == request_limiter.MAX_KNOWN


def test_the_event_loop_of_an_idle_server_is_not_watched(monkeypatch):
    monkeypatch.setattr(request_limiter, "CHECK_SECONDS", 0.001)
    looks = []

    async def scenario(app):
        limiter = app.app.request_limiter
        watch = asyncio.ensure_future(limiter.watch_event_loop(lambda: looks.append(1) or 0.0))
        await asyncio.sleep(0.02)
        idle = len(looks)
        await app.ask("/v1/jobs/x/claim", body={"owner": "me"})
        await asyncio.sleep(0.02)
        watch.cancel()
        return idle

    assert ConcurrentApp().run(scenario) == 0
    assert looks


# -- long lists --------------------------------------------------------------------------------------------------


def hold_locks(app, count):
    by = Principal("default", "00000000-0000-4000-8000-000000000001", scopes="jobs")
    rest = {"limit": count, "metadata": None, "session_id": None, "ephemeral": False, "delay": 0, "acl": None}
    whose = {"account": "default", "cause": Cause("test", ""), "by": by, "secret": b"x", "ttl": 60 * SECOND}
    for number in range(count):
        app.engine.call(AcquireLock(name=f"lock-{number:05}", **whose, **rest))


def test_a_long_list_of_locks_is_sent_page_by_page_and_is_complete(monkeypatch):
    monkeypatch.setattr(lock_list, "PAGE", 50)
    app = ConcurrentApp()
    hold_locks(app, 101)

    async def scenario(app):
        return await app.ask("/locks", "GET"), await app.ask("/locks?prefix=lock-0000", "GET")

    long, short = app.run(scenario)
    assert [lock["name"] for lock in long.json["locks"]] == [f"lock-{number:05}" for number in range(101)]
    assert long.json["total"] == 101
    assert long.json.keys() == short.json.keys()
    assert long.parts > 3
    assert "content-length" not in long.headers
    assert [lock["name"] for lock in short.json["locks"]] == [f"lock-{number:05}" for number in range(10)]
    assert short.headers["content-length"] == str(len(short.body))


def test_an_account_reads_a_few_long_lists_at_once(monkeypatch):
    monkeypatch.setattr(lock_list, "PAGE", 50)
    app = ConcurrentApp()
    hold_locks(app, 51)

    async def scenario(app):
        lists = [app.begin("/locks", "GET", reads=False) for _ in range(LOCK_LISTS_PER_ACCOUNT)]
        await asyncio.to_thread(eventually, lambda: [call.status for call, _ in lists], all, within=10)
        one_more, short = await app.ask("/locks", "GET"), await app.ask("/locks?prefix=lock-0000", "GET")
        for call, _ in lists:
            call.read.set()
        await asyncio.gather(*(task for _, task in lists))
        return one_more, short, await app.ask("/locks", "GET")

    one_more, short, later = app.run(scenario)
    assert (one_more.status, one_more.headers["retry-after"]) == (429, "1")
    assert (short.status, later.status) == (200, 200)


# -- wrong keys --------------------------------------------------------------------------------------------------


def test_unknown_keys_are_looked_up_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(request_limiter, "MAX_UNKNOWN", 10)

    async def scenario(app):
        with app.engine.store.read():  # the store is busy: look-ups wait
            calls = [app.begin("/v1/jobs", "GET", key=f"{WRONG}{number}") for number in range(50)]
            await answered(task for _, task in calls)
            refused = [call.status for call, task in calls if task.done()]
        await asyncio.gather(*(task for _, task in calls))
        return refused, [call.status for call, _ in calls]

    refused, statuses = ConcurrentApp().run(scenario)
    assert refused == [503] * 40
    assert sorted(statuses) == [401] * 10 + [503] * 40


def test_failures_of_one_address_are_counted_before_the_keys_are_looked_up():
    async def scenario(app):
        with app.engine.store.read():
            calls = [app.begin("/v1/jobs", "GET", key=f"{WRONG}{number}", peer=REMOTE) for number in range(60)]
            await answered(task for _, task in calls)
            refused = [call.status for call, task in calls if task.done()]
            other = app.begin("/v1/jobs", "GET", peer="198.51.100.8")
        await asyncio.gather(*(task for _, task in calls), other[1])
        return refused, [call.status for call, _ in calls], other[0].status

    refused, statuses, other = ConcurrentApp().run(scenario)
    assert refused == [429] * len(refused)
    assert len(refused) == 40
    assert sorted(statuses) == [401] * 20 + [429] * 40
    assert other == 200


def test_a_known_key_does_not_wait_for_the_look_up_of_an_unknown_one(tmp_path, monkeypatch):
    monkeypatch.setattr(auth, "CACHE_SECONDS", 0.0)  # every request looks its key up again
    store = SqliteStore(tmp_path / "x.db")
    store.open()
    busy = threading.Event()

    async def scenario(app):
        job = await app.ask("/v1/jobs/x/claim", body={"owner": "me"})
        slow = asyncio.ensure_future(app.ctx._reads.read_unknown(lambda _: busy.wait(60)))
        guesses = [app.begin("/v1/jobs", "GET", key=f"{WRONG}{number}")[1] for number in range(100)]
        try:
            renewal = await app.ask("/v1/jobs/x/heartbeat", body={"lease_id": job.json["lease_id"]})
        finally:
            busy.set()
        await asyncio.gather(slow, *guesses)
        return renewal

    assert ConcurrentApp(store).run(scenario).status == 200


def test_a_key_with_a_wrong_checksum_is_refused_without_a_look_up():
    async def scenario(app):
        with app.engine.store.read():
            return await app.ask("/v1/jobs", "GET", key="hf_live_" + "x" * 32 + "_000000")

    assert ConcurrentApp().run(scenario).status == 401
