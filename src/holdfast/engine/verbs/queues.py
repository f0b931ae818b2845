"""Commands of queues: open the row of their settings, and change them."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core.task.queue import Queue
from holdfast.engine.command import Command, Outcome
from holdfast.engine.view import View
from holdfast.store.needs import Needs


class QueueState(Outcome, frozen=True):
    """The settings of a queue, and how many of its tasks run."""

    queue: Queue
    running: int


class QueueCommand(Command[QueueState], frozen=True, kw_only=True):
    """A command about one queue."""

    type: str

    def needs(self) -> Needs:
        """The queue."""
        return Needs(queues=((self.account, self.type),))

    def state(self, view: View, queue: Queue) -> QueueState:
        """The queue and how many of its tasks run."""
        return QueueState(queue=queue, running=view.queues.running(self.account, self.type), now=view.now)


class OpenQueue(QueueCommand, frozen=True, kw_only=True):
    """Make the row of a queue, without limits.

    A claim that is decided at the same time on another server has not found the row, and does not wait for it. So a
    limit is set by a second command, when all batches that were open have ended.
    """

    def decide(self, view: View) -> QueueState:
        """The queue, as it is or as it was made."""
        found = view.find(Queue, self.account, self.type)
        if found is not None:
            return self.state(view, found)
        return self.state(view, view.put(Queue(self.account, self.type), "opened"))


class ChangeQueue(QueueCommand, frozen=True, kw_only=True):
    """Change the settings of a queue that has a row."""

    changes: dict[str, bool | int | None]
    """The settings to change, by their names."""

    def needs(self) -> Needs:
        """The queue, and what claims in the batch need after the change."""
        limit = self.changes.get("max_running_per_key")
        limits = () if limit is None else ((self.account, self.type, limit),)
        changed = ((self.account, self.type),)
        return Needs(queues=changed, changed_queues=changed, concurrency_limits=limits)

    def decide(self, view: View) -> QueueState:
        """The queue with its new settings."""
        queue = view.find(Queue, self.account, self.type)
        assert queue is not None, "OpenQueue comes first"
        changed = replace(queue, **self.changes)
        if changed != queue:
            changed = view.put(changed, "changed")
        return self.state(view, changed)
