"""Commands by which the holder of a task offers it to a taker, and withdraws the offer."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core import offer as offers
from holdfast.core import task as tasks
from holdfast.core.lease import proof_of
from holdfast.core.row import Instant
from holdfast.core.task import Task
from holdfast.engine.expiry import task_verb
from holdfast.engine.verbs.job_offers import is_session_live
from holdfast.engine.verbs.tasks.base import TaskOutcome
from holdfast.engine.verbs.tasks.holding import HolderCommand
from holdfast.engine.view import View


class OfferTask(HolderCommand, frozen=True, kw_only=True):
    """Offer the task to whoever claims it with the code. Its answer shows the code, so it is never stored."""

    code: str
    lasts: Instant
    to: str | None = None

    def decide(self, view: View) -> TaskOutcome:
        """The offered task: it is held at least until the end of the offer, and belongs to no session."""
        offered = offers.make(
            self.find_held(view), proof=proof_of(self.code), to=self.to, lasts=self.lasts, now=view.now
        )
        return TaskOutcome(task=view.put(offered, offers.OFFERED), now=view.now)


class WithdrawTaskOffer(HolderCommand, frozen=True):
    """Withdraw the offer of a task; without an offer nothing changes."""

    def stored(self, view: View) -> Task:
        """The task, with an offer that is over as well: withdrawing it ends the attempt if its session is over."""
        return self.task(view)

    def decide(self, view: View) -> TaskOutcome:
        """The task with its ordinary deadline, in its session again; in its queue if that session is over."""
        task = self.find_held(view)
        if task.offer is None:
            return TaskOutcome(task=view.effective(task), now=view.now)
        kept = offers.withdraw(task)
        if not is_session_live(view, kept.account, kept.session):
            back = tasks.release(kept, tasks.SESSION_ENDED, now=view.now, wall=view.wall)
            return TaskOutcome(task=view.put(back, task_verb(back, "released")), now=view.now)
        kept = view.put(replace(kept, expires_at=view.now + tasks.lease_ttl(kept)), offers.OFFER_WITHDRAWN)
        return TaskOutcome(task=view.effective(kept), now=view.now)
