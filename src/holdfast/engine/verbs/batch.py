"""Batches: several commands in one request and one transaction, each with its own outcome."""

from __future__ import annotations

from typing import Any, Self

from msgspec.structs import replace

from holdfast.core.errors import DamagedRow, Refused
from holdfast.engine.command import Command, Offered, Outcome, Replayed
from holdfast.engine.view import View
from holdfast.store.needs import Needs

FailedItem = Refused | DamagedRow
"""Why one item changed nothing: it was refused, or a row that it needs is damaged."""
Result = Outcome | Replayed | FailedItem


class Outcomes(Outcome, frozen=True):
    """The outcome of each command, in order; one that failed changes nothing and does not stop the others."""

    each: tuple[Any, ...]

    def with_tokens(self, tokens: list[int]) -> Self:
        """The outcomes with the tokens drawn for them."""
        each = (item.with_tokens(tokens) if isinstance(item, Outcome) else item for item in self.each)
        return replace(self, each=tuple(each))


class Batch(Command[Outcomes], frozen=True):
    """Commands of one caller."""

    items: tuple[Command[Any], ...]

    @property
    def urgent(self) -> bool:  # type: ignore[override]
        """Whether every item is urgent."""
        return all(item.urgent for item in self.items)

    def all_needs(self) -> Needs:
        """What all of them need, and the answer under the batch's own Idempotency-Key."""
        needs = Needs.joined(item.all_needs() for item in self.items)
        return needs if self.once is None else replace(needs, answers=self.once_keys())

    def once_keys(self) -> tuple[tuple[str, str], ...]:
        """The keys of the batch and of its items."""
        own = () if self.once is None else ((self.account, self.once.key),)
        return (*own, *(key for item in self.items if item.once is not None for key in item.once_keys()))

    @property
    def stores_answer(self) -> bool:
        """Whether any item does more than renew."""
        return any(item.stores_answer for item in self.items)

    def size(self) -> int:
        """The sum of its items."""
        return sum(item.size() for item in self.items)

    def weight(self) -> int:
        """The sum of its items."""
        return sum(item.weight() for item in self.items)

    def new_tasks(self) -> tuple[Offered, ...]:
        """Those of its items."""
        return tuple(queue for item in self.items for queue in item.new_tasks())

    def decide(self, view: View) -> Outcomes:
        """Run the items over the same view; an unexpected error in one undoes all."""
        mark = view.mark()
        try:
            return Outcomes(each=tuple(self._run_item(item, view) for item in self.items), now=view.now)
        except Exception:
            view.rewind(mark)
            raise

    def _run_item(self, item: Command[Any], view: View) -> Result:
        steps, drawn = len(view.steps), view.tokens_drawn
        try:
            outcome: Outcome | Replayed = item.run(view)
        except (Refused, DamagedRow) as failure:
            view.undo()
            return failure
        if item.keeps_answer(outcome, has_changed=len(view.steps) > steps):
            assert view.tokens_drawn == drawn, "an answer that shows a token cannot be kept before tokens are drawn"
            view.remember(item.remember(outcome, view.now))
        view.keep()
        return outcome
