"""Plans: tasks that depend on each other, created in one transaction, all or none of them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import DamagedRow, Invalid, Refused
from holdfast.core.task import creation_order
from holdfast.engine.command import Replayed
from holdfast.engine.verbs.batch import Batch, FailedItem, Outcomes, Result
from holdfast.engine.verbs.tasks.creating import CreateTask
from holdfast.engine.view import View
from holdfast.store.needs import Needs


class CreatePlan(Batch, frozen=True, kw_only=True):
    """Tasks that name each other by their refs. If one of them is refused, none is created."""

    items: tuple[CreateTask, ...]
    refs: tuple[str | None, ...]
    """The name of each item in this request; other items may depend on it."""

    def all_needs(self) -> Needs:
        """What all of them need, except for tasks of this request."""
        known = set(self.refs)
        outside = [
            replace(item, depends_on=tuple(name for name in item.depends_on if name not in known))
            for item in self.items
        ]
        return super(CreatePlan, replace(self, items=tuple(outside))).all_needs()

    def decide(self, view: View) -> Outcomes:
        """Create them in an order in which each comes after those that it needs."""
        positions = {ref: position for position, ref in enumerate(self.refs) if ref is not None}
        order = creation_order(
            [[positions[name] for name in item.depends_on if name in positions] for item in self.items]
        )
        mark, ids, found = view.mark(), dict[str, str](), dict[int, Any]()
        for position in order:
            item = self.items[position]
            resolved = replace(item, depends_on=tuple(ids.get(name, name) for name in item.depends_on))
            result = self._run_item(resolved, view)
            if isinstance(result, FailedItem):
                view.rewind(mark)
                raise at_item(result, position)
            found[position] = result
            if (ref := self.refs[position]) is not None:
                ids[ref] = _id_of(result)
        return Outcomes(each=tuple(found[position] for position in range(len(found))), now=view.now)


def _id_of(result: Result) -> str:
    """The id of the task of an item: new, or that of an earlier request with the same unique or idempotency key."""
    if isinstance(result, Replayed):
        return str(msgspec.json.decode(result.body)["id"])
    return str(result.task.id)  # type: ignore[union-attr]


def at_item(failure: Refused | DamagedRow, position: int) -> Refused | DamagedRow:
    """The refusal of an item as that of the whole request, with the item's position."""
    if not isinstance(failure, Invalid):
        failure.facts["item"] = position
        return failure
    errors = [error | {"pointer": f"/items/{position}{error.get('pointer', '')}"} for error in failure.errors]
    return type(failure)(f"item {position}: {failure.message}", errors, **failure.facts)
