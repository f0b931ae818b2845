"""Which requests are repeated, when, and which error is raised otherwise."""

import asyncio
import threading
import time

import pytest

from holdfast.client import retry
from holdfast.client.async_client import AsyncClient
from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError, Limited, OutcomeUnknown, ServerError, Unreachable
from holdfast.client.event_stream import StreamState
from holdfast.client.leases.state import LeaseState, Terms
from holdfast.client.request import Answer, find_operation, is_repeatable
from holdfast.client.retry import AnswerLost, Call, NotSent
from tests.support import in_background

SAFE = ("create_task", {"type": "x", "payload": {}})
UNSAFE = ("create_key", {"name": "x", "scopes": ["jobs"]})
LOOK = ("get_job_owner", {"job_id": "x"})


def call(operation=SAFE, deadline=3600.0):
    return Call(*operation, timeout=10.0, deadline=deadline)


def answer(status, body=b"{}", **headers):
    return Answer(status, {"content-type": "application/json", **headers}, body)


def trouble(status, applied=None, code="x", **headers):
    field = f',"applied":"{applied}"' if applied else ""
    return answer(status, f'{{"error":"{code}"{field}}}'.encode(), **headers)


@pytest.mark.parametrize(
    ("operation", "outcome", "error"),
    [
        (SAFE, AnswerLost("x"), None),
        (LOOK, AnswerLost("x"), None),
        (UNSAFE, AnswerLost("x"), OutcomeUnknown),
        (UNSAFE, NotSent("x"), None),
        (SAFE, trouble(503, "unknown", "outcome_unknown"), None),
        (UNSAFE, trouble(503, "unknown", "outcome_unknown"), OutcomeUnknown),
        (UNSAFE, trouble(503, "no", "overloaded"), None),
        (SAFE, trouble(500), None),
        (UNSAFE, trouble(500), ServerError),
        (SAFE, trouble(502), None),
        (SAFE, trouble(507, "no", "storage_full"), ServerError),
        (UNSAFE, trouble(429, None, "rate_limited", **{"retry-after": "3"}), None),
        (SAFE, trouble(429, None, "max_workers_reached"), Limited),
        (SAFE, trouble(409, None, "conflict"), HoldfastError),
    ],
)
def test_only_requests_that_cannot_apply_twice_are_repeated(operation, outcome, error):
    if error is None:
        assert isinstance(call(operation).evaluate(outcome), float)
    else:
        with pytest.raises(error):
            call(operation).evaluate(outcome)


@pytest.mark.parametrize(
    "operation",
    [
        *("create_key", "create_webhook", "create_lock_webhook", "register", "register_user", "checkout"),
        *("begin_session", "open_session", "offer_job", "offer_task", "offer_reservation", "campaign"),
        *("rotate_key", "rotate_own_key", "rotate_token", "rotate_webhook_secret", "replay_deliveries", "test_webhook"),
    ],
)
def test_a_request_that_makes_something_new_each_time_is_not_repeated(operation):
    assert not is_repeatable(find_operation(operation))


def test_pauses_grow_within_their_bounds_and_are_random():
    asked = [call() for _ in range(200)]
    first = [each.evaluate(NotSent("x")) for each in asked]
    assert max(first) <= retry.FIRST_PAUSE
    assert min(first) < 0.05 < max(first)
    for _ in range(10):
        later = [each.evaluate(NotSent("x")) for each in asked]
    assert max(later) <= retry.LONGEST_PAUSE
    assert min(later) < 2
    assert max(later) > 10


def test_no_retry_comes_before_retry_after():
    busy = trouble(503, "no", "overloaded", **{"retry-after": "7"})
    assert all(7.0 <= call().evaluate(busy) <= 7.2 for _ in range(50))


def test_a_pause_beyond_the_deadline_raises_at_once():
    with pytest.raises(Limited) as caught:
        call(deadline=5).evaluate(trouble(429, None, "rate_limited", **{"retry-after": "30"}))
    assert caught.value.retry_after == 30


def test_the_outcome_stays_unknown_until_an_attempt_is_answered():
    asked = call(deadline=0.5)
    asked.evaluate(AnswerLost("cut"))
    with pytest.raises(OutcomeUnknown):
        while True:
            time.sleep(asked.evaluate(NotSent("refused")))
    with pytest.raises(Unreachable):
        call(LOOK, deadline=0.0).evaluate(AnswerLost("cut"))


def test_every_attempt_is_the_same_request():
    asked = call()
    before = asked.request
    asked.evaluate(AnswerLost("cut"))
    assert asked.request is before
    assert len(before.headers["idempotency-key"]) == 36
    assert call().request.headers["idempotency-key"] != before.headers["idempotency-key"]


def test_waiting_in_a_queue_does_not_count_against_the_timeout():
    asked = Call("claim_job", {"job_id": "x", "owner": "me", "wait_seconds": 50}, timeout=10.0, deadline=30.0)
    assert 59 < asked.timeout() <= 60


@pytest.mark.parametrize(("status", "applied"), [(409, "no"), (500, "unknown"), (503, "unknown")])
def test_applied_is_no_only_if_that_is_certain(status, applied):
    with pytest.raises(HoldfastError) as caught:
        call(UNSAFE, deadline=0.0).evaluate(trouble(status))
    assert caught.value.applied == applied


def test_a_pause_doubles_up_to_its_limit_however_often_it_failed():
    assert [retry.doubled(0.2, failures, 1.0) for failures in range(5)] == [0.2, 0.4, 0.8, 1.0, 1.0]
    assert retry.doubled(1e-3, 100_000, 20.0) == 20.0


def test_a_stream_reconnects_after_any_number_of_failures():
    state = StreamState("list_events", {}, deadline=1e9)
    assert all(state.reconnect_pause(NotSent("x")) <= 25.0 for _ in range(2_000))


def test_renewals_are_repeated_after_any_number_of_failures():
    terms = Terms("job x", 1, 300.0, 100.0, {}, "heartbeat_job", "release_job", {})
    state = LeaseState(terms, time.monotonic())
    for _ in range(2_000):
        state.refused(Unreachable("x"))
    assert state.remaining > 0.0


def test_a_call_of_a_client_that_is_closed_after_an_answer_was_lost_may_have_been_applied():
    class Lossy:
        def send(self, request, timeout):
            asking.set()
            raise AnswerLost("the connection broke")

        def close(self):
            pass

    class AsyncLossy(Lossy):
        async def send(self, request, timeout):  # noqa: ASYNC109 - the transport's protocol
            raise AnswerLost("the connection broke")

        async def close(self):
            pass

    async def scenario():
        client = AsyncClient(transport=AsyncLossy())
        calling = asyncio.ensure_future(client.call(SAFE[0], **SAFE[1]))
        await asyncio.sleep(0.01)
        await client.close()
        await calling

    asking, client = threading.Event(), Client(transport=Lossy())
    calling = in_background(lambda: client.call(SAFE[0], **SAFE[1]))
    assert asking.wait(5)
    client.close()
    with pytest.raises(OutcomeUnknown):
        calling.result(5)
    with pytest.raises(OutcomeUnknown):
        asyncio.run(scenario())
