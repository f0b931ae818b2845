"""Rules of queues that no claim may break, by the log alone.

Nothing is claimed from a paused queue, and no claim makes more tasks run than the limit of the queue, or more with one
concurrency key than its limit for each key. Who takes over an offered task gets the place of the giver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from holdfast.core.event import Event
from tests.simulation.supervised_tasks import OPERATOR

if TYPE_CHECKING:
    from tests.simulation.log_checker import LogChecker
    from tests.simulation.world import World

Image = dict[str, Any]


class RoomChecker:
    """What runs in each queue."""

    def __init__(self, world: World, log: LogChecker) -> None:
        self._world = world
        self._log = log
        self._running: dict[str, dict[str, str | None]] = {}
        """By type: the tasks that are claimed, each with its concurrency key."""

    def check(self, event: Event, verb: str, before: Image, after: Image) -> None:
        """Check an event of a queue: only an operator changes one."""
        request = self._world.requests.get(event.request_id)
        if request is None or request.by.id != OPERATOR.id:
            self._world.fail(f"P29: {event.subject} was {verb} with a key that may not do that")
        if verb == "changed" and after["paused"]:
            self._world.count("paused queue")

    def check_task(self, event: Event, verb: str, after: Image) -> None:
        """Check an event of a task."""
        running = self._running.setdefault(after["type"], {})
        if after["state"] != "claimed":
            running.pop(after["id"], None)
        elif verb == "claimed":
            running[after["id"]] = after["concurrency_key"]
            if (event.subject, event.version - 1) not in self._log.handed_over_places():
                self._check_claim(event, after)

    def _check_claim(self, event: Event, after: Image) -> None:
        queue, running, key = self._log.images.get(f"queue:{after['type']}"), *self._use(after)
        if queue is None:
            return
        limit, limit_of_key = queue["max_running"], queue["max_running_per_key"]
        if queue["paused"]:
            self._world.fail(f"P29: {event.subject} was claimed from the queue {after['type']}, which is paused")
        if limit is not None and running > limit:
            self._world.fail(f"P29: {running} tasks of the queue {after['type']} run, its limit is {limit}")
        if limit_of_key is not None and key > limit_of_key:
            self._world.fail(f"P29: {key} tasks run with the key {after['concurrency_key']}, more than {limit_of_key}")
        if running == limit:
            self._world.count("last place of a queue")
        if key and key == limit_of_key:
            self._world.count("last place of a key")

    def _use(self, task: Image) -> tuple[int, int]:
        """How many tasks run in the queue of a task, and how many of them with its key."""
        running, key = self._running.get(task["type"], {}), task["concurrency_key"]
        return len(running), 0 if key is None else [*running.values()].count(key)

    def with_room(self, task_ids: Iterator[str]) -> list[str]:
        """Those of these ready tasks for which there is room in their queues."""
        images = (self._log.images[f"task:{task_id}"] for task_id in task_ids)
        return [image["id"] for image in images if self._has_room(image)]

    def _has_room(self, task: Image) -> bool:
        queue, running, of_key = self._log.images.get(f"queue:{task['type']}"), *self._use(task)
        if queue is None:
            return True
        limit, limit_of_key = queue["max_running"], queue["max_running_per_key"]
        is_full = limit is not None and running >= limit
        is_key_full = task["concurrency_key"] is not None and limit_of_key is not None and of_key >= limit_of_key
        return not (queue["paused"] or is_full or is_key_full)
