"""Renewals: one thread or task and few requests for everything that a client holds, and each lease for itself."""

import asyncio
import threading
import time
from contextlib import AsyncExitStack, ExitStack

import pytest

from holdfast.client.async_client import AsyncClient
from holdfast.client.errors import CancelRequested, LeaseLost
from holdfast.client.leases import renewal_schedule, renewals
from holdfast.client.leases.renewals import Renewals
from holdfast.client.request import Answer
from holdfast.client.retry import AnswerLost
from tests.client.proxy import CUT, LOSE, PASS, SLOW, between, every
from tests.client.recorder import HEARTBEATS, AsyncRecordingTransport
from tests.client.test_faults import client_of, last_passed_check, take
from tests.client.test_forks import in_child
from tests.store_inspection import assert_store_is_consistent
from tests.support import in_background, wait_until

pytestmark = pytest.mark.waits(50)

MANY = 40
JSON = {"content-type": "application/json"}


def hold(stack, client, name, number=MANY, ttl=3):
    return [stack.enter_context(client.job(f"{name}/{index}", "me", ttl=ttl)) for index in range(number)]


def stay_held(leases, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for lease in leases:
            lease.check()
        time.sleep(0.02)


def renewal_threads():
    return {thread for thread in threading.enumerate() if thread.name == "holdfast-renewals"}


def test_everything_that_a_client_holds_is_renewed_by_one_thread_in_few_requests(recorded, transport, name):
    recorded.create_task(name, {})
    before = renewal_threads()
    with ExitStack() as stack:
        leases = hold(stack, recorded, name)
        leases += [
            stack.enter_context(recorded.task(name)),
            *(stack.enter_context(recorded.reserve(path, space=name, ttl_seconds=3)) for path in ("a", "b", "c")),
            stack.enter_context(recorded.leader(name[:60], "me", ttl=5)),
        ]
        stay_held(leases, 4)
        assert len(renewal_threads() - before) == 1
    assert 3 <= transport.count(HEARTBEATS) <= 8
    assert transport.count("/heartbeat") <= 3, "leases that became due before the others were held"
    assert 1 <= transport.count("/renew") <= 3


def test_everything_that_an_asyncio_client_holds_is_renewed_by_one_task_in_few_requests(name):
    async def scenario():
        transport = AsyncRecordingTransport()
        async with AsyncClient(transport=transport) as client:
            async with AsyncExitStack() as stack:
                leases = [
                    await stack.enter_async_context(client.job(f"{name}/{index}", "me", ttl=3)) for index in range(MANY)
                ]
                leases.append(await stack.enter_async_context(client.reserve("src/**", space=name, ttl_seconds=3)))
                leases.append(await stack.enter_async_context(client.leader(name[:60], "me", ttl=5)))
                until = time.monotonic() + 4
                while time.monotonic() < until:
                    for lease in leases:
                        lease.check()
                    await asyncio.sleep(0.02)
                assert len([task for task in asyncio.all_tasks() if task.get_name() == "holdfast-renewals"]) == 1
            assert len(asyncio.all_tasks()) == 1, "the task ends with the last lease"
        return transport

    transport = asyncio.run(scenario())
    assert 3 <= transport.count(HEARTBEATS) <= 8
    assert transport.count("/heartbeat") <= 3


def test_a_lease_that_is_lost_or_to_be_cancelled_concerns_no_other(recorded, name):
    made = recorded.create_task(name, {})
    with ExitStack() as stack:
        leases = hold(stack, recorded, name, 3)
        stack.enter_context(pytest.raises(LeaseLost))  # at the end of the block of the lost one
        lost = stack.enter_context(recorded.job(f"{name}/lost", "me", ttl=9))
        stack.enter_context(pytest.raises(CancelRequested))
        task = stack.enter_context(recorded.task(name))
        recorded.force_release_job(f"{name}/lost", "we need it")
        recorded.cancel_task(made["id"], mode="request")
        wait_until(lambda: lost.remaining == 0, 6)
        task.renew()
        stay_held(leases, 3)
        task.check()


def test_files_that_are_lost_concern_no_other_lease(recorded, transport, name):
    with ExitStack() as stack:
        leases = hold(stack, recorded, name, 2)
        leases.append(stack.enter_context(recorded.reserve("docs/", space=name, ttl_seconds=3)))
        stack.enter_context(pytest.raises(LeaseLost))  # at the end of the block of the lost one
        lost = stack.enter_context(recorded.reserve("src/**", space=name, ttl_seconds=9))
        recorded.force_release_reservation(lost.reservation_id, "we need them")
        wait_until(lambda: lost.remaining == 0, 6)
        stay_held(leases, 3)
    assert transport.count(HEARTBEATS) >= 2


def test_cancellation_is_noticed_by_a_renewal_of_many(recorded, transport, name, monkeypatch):
    tasks = [recorded.create_task(name, {}) for _ in range(2)]
    with ExitStack() as stack:
        leases = [stack.enter_context(recorded.task(name)) for _ in tasks]
        recorded.cancel_task(leases[0].id, mode="request")
        for lease in leases:  # due now, instead of in 100 seconds
            monkeypatch.setattr(lease.state._clock, "due", 0.0)
        recorded.renewals.add(*leases)
        wait_until(lambda: transport.count(HEARTBEATS))
        wait_until(lambda: is_cancelled(leases[0]))
        leases[1].check()


def is_cancelled(lease):
    try:
        lease.check()
    except CancelRequested:
        return True
    return False


def test_a_lease_that_is_added_as_the_thread_of_renewals_ends_is_renewed(recorded, transport, name, monkeypatch):
    monkeypatch.setattr(renewals, "IDLE_SECONDS", 0.01)
    wait, late = Renewals._wait, []

    def add_at_the_end(self):
        goes_on = wait(self)
        if late and not goes_on:
            self.add(late.pop())
        return goes_on

    monkeypatch.setattr(Renewals, "_wait", add_at_the_end)
    with recorded.job(name, "me") as job:
        monkeypatch.setattr(job.state._clock, "due", 0.0)
        late.append(job)
        recorded.renewals.discard(job)
        wait_until(lambda: transport.count("/heartbeat"), 5)


def test_leases_are_renewed_although_the_thread_could_not_be_started_once(recorded, name, monkeypatch):
    start = threading.Thread.start

    def refuse(thread):
        if thread.name == "holdfast-renewals":
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"), recorded.job(f"{name}/first", "me"):
            pytest.fail("nothing would renew it")
    assert recorded.get_job_owner(f"{name}/first")["status"] == "free"
    with ExitStack() as stack:
        stay_held(hold(stack, recorded, name, 1, ttl=1), 1.5)


def test_notes_are_saved_by_renewals_of_many(recorded, transport, name):
    with ExitStack() as stack:
        leases = hold(stack, recorded, name, 3)
        leases[1].note = "half way"
        with pytest.raises(TypeError):
            leases[2].note = {1}
        wait_until(lambda: recorded.get_job_owner(f"{name}/1")["note"] == "half way")
        assert recorded.get_job_owner(f"{name}/0")["note"] is None
    assert transport.count(HEARTBEATS)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(404, JSON, b'{"error": "not_found", "message": "no operation has this path"}'),
        Answer(413, JSON, b'{"error": "too_large", "message": "the body is too large"}'),
        Answer(429, JSON | {"retry-after": "60"}, b'{"error": "rate_limited", "message": "too many"}'),
    ],
    ids=lambda answer: str(answer.status),
)
def test_leases_are_renewed_separately_if_the_server_does_not_take_them_together(recorded, transport, name, answer):
    transport.answer_instead = lambda request: answer if request.target == HEARTBEATS else None
    with ExitStack() as stack:
        stay_held(hold(stack, recorded, name, 4), 4)
    assert transport.count("/heartbeat") >= 8


def test_an_answer_that_is_not_of_this_api_ends_no_renewals(recorded, transport, name):
    answers = [Answer(200, {"content-type": "text/html"}, b"<p>Sign in to use this network"), Answer(200, JSON, b"{}")]
    transport.answer_instead = lambda request: answers.pop() if request.target == HEARTBEATS and answers else None
    with ExitStack() as stack:
        stay_held(hold(stack, recorded, name, 4), 4)
    assert not answers


def test_a_lease_is_not_renewed_with_others_while_it_is_renewed_by_itself(recorded, transport, name):
    """Otherwise the answer that comes last may not be that of the renewal that the server handled last."""
    alone, together = threading.Event(), []
    first = f"{name}/0"

    def slow(request):
        if request.target == HEARTBEATS:
            together.append((alone.is_set(), first in request.body.decode()))
        elif request.target.endswith("/heartbeat"):
            alone.set()
            time.sleep(0.7)
            alone.clear()

    transport.answer_instead = slow
    with ExitStack() as stack:
        leases = hold(stack, recorded, name, 3, ttl=2)
        renewal = in_background(leases[0].renew)
        stay_held(leases, 2)
        assert renewal.result(10)["status"] == "claimed"
    assert (True, True) not in together
    assert (False, True) in together


def test_the_asyncio_client_does_not_renew_a_lease_with_others_while_it_is_renewed_by_itself(name):
    together, first = [], f"{name}/0"

    class Slow(AsyncRecordingTransport):
        alone = 0

        async def send(self, request, timeout):  # noqa: ASYNC109 - the transport's protocol
            if request.target == HEARTBEATS:
                together.append((self.alone > 0, first in request.body.decode()))
            elif request.target.endswith("/heartbeat"):
                self.alone += 1
                await asyncio.sleep(0.3)
                self.alone -= 1
            return await super().send(request, timeout)

    async def scenario():
        async with AsyncClient(transport=Slow()) as client, AsyncExitStack() as stack:
            leases = [await stack.enter_async_context(client.job(f"{name}/{n}", "me", ttl=2)) for n in range(3)]
            for _ in range(3):  # two of them wait for the first
                stack.push_async_callback(asyncio.wait, [asyncio.ensure_future(leases[0].renew())])
            until = time.monotonic() + 2.5
            while time.monotonic() < until:
                for lease in leases:
                    lease.check()
                await asyncio.sleep(0.02)

    asyncio.run(scenario())
    assert (True, True) not in together
    assert (False, True) in together


def test_a_child_leaves_the_leases_to_its_parent_and_renews_its_own(sqlite_server, name):
    with client_of(sqlite_server) as client, ExitStack() as stack:
        leases = hold(stack, client, name, 3)

        def hold_another():
            with client.job(f"{name}/child", "child", ttl=2) as job:
                stay_held([job], 3)
            return [threading.active_count(), [lease.remaining for lease in leases]]

        wait = in_child(hold_another)
        stay_held(leases, 4)
        assert wait() == {"result": [2, [0.0] * 3]}


def test_renewals_of_many_survive_lost_answers(sqlite_server, name):
    with between(sqlite_server) as proxy, client_of(proxy) as client, ExitStack() as stack:
        leases = hold(stack, client, name, 10, ttl=3)
        proxy.fate = every(2, LOSE)
        stay_held(leases, 5)
        assert proxy.happened[LOSE] > 2


def test_leases_of_many_survive_a_server_that_is_killed_and_restarted(tmp_path, new_server, name):
    server = new_server(f"sqlite:///{tmp_path}/x.db").start()
    with client_of(server) as client:
        with ExitStack() as stack:
            leases = hold(stack, client, name, 20, ttl=5)
            server.kill()
            server.start()
            left = [lease.remaining for lease in leases]
            wait_until(lambda: all(lease.remaining > before for lease, before in zip(leases, left, strict=True)), 20)
            stay_held(leases, 0.1)
        assert client.list_claimed_jobs(prefix=name)["jobs"] == []
    assert_store_is_consistent(server.store)


def test_a_late_answer_extends_no_lease_of_many_further_than_a_prompt_one(sqlite_server, name):
    """Two claims, one renewal of both with a late answer, then disconnected."""
    fates = iter([PASS, PASS, SLOW])
    with (
        between(sqlite_server, lambda: next(fates, CUT)) as proxy,
        client_of(proxy) as client,
        client_of(sqlite_server) as other,
        pytest.raises(LeaseLost),
        client.job(f"{name}/1", "me", ttl=2) as first,
        client.job(f"{name}/2", "me", ttl=2) as second,
    ):
        taken = []
        taking = threading.Thread(target=lambda: taken.append(take(other, f"{name}/2")))
        taking.start()
        wait_until(lambda: CUT in proxy.fates)
        first.check()
        held_until = last_passed_check(second)
        taking.join(20)
        assert held_until < taken[0]
        proxy.fate = lambda: PASS  # the releases need not fail
        second.check()


def test_a_request_without_an_answer_leaves_time_for_the_shortest_lease(recorded, transport, name, monkeypatch):
    timeouts = []

    def lose(request):
        if request.target == HEARTBEATS:
            raise AnswerLost("the network is down")

    real = transport.send

    def send(request, timeout):
        if request.target == HEARTBEATS:
            timeouts.append(timeout)
        return real(request, timeout)

    monkeypatch.setattr(transport, "send", send)
    with ExitStack() as stack:
        leases = hold(stack, recorded, name, 2, ttl=2) + hold(stack, recorded, f"{name}/long", 2, ttl=3600)
        transport.answer_instead = lose
        wait_until(lambda: timeouts)
        transport.answer_instead = lambda request: None
        stay_held(leases, 2)
    assert max(timeouts) <= 0.6
    assert renewal_schedule.LONGEST_REQUEST < 0.3 * 3600


def test_the_asyncio_client_renews_a_lease_that_is_claimed_when_the_only_other_one_was_lost(name):
    """The task that renews has ended with the lost lease, whose block goes on."""

    class Renewed(AsyncRecordingTransport):
        async def send(self, request, seconds):
            if request.target.endswith("next/heartbeat"):
                renewed.set()
            return await super().send(request, seconds)

    renewed = asyncio.Event()

    async def scenario():
        async with AsyncClient(transport=Renewed()) as client:
            with pytest.raises(LeaseLost):  # at the end of the block of the lost one
                async with client.job(f"{name}/lost", "me", ttl=1) as lost:
                    await client.force_release_job(f"{name}/lost", "we need it")
                    with pytest.raises(LeaseLost):
                        await lost.renew()
                    await asyncio.wait({client.renewals._task}, timeout=10)
                    async with client.job(f"{name}/next", "me", ttl=1) as job:
                        await asyncio.wait_for(renewed.wait(), job.remaining)

    asyncio.run(scenario())
