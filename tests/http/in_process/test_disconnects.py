"""A caller that disconnects at the moment of its grant: the grant is released, not left to expire."""

import asyncio
import time

from holdfast.settings import Settings
from tests.http.in_process_app import InProcessApp

KEY = "a-key-for-tests-of-disconnects"
BODY = b'{"owner": "gone", "wait_seconds": 5}'


def test_a_grant_that_arrives_together_with_the_disconnect_is_released():
    app = InProcessApp(Settings(root_key=KEY))
    messages = [{"type": "http.request", "body": BODY}]

    async def receive():
        if not messages:
            time.sleep(0.3)  # noqa: ASYNC251 - the event loop sees the disconnect and the grant at the same time
            return {"type": "http.disconnect"}
        return messages.pop()

    async def send(_):
        pass

    async def claim():
        app.ctx.open()
        scope = {
            "type": "http", "method": "POST", "path": "/v1/jobs/deploy/claim", "raw_path": b"/v1/jobs/deploy/claim",
            "query_string": b"", "headers": [(b"authorization", b"Bearer " + KEY.encode())],
            "client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", 7700), "scheme": "http",
        }  # fmt: skip
        await app.app(scope, receive, send)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            history = app.engine.read(lambda reader: reader.history("default", "lease:deploy"))
            if len(history) > 1:
                break
            await asyncio.sleep(0.01)
        return [event.kind for event in history]

    assert app.runner.run(claim()) == ["lease.claimed", "lease.undelivered"]
    app.close()
