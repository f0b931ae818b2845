"""Checks by the log alone that no task is claimed before those that it depends on have completed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.core.event import Event

if TYPE_CHECKING:
    from tests.simulation.world import World

FAILED = {"dead_letter", "cancelled"}


class DependencyChecker:
    """How each task has ended so far, and the rule for claims."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._ends: dict[str, set[str]] = {}
        """By task: the final states that it has had; a dead letter may be requeued and complete."""

    def check(self, event: Event, verb: str, after: dict[str, Any]) -> None:
        """A claim needs all of them; one that failed counts only for a task that is to run anyway."""
        if after["state"] in FAILED | {"completed"}:
            self._ends.setdefault(after["id"], set()).add(after["state"])
        if verb == "dependency_met":
            self._world.count("dependency_met" if after["ready"] else "one of several dependencies met")
        if verb != "claimed":
            return
        enough = {"completed"} | (FAILED if after["on_dependency_failure"] == "run" else set())
        for needed in after["depends_on"] or ():
            if not self._ends.get(needed, set()) & enough:
                self._world.fail(f"P28: {event.subject} was claimed before task:{needed} had completed")


def left_waiting(images: dict[str, dict[str, Any]]) -> list[str]:
    """Tasks that wait although everything that they need has completed."""
    completed = {image["id"] for subject, image in images.items()
                 if subject.startswith("task:") and image["state"] == "completed"}  # fmt: skip
    waiting = [
        image
        for subject, image in images.items()
        if subject.startswith("task:") and image["state"] == "pending" and image["depends_on"]
    ]
    for_others = [image for image in waiting if image["waits_for"] == "dependencies"]
    return [image["id"] for image in for_others if completed.issuperset(image["depends_on"])]
