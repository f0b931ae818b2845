"""Recovery on request: ends all expired rows at once, as the sweep does, and reports them."""

from __future__ import annotations

from holdfast.core import session as sessions
from holdfast.core.lease import Lease
from holdfast.core.row import Key, Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.command import Command, Outcome
from holdfast.engine.expiry import end_session, expire_lease_if_due, expire_task_if_due
from holdfast.engine.view import View
from holdfast.store.needs import Needs


class Recovered(Outcome, frozen=True):
    """The rows that were ended, as they are now."""

    ended: tuple[Row, ...]


class Recover(Command[Recovered], frozen=True):
    """End everything that has expired, without waiting for the sweep."""

    due: tuple[Key, ...]

    def needs(self) -> Needs:
        """The rows that may be due, and what due sessions hold."""
        sessions_due = (key[1:] for key in self.due if key[0] == Session.table)
        return Needs(rows=self.due, holdings=tuple(sessions_due))

    def weight(self) -> int:
        """As many rows as may be due."""
        return len(self.due)

    def decide(self, view: View) -> Recovered:
        """The rows that this ended."""
        ended: list[Row] = []
        for key in self.due:
            row = view.at(key)
            if isinstance(row, Session) and sessions.is_due(row, view.now):
                ended += end_session(view, row, sessions.EXPIRED)
            elif isinstance(row, Task):
                ended += [after for after in [expire_task_if_due(view, row)] if after is not row]
            elif isinstance(row, Lease):
                ended += [after for after in [expire_lease_if_due(view, row.account, row.id)] if after is not row]
        return Recovered(ended=tuple(ended), now=view.now)
