"""Many verbs in one request and one transaction, each with an outcome of its own."""

from __future__ import annotations

from typing import Any, Self

from msgspec.structs import replace

from holdfast.core.errors import Refused
from holdfast.engine.command import Command, Outcome, Replayed
from holdfast.engine.view import View
from holdfast.store.needs import Needs

Result = Outcome | Replayed | Refused


class Outcomes(Outcome, frozen=True):
    """What came of each, in order; a refusal changes nothing and stops nobody else."""

    each: tuple[Any, ...]

    def with_tokens(self, tokens: list[int]) -> Self:
        """Itself, with the tokens that were drawn."""
        real = (one.with_tokens(tokens) if isinstance(one, Outcome) else one for one in self.each)
        return replace(self, each=tuple(real))


class Batch(Command[Outcomes], frozen=True):
    """Commands of one caller."""

    items: tuple[Command[Any], ...]

    @property
    def urgent(self) -> bool:  # type: ignore[override]
        """Holders' writes go first, many at a time as well as alone."""
        return all(item.urgent for item in self.items)

    def all_needs(self) -> Needs:
        """What all of them need, and the answer under the batch's own Idempotency-Key."""
        needs = Needs.joined(item.all_needs() for item in self.items)
        return needs if self.once is None else replace(needs, answers=self.once_keys())

    def once_keys(self) -> tuple[tuple[str, str], ...]:
        """Its own and its items'."""
        own = () if self.once is None else ((self.account, self.once.key),)
        return (*own, *(key for item in self.items for key in item.once_keys()))

    def size(self) -> int:
        """What they carry together."""
        return sum(item.size() for item in self.items)

    def weight(self) -> int:
        """As many rows as items."""
        return len(self.items)

    def decide(self, view: View) -> Outcomes:
        """One after the other over the same view; a defect in one of them undoes them all."""
        mark = view.mark()
        try:
            return Outcomes(each=tuple(self._one(item, view) for item in self.items), now=view.now)
        except Exception:
            view.rewind(mark)
            raise

    def _one(self, item: Command[Any], view: View) -> Result:
        steps, drawn = len(view.steps), view.tokens_drawn
        try:
            outcome: Outcome | Replayed = item.run(view)
        except Refused as refusal:
            view.undo()
            return refusal
        if item.once is not None and len(view.steps) > steps:
            assert view.tokens_drawn == drawn, "an answer that shows a token cannot be kept before tokens are drawn"
            view.remember(item.remember(outcome, view.now))
        view.keep()
        return outcome
