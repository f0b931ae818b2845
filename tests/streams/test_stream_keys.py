"""The keys of open streams are checked for as long as there are streams."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from holdfast.core.errors import StoreUnavailable, Unauthenticated
from holdfast.transport.http.streams import limits
from holdfast.transport.http.streams.limits import StreamKeyMonitor


class Follower:
    """A stream that may be ended."""

    is_ended = False

    def end(self):
        self.is_ended = True


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(limits, "KEY_CHECK_SECONDS", 0.0)


def request(key):
    return SimpleNamespace(secret=key)


async def until(condition):
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not happen")


def test_a_stream_that_ends_during_the_check_of_another_key_ends_no_check():
    async def run():
        checked, revoked = [], set()
        first_key, second_key = ExitStack(), ExitStack()

        async def check(request):
            checked.append(request.secret)
            if len(checked) == 1:
                second_key.close()  # the last stream with the second key
            await asyncio.sleep(0)
            if request.secret in revoked:
                raise Unauthenticated("revoked")

        monitor = StreamKeyMonitor(check)
        follower = Follower()
        first_key.enter_context(monitor.monitor(request(b"one"), follower))
        second_key.enter_context(monitor.monitor(request(b"two"), Follower()))
        await until(lambda: checked.count(b"one") > 2)
        revoked.add(b"one")
        await until(lambda: follower.is_ended)
        first_key.close()
        await until(lambda: monitor._loop is None)

    asyncio.run(run())


@pytest.mark.parametrize("error", [StoreUnavailable("unreachable"), ZeroDivisionError("a bug")])
def test_a_check_that_fails_is_repeated(error):
    async def run():
        failures = [error, error]

        async def check(request):
            if failures:
                raise failures.pop()
            raise Unauthenticated("revoked")

        monitor, follower = StreamKeyMonitor(check), Follower()
        with monitor.monitor(request(b"one"), follower):
            await until(lambda: follower.is_ended)
        monitor.close()

    asyncio.run(run())
