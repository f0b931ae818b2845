"""Leases that are renewed in the background, with every kind of client."""

import asyncio
import threading
import time
from contextlib import suppress

import pytest

import holdfast
from holdfast.client.async_client import AsyncClient
from holdfast.client.async_embedded import AsyncEmbeddedTransport
from holdfast.client.client import Client
from holdfast.client.embedded import EmbeddedTransport
from holdfast.client.errors import CancelRequested, Conflict, Done, Held, LeaseLost, NotFound, Unreachable
from holdfast.client.leases import claims
from holdfast.client.leases import clock as lease_clock
from holdfast.client.leases.state import Duration, LeaseState, Terms
from holdfast.client.retry import NotSent
from holdfast.client.worker.errors import Permanent, Retry
from holdfast.operations.bound_kinds import Range
from tests.client.recorder import AsyncRecordingTransport
from tests.support import in_background, wait_until

pytestmark = pytest.mark.waits(14)


def test_a_job_is_held_inside_its_block_and_free_after_it(client, name):
    with client.job(name, "agent-3", {"branch": "fix"}) as job:
        job.check()
        assert client.get_job_owner(name)["owner"] == "agent-3"
        with pytest.raises(Held) as caught, client.job(name, "agent-5"):
            pytest.fail("two owners at once")
        assert caught.value.owner == "agent-3"
        assert caught.value.retry_after > 0
        job.checkpoint({"step": 2})
        job.note = "tests pass"
        first = job.token
    assert client.get_job_owner(name)["status"] == "free"
    with client.job(name, "agent-5") as job:
        assert job.token > first
        assert (job.previous["outcome"], job.previous["note"]) == ("released", "tests pass")
        assert job.previous["checkpoint"] == {"step": 2}


def test_progress_of_jobs_and_tasks_is_seen_by_others(client, name):
    client.create_task(name, {})
    with client.job(name, owner="a") as job, client.task(name, worker="b") as task:
        for held in (job, task):
            held.progress(0.4, "page 3")
            held.progress(0.404, "page 3")
        seen = [client.get_job_owner(name)["progress"], client.check_task_status(task.id)["progress"]]
    assert seen == [{"percent": 40, "message": "page 3"}] * 2


def test_a_done_job_is_not_claimed_again_unless_one_asks_for_it(client, name):
    with client.job(name, "agent-3") as job:
        job.note = "merged"
        job.done({"pull_request": 12})
        assert client.get_job_owner(name)["status"] == "done"
    with pytest.raises(Done) as caught, client.job(name, "agent-5", wait=30):
        pytest.fail("done twice")
    assert (caught.value.result, caught.value.document["note"]) == ({"pull_request": 12}, "merged")
    with client.job(name, "agent-5", again=True) as job:
        assert job.previous["outcome"] == "done"
        job.failed({"error": "conflict"})
    assert client.get_job_owner(name)["previous"]["outcome"] == "failed"


def test_an_offered_job_outlives_its_block_and_is_taken_over_with_the_code(client, name):
    with client.job(name, "giver", ttl=1) as job:
        first = job.token
        code = job.offer(note="half way", checkpoint={"step": 2}, expires_in_seconds=60)
        with pytest.raises(LeaseLost, match="offered"):
            job.check()
    assert client.get_job_owner(name)["owner"] == "giver"
    with client.job(name, "taker", offer=code) as job:
        assert job.token > first
        assert (job.previous["outcome"], job.previous["checkpoint"]) == ("handed_over", {"step": 2})
        job.check()
    with pytest.raises(Conflict) as caught, client.job(name, "third", offer=code):
        pytest.fail("a code works once")
    assert caught.value.code == "offer_refused"


def test_a_withdrawn_offer_is_held_and_released_as_before(client, name):
    with client.job(name, "giver", ttl=30) as job:
        code = job.offer()
        job.withdraw()
        job.check()
        assert 20 < job.remaining <= 30
        with pytest.raises(Conflict), client.job(name, "taker", offer=code):
            pytest.fail("it was withdrawn")
    assert client.get_job_owner(name)["status"] == "free"


def test_a_withdrawn_offer_is_counted_from_the_sending_of_its_withdrawal(recorded, slow_requests, name):
    times = slow_requests("/withdraw-offer", 5.0)
    with recorded.job(name, "giver", ttl=30) as job:
        job.offer()
        job.withdraw()
        assert times == [100.0, 105.0]
        assert 24 < job.remaining <= 25


def test_a_renewal_of_an_offer_says_nothing_about_the_lease_after_its_withdrawal(recorded, transport, name):
    """An offer lasts for an hour, and so does what the answer to a renewal of it promises."""
    answered, withdrawn = threading.Event(), threading.Event()

    def late(request):
        if not request.target.endswith("/heartbeat"):
            return None
        answer = type(transport).__base__.send(transport, request, 5)
        answered.set()
        withdrawn.wait(1)
        return answer

    with recorded.job(name, "me", ttl=5) as job:
        job.offer()
        transport.answer_instead = late
        renewing = in_background(job.renew)
        assert answered.wait(5)
        job.withdraw()
        withdrawn.set()
        renewing.result(5)
        assert 4 < job.remaining <= 5


def test_an_asyncio_renewal_of_an_offer_says_nothing_about_the_lease_after_its_withdrawal(name):
    async def scenario():
        answered, withdrawn = asyncio.Event(), asyncio.Event()

        class Late(AsyncRecordingTransport):
            async def send(self, request, timeout):  # noqa: ASYNC109 - the transport's protocol
                answer = await super().send(request, timeout)
                if request.target.endswith("/heartbeat"):
                    answered.set()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(withdrawn.wait(), 1)
                return answer

        async with AsyncClient(transport=Late()) as client, client.job(name, "me", ttl=5) as job:
            await job.offer()
            renewing = asyncio.ensure_future(job.renew())
            await asyncio.wait_for(answered.wait(), 5)
            await job.withdraw()
            withdrawn.set()
            await renewing
            return job.remaining

    assert 4 < asyncio.run(scenario()) <= 5


def test_a_giver_that_withdraws_too_late_learns_who_has_it(client, name):
    with client.job(name, "giver") as job:
        code = job.offer()
        client.claim_job(name, "taker", offer=code)
        with pytest.raises(LeaseLost, match="taker accepted your offer"):
            job.withdraw()
    assert client.get_job_owner(name)["owner"] == "taker"


def test_an_offered_task_is_neither_completed_nor_failed_at_the_end_of_its_block(client, name):
    created = client.create_task(name, {"n": 1})
    with client.task(name, worker="giver") as task:
        code = task.offer(checkpoint={"page": 7})
    with client.task_by_id(created["id"], worker="taker", offer=code) as task:
        assert (task.previous["outcome"], task.previous["checkpoint"]) == ("handed_over", {"page": 7})
        assert task.document["attemptCount"] == 1
        task.result = {"done": True}
    assert client.check_task_status(created["id"])["status"] == "completed"


def test_the_first_of_several_jobs_that_is_free_is_held(client, name):
    names = [f"{name}-a", f"{name}-b"]
    with client.any_job(names, "agent-3") as first, client.any_job(names, "agent-5", order="given") as second:
        assert [first.id, second.id] == names
        with pytest.raises(Held), client.any_job(names, "agent-7"):
            pytest.fail("three owners of two names")
        second.checkpoint({"step": 1})
    with client.any_job(names[::-1], "agent-7") as third:
        assert (third.id, third.previous["checkpoint"]) == (names[1], {"step": 1})


def test_a_job_can_be_done_for_good(client, name):
    with client.job(name, "agent-3") as job:
        job.done(done_for_seconds=None)
    assert client.get_job_owner(name)["until"] is None
    listed = client.list_claimed_jobs(name, state="done")["jobs"]
    assert [job["job_id"] for job in listed] == [name]


def test_a_short_lease_outlives_its_ttl_because_it_is_renewed(client, name):
    with client.job(name, "agent-3", ttl=2) as job:
        for _ in range(35):
            time.sleep(0.1)
            job.check()
        assert client.get_job_owner(name)["owner"] == "agent-3"


def test_check_raises_after_a_job_was_taken_away(client, name):
    with pytest.raises(LeaseLost), client.job(name, "agent-3", ttl=2) as job:
        client.force_release_job(name, "we need it")
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            job.check()
            time.sleep(0.02)


def test_a_lost_job_raises_at_the_end_of_the_block_without_a_check(client, name):
    with pytest.raises(LeaseLost), client.job(name, "agent-3", ttl=60):
        client.force_release_job(name, "we need it")


def test_a_claim_waits_in_the_queue_and_gets_the_job(client, name):
    entered = threading.Event()

    def hold():
        with client.job(name, "first", ttl=30):
            entered.set()
            time.sleep(0.7)

    first = threading.Thread(target=hold)
    first.start()
    assert entered.wait(5)
    with client.job(name, "second", ttl=2, wait=10) as job:
        # It waited for a good part of its TTL: what can be proved begins anew.
        job.check()
        assert job.remaining > 1.5
    first.join()


def test_a_wait_that_takes_several_requests_keeps_its_place(name, monkeypatch):
    monkeypatch.setattr(claims, "WAIT", Range(0, 0.3))  # seconds that one request waits at most
    order = []

    def wait(owner):
        with client.job(name, owner, wait=20):
            order.append(owner)

    with holdfast.open(":memory:") as client:
        held = client.claim_job(name, "holder")
        first, second = (threading.Thread(target=wait, args=(owner,)) for owner in ("first", "second"))
        first.start()
        wait_until(lambda: client.claim_job(name, "other")["waiting"] == 1)
        monkeypatch.setattr(claims, "WAIT", Range(0, 60))
        second.start()
        time.sleep(0.8)  # the first one has asked again by now
        client.release_job(name, held["lease_id"])
        first.join(20)
        second.join(20)
    assert order == ["first", "second"]


def test_an_election_has_one_leader_at_a_time(client, name):
    election = name[:60]
    with client.leader(election, "one", ttl=5) as lead:
        lead.check()
        first = lead.token
        with pytest.raises(Held) as caught, client.leader(election, "two", ttl=5):
            pytest.fail("two leaders at once")
        assert caught.value.owner == "one"
    with client.leader(election, "two", ttl=5, wait=5) as lead:
        assert lead.token > first


def test_a_task_is_completed_at_the_end_of_its_block(client, name):
    made = client.create_task(name, {"n": 1})
    with client.task(name, worker="w") as task:
        assert (task.id, task.payload) == (made["id"], {"n": 1})
        task.checkpoint({"half": True})
        task.result = {"sum": 2}
    done = client.check_task_status(made["id"])
    assert (done["status"], done["result"]) == ("completed", {"sum": 2})
    with pytest.raises(NotFound) as caught, client.task(name):
        pytest.fail("no task was ready")
    assert caught.value.code == "no_tasks"


@pytest.mark.parametrize(
    ("error", "fields"),
    [
        (KeyError("x"), {"status": "pending", "attemptCount": 1}),
        (Retry("later", after=900), {"status": "pending", "attemptCount": 1}),
        (Permanent("never"), {"status": "dead_letter", "deadLetterCause": "permanent"}),
        (KeyboardInterrupt(), {"status": "pending", "attemptCount": 0}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_exception_decides_how_a_task_fails(client, name, error, fields):
    made = client.create_task(name, {})
    with pytest.raises(type(error)), client.task(name):
        raise error
    after = client.check_task_status(made["id"])
    assert fields.items() <= after.items()
    if isinstance(error, Retry):
        assert after["scheduledAt"] > after["updatedAt"]
    if isinstance(error, Exception):
        (attempt,) = client.task_attempts(made["id"])["attempts"]
        assert attempt["errorCode"] == type(error).__name__


def test_check_raises_when_cancellation_was_requested(client, name):
    made = client.create_task(name, {})
    with pytest.raises(CancelRequested), client.task(name) as task:
        client.cancel_task(made["id"], mode="request")
        task.checkpoint({"so": "far"})
        task.check()
    assert client.check_task_status(made["id"])["status"] == "cancelled"


def test_a_task_taken_away_by_force_is_lost(client, name):
    made = client.create_task(name, {})
    with pytest.raises(LeaseLost), client.task(name) as task:
        client.cancel_task(made["id"], mode="force")
        with pytest.raises(Conflict):
            task.checkpoint({"too": "late"})
        task.check()
    assert client.check_task_status(made["id"])["status"] == "cancelled"


def test_a_lease_is_counted_from_the_sending_of_its_renewal(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(lease_clock, "now", lambda: clock[0])
    terms = Terms("job x", 1, 10.0, 3.0, {}, "heartbeat_job", "release_job", {})
    held = LeaseState(terms, sent=100.0)
    clock[0] = 109.9  # an answer that took so long renews only from its sending
    held.renewed(102.0, Duration(10.0, 3.0), {})
    held.check()
    clock[0] = 111.98
    held.check()
    clock[0] = 112.0  # the machine slept
    with pytest.raises(LeaseLost):
        held.check()
    held.renewed(112.0, Duration(10.0, 3.0), {})
    with pytest.raises(LeaseLost):  # a reported loss stays a loss
        held.check()


def test_a_lease_lasts_as_long_as_its_last_renewal_was_granted_for(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(lease_clock, "now", lambda: clock[0])
    held = LeaseState(Terms("job x", 1, 120.0, 40.0, {}, "heartbeat_job", "release_job", {}), sent=100.0)
    held.renewed(101.0, Duration(10.0, 3.0), {})
    assert held.remaining == pytest.approx(10.99)
    assert held.pause() <= 4.0
    clock[0] = 111.0
    with pytest.raises(LeaseLost):
        held.check()


def test_a_renewal_for_a_shorter_time_counts_even_if_its_answer_is_lost(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(lease_clock, "now", lambda: clock[0])
    held = LeaseState(Terms("job x", 1, 120.0, 40.0, {}, "heartbeat_job", "release_job", {}), sent=100.0)
    held.renewing(105.0, 2)
    held.refused(Unreachable("no answer"))
    assert held.remaining < 7.0
    clock[0] = 107.0
    with pytest.raises(LeaseLost):
        held.check()


@pytest.mark.parametrize("ttl", [30, 120])
def test_a_job_claimed_for_a_session_is_sure_no_longer_than_the_session(client, name, ttl):
    session = client.begin_session(name, ttl_seconds=10)
    with client.job(name, "agent-3", ttl=ttl, session_id=session["session_id"]) as job:
        assert 5 < job.remaining <= 10
        assert job.document["heartbeat_every_seconds"] <= 3
        assert client.get_job_owner(name)["expires_in_seconds"] <= 10
        assert job.renew()["expires_in_seconds"] <= 10
        assert job.remaining <= 10


def test_a_task_claimed_for_a_session_is_sure_no_longer_than_the_session(client, name):
    session = client.begin_session(name, ttl_seconds=10)
    client.create_task(name, {}, lease_duration_seconds=300)
    with client.task(name, session_id=session["session_id"]) as task:
        assert 5 < task.remaining <= 10
        task.renew()
        assert 5 < task.remaining <= 10


def test_each_of_several_tasks_is_sure_for_as_long_as_it_was_granted(client, name):
    for seconds in (60, 300):
        client.create_task(name, {}, lease_duration_seconds=seconds)
    document = client.claim_task(type=name, limit=1)
    (terms,) = claims.claimed_tasks(document)
    assert (terms.ttl, terms.every, terms.entry["task_id"]) == (60.0, 20.0, document["tasks"][0]["id"])
    session = client.begin_session(name, ttl_seconds=10)
    (terms,) = claims.claimed_tasks(client.claim_task(type=name, limit=2, session_id=session["session_id"]))
    assert 5 < terms.ttl <= 10


def test_a_renewal_for_a_shorter_time_shortens_what_is_sure(client, name):
    with client.job(name, "agent-3", ttl=120) as job:
        job.renew(ttl_seconds=5)
        assert job.remaining <= 5
        assert client.get_job_owner(name)["expires_in_seconds"] <= 5


class WithoutRenewals(EmbeddedTransport):
    """A transport that loses every heartbeat of a job."""

    def begin(self, request):
        if request.target.endswith("/heartbeat"):
            raise NotSent("the network is down")
        return super().begin(request)


def hold_for_a_while(client, name):
    """Another owner holds the job until a waiting claim is old enough to be renewed at once."""
    held = client.claim_job(name, "other")
    threading.Timer(0.4, client.release_job, (name, held["lease_id"])).start()


def was_released_by_me(job):
    return (job["status"], job["previous"]["owner"], job["previous"]["outcome"]) == ("free", "me", "released")


def test_a_job_whose_first_renewal_fails_is_released(name):
    with Client(transport=WithoutRenewals("memory:")) as client:
        hold_for_a_while(client, name)
        with pytest.raises(Unreachable), client.job(name, "me", ttl=1, wait=10):
            pytest.fail("the block was entered")
        assert was_released_by_me(client.get_job_owner(name))


def test_a_job_whose_first_renewal_fails_is_released_by_the_asyncio_client(name):
    async def enter():
        transport = AsyncEmbeddedTransport("memory:")
        transport._inner.close()
        transport._inner = WithoutRenewals("memory:")
        async with AsyncClient(transport=transport) as client:
            await asyncio.to_thread(hold_for_a_while, Client(transport=transport._inner), name)
            with pytest.raises(Unreachable):
                async with client.job(name, "me", ttl=1, wait=10):
                    pytest.fail("the block was entered")
            return await client.get_job_owner(name)

    assert was_released_by_me(asyncio.run(enter()))


class SlowRenewals(EmbeddedTransport):
    """A transport that counts how many heartbeats are sent at once."""

    now = most = 0

    def send(self, request, timeout):
        if not request.target.endswith("/heartbeat"):
            return super().send(request, timeout)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            time.sleep(0.05)
            return super().send(request, timeout)
        finally:
            self.now -= 1


def test_renewals_are_sent_one_after_the_other(name):
    """Otherwise the answer that comes last may not be that of the renewal that the server handled last."""
    transport = SlowRenewals("memory:")
    with Client(transport=transport) as client, client.job(name, "me") as job:
        for renewal in [in_background(job.renew) for _ in range(3)]:
            assert renewal.result(10)["status"] == "claimed"
    assert transport.most == 1


def test_failed_renewals_are_retried_sooner_and_before_the_lease_ends():
    terms = Terms("job x", 1, 9.0, 3.0, {}, "heartbeat_job", "release_job", {})
    held = LeaseState(terms, sent=lease_clock.now())
    assert 2.3 < held.pause() <= 3.0
    for _ in range(20):
        held.refused(Held("no"))
        assert held.pause() <= 0.9
    assert held.request_timeout < 3.0


def test_leaving_the_block_stops_the_renewal_thread(client, name):
    with client.job(name, "agent-3", ttl=5):
        pass
    wait_until(lambda: not [thread for thread in threading.enumerate() if thread.name == "holdfast-renewals"])
