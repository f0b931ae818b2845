"""Ways to run clients: an adapter that makes AsyncClient synchronous, and a worker in a thread."""

import asyncio
import inspect
import threading
from contextlib import contextmanager

import holdfast

KEY = "a-root-key-for-the-client-tests-0123456789"


def url_of(server):
    return f"http://127.0.0.1:{server.port}"


@contextmanager
def working(worker):
    """A worker that runs in a thread and stops at the end of the block."""
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(20)
        assert not thread.is_alive()


@contextmanager
def awaited(url, **settings):
    """An AsyncClient whose event loop runs in a background thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    client = Awaited(_made(loop, url, settings), loop)
    try:
        yield client
    finally:
        client.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _made(loop, url, settings):
    async def make():
        return holdfast.AsyncClient(url, KEY, **settings)

    return asyncio.run_coroutine_threadsafe(make(), loop).result()


class Awaited:
    """Wrapper that awaits the results of the wrapped object's methods."""

    def __init__(self, inner, loop):
        object.__setattr__(self, "_inner", inner)
        object.__setattr__(self, "_loop", loop)

    def _wait(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        return self._call(found) if inspect.ismethod(found) else found

    def __setattr__(self, name, value):
        setattr(self._inner, name, value)

    def _call(self, method):
        def call(*arguments, **named):
            async def run():
                found = method(*arguments, **named)
                return await found if inspect.isawaitable(found) else found

            found = self._wait(run())
            return Awaited(found, self._loop) if hasattr(found, "__aenter__") else found

        return call

    def __enter__(self):
        self._wait(self._inner.__aenter__())
        return self

    def __exit__(self, *raised):
        return self._wait(self._inner.__aexit__(*raised))
