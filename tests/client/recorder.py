"""Embedded transports that record the requests of a client, and answer some of them otherwise."""

from holdfast.client.async_embedded import AsyncEmbeddedTransport
from holdfast.client.embedded import EmbeddedTransport

HEARTBEATS = "/v1/heartbeats"


class RecordingTransport(EmbeddedTransport):
    """Records the path of every request to the engine. `answer_instead` may return another answer, or raise."""

    answer_instead = staticmethod(lambda request: None)

    def __init__(self, store="memory:"):
        self.targets = []
        super().__init__(store)

    def begin(self, request):
        self.targets.append(request.target)
        return super().begin(request)

    def send(self, request, timeout):
        return self.answer_instead(request) or super().send(request, timeout)

    def count(self, ending):
        return sum(target.endswith(ending) for target in self.targets)


class AsyncRecordingTransport(AsyncEmbeddedTransport):
    """The same for asyncio, without other answers."""

    def __init__(self):
        self.targets = []
        super().__init__("memory:")

    async def send(self, request, timeout):  # noqa: ASYNC109 - the transport's protocol
        self.targets.append(request.target)
        return await super().send(request, timeout)

    count = RecordingTransport.count
