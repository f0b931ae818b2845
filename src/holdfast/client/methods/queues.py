"""Settings of queues."""

from __future__ import annotations

from holdfast.client.methods.base import Caller, R


class QueueMethods(Caller[R]):
    """Settings of queues."""

    def list_queues(self, *, limit: int | None = None, cursor: str | None = None) -> R:
        """List the queues that have settings."""
        return self.call("list_queues", limit=limit, cursor=cursor)

    def read_queue(self, type: str) -> R:
        """Read the settings of a queue and how many of its tasks run."""
        return self.call("read_queue", type=type)

    def set_queue(
        self,
        type: str,
        *,
        paused: bool | None = None,
        max_running: int | None = None,
        max_running_per_key: int | None = None,
    ) -> R:
        """Pause a queue, or limit how many of its tasks run, in all or with the same concurrency key.

        0 removes a limit. Running tasks continue.
        """
        return self.call(
            "set_queue",
            type=type,
            paused=paused,
            max_running=max_running,
            max_running_per_key=max_running_per_key,
        )
