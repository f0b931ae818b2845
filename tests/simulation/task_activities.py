"""What simulated clients do with tasks and webhooks: create, claim, work, repeat reports, cancel, requeue."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from holdfast.core.errors import Refused
from holdfast.core.holdings.lease_ids import held_lease_id
from holdfast.core.limits import ON_DEPENDENCY_FAILURE
from holdfast.core.row import SECOND
from holdfast.core.task import CLAIMED, Handover, Task
from holdfast.core.webhooks.webhook import ACTIVE, PAUSED, Webhook
from holdfast.engine.command import Command, Replayed
from holdfast.engine.verbs.sessions import BegunSession
from holdfast.engine.verbs.tasks.base import TaskOutcome
from holdfast.engine.verbs.tasks.cancelling import CancelTask, RequeueTask
from holdfast.engine.verbs.tasks.claiming import Claimed, ClaimTask, ClaimTasks
from holdfast.engine.verbs.tasks.creating import CreateTask
from holdfast.engine.verbs.tasks.holding import CompleteTask, FailTask, HeartbeatTask, ReleaseTask
from holdfast.engine.verbs.tasks.offers import OfferTask, WithdrawTaskOffer
from holdfast.engine.verbs.webhooks import CreateWebhook, UpdateWebhook
from tests.simulation.activities import WAIT_SECONDS, SessionActivity
from tests.simulation.clients import BASE, TTL, Activity, Client
from tests.simulation.request import Operation, is_holder_command
from tests.support import ACCOUNT

TYPES = ("cut", "weld")


class TaskActivity(Activity):
    """Creates tasks and works on them."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.session: SessionActivity | None = None
        self.held: dict[str, str] = {}
        self.offered: set[str] = set()
        """Lease ids of tasks that it has offered."""
        self.last_report: Command[Any] | None = None

    def join(self, session: SessionActivity) -> None:
        """Claim tasks for a session of the client."""
        self.session = session
        session.on_begun.append(self._begun)

    def next_operation(self) -> Operation | None:
        chance = self.random.random()
        known = sorted(self.client.world.known_tasks)
        dead = self.client.world.dead_letters()
        if chance < 0.3 or not known:
            return self.operation(self.create())
        if chance < 0.36:
            mode = self.random.choice(["pending", "request", "force"])
            return self.operation(CancelTask(**BASE, task_id=self.random.choice(known), mode=mode))
        if chance < 0.44 or (dead and self.random.random() < 0.3):
            return self.operation(RequeueTask(**BASE, task_id=self.random.choice(dead or known)))
        if chance < 0.52 and self.last_report is not None:
            return self.operation(replace(self.last_report, once=None))  # as if its answer was lost
        if self.held and chance < 0.85:
            return self.operation(self.report(self.random.choice(sorted(self.held))))
        return self._claim(known)

    def create(self) -> CreateTask:
        now = self.client.world.database.wall()
        key = self.random.choice(["k1", "k2"]) if self.random.random() < 0.2 else None
        row = Task(
            ACCOUNT, "", type=self.random.choice(TYPES), lease_duration=TTL, unique_key=key,
            max_attempts=3 if key else self.random.randint(1, 3), priority=self.random.randint(0, 1),
            scheduled_at=now + self.random.randint(1, TTL) if self.random.random() < 0.2 else None,
        )  # fmt: skip
        known = sorted(self.client.world.known_tasks)[-6:]
        needed = self.random.sample(known, self.random.randint(1, min(2, len(known)))) if known else []
        if self.random.random() < 0.75:
            needed = []
        row = replace(row, on_dependency_failure=self.random.choice(ON_DEPENDENCY_FAILURE))
        return CreateTask(
            **BASE,
            task=row,
            depends_on=tuple(needed),
            once=self.maybe_once(),
            replace_payload=self.random.random() < 0.2,
        )

    def _claim(self, known: list[str]) -> Operation:
        by = self.client.principal
        given: dict[str, Any] = {"by": by, "worker": by.name, "seed": b""}
        if self.session is not None and self.session.lease_id is not None:
            given |= {"session_id": self.session.session_id, "session_lease_id": self.session.lease_id}
        offered = self.client.world.task_offers
        if offered and self.random.random() < 0.4:
            task_id, code = self.random.choice(offered[-3:])
            return self.operation(ClaimTask(**BASE, **given, task_id=task_id, offer=code))
        if self.random.random() < 0.15:
            return self.operation(ClaimTask(**BASE, **given, task_id=self.random.choice(known)))
        types = self.random.choice([("cut",), TYPES, ()])
        limit = self.random.randint(1, 2)
        wait = WAIT_SECONDS if self.random.random() < 0.5 else 0.0
        once = self.maybe_once(0.2) if not wait else None
        return self.operation(ClaimTasks(**BASE, **given, types=types, limit=limit, once=once), wait)

    def report(self, task_id: str) -> Command[Any]:
        mine = {"task_id": task_id, "lease_id": self.held[task_id], "once": self.maybe_once(0.2)}
        if self.random.random() < 0.3:
            return self._offer({"task_id": task_id, "lease_id": self.held[task_id]})
        chance = self.random.random()
        if chance < 0.25:
            return HeartbeatTask(**BASE, **mine, handover=Handover(note=self.random.choice([None, "halfway"])))
        if chance < 0.65:
            self.last_report = CompleteTask(**BASE, **mine, result=f'"{self.held[task_id]}"')
        elif chance < 0.85:
            permanent = self.random.random() < 0.1
            after = self.random.choice([None, SECOND])
            self.last_report = FailTask(**BASE, **mine, reason="broken", after=after, permanent=permanent)
        else:
            self.last_report = ReleaseTask(**BASE, **mine)
        return self.last_report

    def _offer(self, mine: dict[str, Any]) -> Command[Any]:
        if mine["lease_id"] in self.offered:
            return WithdrawTaskOffer(**BASE, **mine)
        return OfferTask(**BASE, **mine, code=self.client.new_id("code"), lasts=self.random.choice([TTL, 3 * TTL]))

    def receive(self, command: Command[Any], outcome: Any) -> None:
        if isinstance(command, OfferTask) and isinstance(outcome, TaskOutcome):
            self.client.world.task_offers.append((command.task_id, command.code))
            self.offered.add(command.lease_id)
            if self.random.random() < 0.6:
                self.held.pop(command.task_id, None)  # it goes on to other work
        if isinstance(outcome, Claimed):
            self.held |= {taken.task.id: taken.lease_id for taken in outcome.taken}
        elif isinstance(outcome, Replayed):
            if isinstance(command, ClaimTasks):
                self.held |= dict(each.split("=") for each in outcome.body.decode().split(",") if "=" in each)
        elif is_holder_command(command):
            is_over = not isinstance(outcome, TaskOutcome) or outcome.task.state != CLAIMED
            if is_over and self.held.get(command.task_id) == command.lease_id:
                del self.held[command.task_id]

    def _begun(self, outcome: BegunSession) -> None:
        """Tasks of a session that was resumed have new lease ids."""
        self.held |= {task.id: held_lease_id(outcome.lease_id, task) for task in outcome.tasks}

    def forget(self) -> None:
        self.held = {}


class WebhookActivity(Activity):
    """Creates a webhook for all events, pauses it and resumes it."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.hook: str | None = None
        self.state = ACTIVE

    def next_operation(self) -> Operation | None:
        if self.hook is None:
            hook = Webhook(ACCOUNT, "", principal=self.client.principal.id, url="https://x.test")
            return self.operation(CreateWebhook(**BASE, hook_id="", hook=hook, limit=2))
        state = PAUSED if self.state == ACTIVE else ACTIVE
        return self.operation(UpdateWebhook(**BASE, hook_id=self.hook, state=state))

    def receive(self, command: Command[Any], outcome: Any) -> None:
        if isinstance(outcome, Refused):
            return
        if isinstance(command, CreateWebhook):
            self.hook = outcome.id
        else:
            self.state = outcome.state
