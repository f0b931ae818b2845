"""Random commands about tasks and named sessions, mixed with those about jobs, the same for every store."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from holdfast.core.holdings.lease_ids import held_lease_id
from holdfast.core.limits import ON_DEPENDENCY_FAILURE
from holdfast.core.question import APPROVE, REJECT, Question, task_of
from holdfast.core.row import SECOND, Instant
from holdfast.core.session import Context, Session
from holdfast.core.task import Handover, Task
from holdfast.engine import expiry, retention
from holdfast.engine.command import Once
from holdfast.engine.verbs import accounts
from holdfast.engine.verbs.batch import Batch, Outcomes
from holdfast.engine.verbs.questions import ExpireQuestion
from holdfast.engine.verbs.queues import ChangeQueue, OpenQueue
from holdfast.engine.verbs.sessions import BegunSession
from holdfast.engine.verbs.tasks.base import TaskOutcome
from holdfast.engine.verbs.tasks.claiming import Claimed
from holdfast.engine.verbs.tasks.creating import Created
from holdfast.engine.verbs.tasks.offers import OfferTask
from tests import task_commands as commands
from tests.engine.script import Script
from tests.support import CAUSE, START, claim

TASK_VERBS = [
    "create", "create", "create", "take", "take", "take", "take this", "beat", "complete", "fail", "fail",
    "release task", "undeliver", "cancel", "requeue", "resolve", "settle", "settle", "many", "begin", "begin",
    "heartbeat session", "write", "close session", "expire named", "give grace", "purge", "remove row",
    "write snapshot", "claim", "heartbeat", "account", "offer task", "offer task", "withdraw task", "accept task",
    "accept task", "offer", "accept", "plan", "open queue", "change queue", "ask", "ask", "answer", "answer",
    "expire question",
]  # fmt: skip

TYPES = ["a", "b"]
BACKOFFS = [None, '{"kind":"fixed","base_seconds":2.0}', '{"kind":"exponential","base_seconds":1.0,"jitter":0.5}']


SESSION_TTLS = [10, 60, 600, 3600]


def once(key: str, fingerprint: str) -> Once:
    """An Idempotency-Key over an answer without secrets or tokens."""
    return Once(key, fingerprint, lambda outcome: (200, type(outcome).__name__.encode()))


class TaskScript(Script):
    """Turns drawn moves into commands. Ids, lease ids and secrets are from earlier outcomes, or wrong on purpose."""

    def __init__(self, clock: Any) -> None:
        super().__init__()
        self._clock = clock
        self.tasks: dict[str, list[str]] = {}
        self.known_leases: dict[tuple[str, str], list[str]] = {}
        """By task or session: its lease ids."""
        self.secrets: dict[tuple[str, str], list[str]] = {}
        self.questions: dict[str, list[str]] = {}
        """By account: the questions that were asked."""
        self.offered_tasks: dict[str, tuple[str, str]] = {}
        """By account: the task that was offered last, and the code."""

    def command(self, drawn: dict[str, Any]) -> Any:
        verb = getattr(self, drawn["verb"].replace(" ", "_"), None)
        if verb is None:
            return super().command(drawn)
        self.made += 1
        return verb(drawn, {"account": drawn["account"]}, drawn["extra"])

    def initial_commands(self) -> list[Any]:
        """Two sessions and five tasks, three of them claimed."""
        sessions = [
            commands.begin(f"agent-{number}", seed=f"session-seed-{number}", ttl=600 * SECOND) for number in range(2)
        ]
        created = [
            commands.create(f"t{number}", type=TYPES[number % 2], unique_key=f"k{number}") for number in range(5)
        ]
        return [*sessions, *created, commands.take(seed="seed-0", limit=3, session_id="agent-0")]

    @property
    def now(self) -> Instant:
        return max(START, self._clock())

    # -- creating and claiming -----------------------------------------------------------------------------------

    def create(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        kind = TYPES[drawn["name"] % 2]
        return commands.create(
            f"t{self.made:04}", type=kind, priority=drawn["session"] // 2, max_attempts=1 + drawn["lease"] % 3,
            lease_duration=drawn["ttl"] * SECOND, backoff=BACKOFFS[drawn["lease"] % 3], replaces=drawn["who"] == 1,
            scheduled_at=self.now + drawn["ttl"] * SECOND if extra == 4 else None, payload=f'{{"n":{self.made}}}',
            unique_key=f"k{drawn['name']}" if extra in {2, 5} else None, tag="red" if extra == 1 else None,
            once=once(f"key-{drawn['lease']}", kind) if extra == 3 else None,
            requires=[None, None, "cpu", "cpu,gpu", "gpu", None][drawn["lease"]],
            concurrency_key=[None, "north", "north", "south"][drawn["session"]],
            approval=self.approval(drawn) if drawn["session"] == 1 else None,
            **self.dependencies(drawn, extra), **base,
        )  # fmt: skip

    def dependencies(self, drawn: dict[str, Any], extra: int) -> dict[str, Any]:
        """One or two earlier tasks, by id or by unique key, some of them unknown."""
        if extra not in {0, 5}:
            return {}
        names = [self.pick_task(drawn), self.pick_task(drawn | {"who": 1}), f"k{drawn['name']}"]
        after = names[drawn["lease"] % 3 :][: 1 + drawn["session"] % 2]
        return {"after": after, "on_dependency_failure": ON_DEPENDENCY_FAILURE[drawn["session"] % 3]}

    def plan(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        """Two tasks, the first of which depends on the second; sometimes also the other way round."""
        first, second = (f"t{self.made:04}{part}" for part in "ab")
        items = (
            ("x", commands.create(first, type=TYPES[0], after=["y"], **base)),
            ("y", commands.create(second, type=TYPES[1], after=["x"] if extra == 5 else [], **base)),
        )
        return replace(commands.plan(*items), **base)

    def approval(self, drawn: dict[str, Any]) -> Any:
        at = self.now + drawn["ttl"] * SECOND if drawn["lease"] % 2 else None
        return commands.approval(
            deadline_at=at, on_timeout=None if at is None else [None, APPROVE, REJECT][drawn["name"]]
        )

    def ask(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        choices, at = [(), ("a", "b")][extra % 2], self.now + drawn["ttl"] * SECOND if extra < 4 else None
        default = "a" if at is not None and drawn["who"] == 1 else None
        left = Handover(None, [None, '{"asked":1}'][extra // 3])
        about = {"choices": choices, "deadline_at": at, "on_timeout": default}
        return self.by_holder(commands.ask, drawn, handover=left, **about)

    def answer(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        text = ["a", "b", APPROVE, APPROVE, REJECT, "c"][extra]
        return commands.answer(self.pick_question(drawn), text, by=f"p{drawn['who']}", **base)

    def expire_question(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return ExpireQuestion(**base, cause=CAUSE, question_id=self.pick_question(drawn))

    def take(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        types = [("a",), ("b",), ("a", "b"), ()][drawn["session"]]
        session = self.pick_session(drawn) if extra >= 4 else None
        return commands.take(
            *types, seed=f"seed-{self.made}", limit=1 + extra % 3, worker=f"w{drawn['who']}",
            session_id=session, session_lease_id=self.session_lease(drawn, session),
            capabilities=["", "cpu", "gpu", "cpu,gpu", "", "gpu"][drawn["lease"]], **base,
        )  # fmt: skip

    def take_this(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        session = self.pick_session(drawn) if extra == 5 else None
        proof = {"session_id": session, "session_lease_id": self.session_lease(drawn, session)}
        return commands.take_this(self.pick_task(drawn), seed=f"seed-{self.made}", **proof, **base)

    def settle(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return expiry.UpdateDueTask(**base, cause=CAUSE, task_id=self.pick_task(drawn))

    def open_queue(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return OpenQueue(**base, cause=CAUSE, type=TYPES[drawn["name"] % 2])

    def change_queue(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        opened = OpenQueue(**base, cause=CAUSE, type="a")
        changes = {"max_running": [None, 1, 2, 3][drawn["session"]], "paused": extra == 5}
        changes["max_running_per_key"] = [None, 1, 1, 2, 3, None][drawn["lease"]]
        return Batch(**base, cause=CAUSE, items=(opened, ChangeQueue(**base, cause=CAUSE, type="a", changes=changes)))

    # -- holders -------------------------------------------------------------------------------------------------

    def by_holder(self, verb: Any, drawn: dict[str, Any], **more: Any) -> Any:
        """A command by the newest holder of a recent task; sometimes by its first holder, or without a lease id."""
        claimed = [key[1] for key in self.known_leases if key[0] == drawn["account"] and key[1].startswith("t")]
        task_id = claimed[-1 - drawn["name"] % len(claimed)] if claimed else self.pick_task(drawn)
        known = self.known_leases.get((drawn["account"], task_id), ["wrong"])
        lease_id = None if drawn["lease"] == 5 else known[-1] if drawn["lease"] else known[0]
        return verb(task_id, lease_id=lease_id, account=drawn["account"], **more)

    def beat(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        left = Handover([None, "note"][extra % 2], [None, '{"c":1}'][extra // 3], [None, "0.5"][extra % 2])
        return self.by_holder(commands.beat, drawn, handover=left, token=self.made if extra == 4 else None)

    def complete(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return self.by_holder(
            commands.complete, drawn, result=[None, '{"r":1}'][extra % 2], output_id=[None, "o"][extra // 3]
        )

    def fail(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        after = drawn["ttl"] * SECOND if extra == 2 else None
        return self.by_holder(commands.fail, drawn, reason="no", permanent=extra == 5, after=after, random_fraction=0.5)

    def release_task(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        after = drawn["ttl"] * SECOND if extra == 2 else None
        return self.by_holder(commands.release_task, drawn, outcome=["released", "snoozed"][extra % 2], after=after)

    def offer_task(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        lasts, to = [drawn["ttl"], 400][extra % 2] * SECOND, [None, None, f"agent-{drawn['name']}"][extra % 3]
        return self.by_holder(commands.offer_task, drawn, code=f"code-{drawn['session'] // 2}", lasts=lasts, to=to)

    def withdraw_task(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return self.by_holder(commands.withdraw_task, drawn)

    def accept_task(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        task_id, code = self.offered_tasks.get(drawn["account"], (self.pick_task(drawn), "wrong"))
        session = self.pick_session(drawn) if extra >= 3 else None
        return commands.take_this(task_id, seed=f"seed-{self.made}", session_id=session, offer=code, **base)

    def undeliver(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return self.by_holder(commands.undeliver, drawn)

    def cancel(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return commands.cancel(self.pick_task(drawn), ["pending", "request", "force"][extra % 3], **base)

    def requeue(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return commands.requeue(self.pick_task(drawn), keep_count=extra == 5, **base)

    def resolve(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return commands.resolve(self.pick_task(drawn), **base)

    def many(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        """Three verbs in one request, which may be about the same task."""
        verbs = [self.create, self.complete, self.cancel, self.fail, self.create]
        items = []
        for step in range(3):
            self.made += 1
            moved = drawn | {"name": (drawn["name"] + step) % 3}
            items.append(verbs[(drawn["lease"] + step) % 5](moved, base, (extra + step) % 6))
        return Batch(**base, cause=CAUSE, items=tuple(items))

    # -- sessions------------------------------------------------------------------------------------------------

    def begin(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        session_id = f"agent-{drawn['name']}"
        known = self.secrets.get((drawn["account"], session_id), [])
        secret = known[-1] if known and extra < 5 else [None, "wrong"][drawn["who"]]
        context = Context(turn=extra) if extra == 2 else Context()
        return commands.begin(
            session_id, seed=f"session-seed-{self.made}", secret=secret, ttl=SESSION_TTLS[drawn["session"]] * SECOND,
            context=context, lane=[None, False, True][drawn["lease"] % 3], capabilities=[None, "cpu", ""][extra % 3],
            **base,
        )  # fmt: skip

    def by_session(self, verb: Any, drawn: dict[str, Any], **more: Any) -> Any:
        session_id = self.pick_session(drawn)
        return verb(session_id, lease_id=self.session_lease(drawn, session_id), account=drawn["account"], **more)

    def session_lease(self, drawn: dict[str, Any], session_id: str | None) -> str | None:
        known = self.known_leases.get((drawn["account"], session_id or ""), ["wrong"])
        return None if drawn["lease"] == 5 or session_id is None else known[-1]

    def heartbeat_session(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return self.by_session(commands.heartbeat_session, drawn)

    def write(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        context = Context(turn=extra, context='{"x":1}' if extra == 1 else None)
        return self.by_session(commands.write, drawn, context=context, if_version=[None, None, 0, 1, 2, 3][extra])

    def close_session(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return self.by_session(commands.close_session, drawn)

    def expire_named(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return expiry.ExpireSession(**base, cause=CAUSE, session_id=self.pick_session(drawn))

    # -- commands of the server ----------------------------------------------------------------------------------

    def give_grace(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return expiry.GiveGrace(**base, cause=CAUSE, key=self.pick_key(drawn), last_beat=self.now - extra * 5 * SECOND)

    def purge(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        task_id = self.pick_task(drawn)
        asked = [row_id for row_id in self.questions.get(drawn["account"], []) if task_of(row_id) == task_id]
        before = self.now - extra * SECOND
        return retention.PurgeTask(
            **base, cause=CAUSE, task_id=task_id, before=before, dead=extra < 3, questions=tuple(asked)
        )

    def remove_row(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        key = [("leases", drawn["account"], "a"), ("sessions", drawn["account"], self.pick_session(drawn))][extra % 2]
        return retention.RemoveRow(**base, cause=CAUSE, key=key, before=self.now)

    def write_snapshot(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return retention.WriteSnapshot(**base, cause=CAUSE, key=self.pick_key(drawn))

    def account(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        return accounts.ChangeAccountSettings(**base, cause=CAUSE, require_lease_id=[None, True, False][extra % 3])

    def claim(self, drawn: dict[str, Any], base: dict[str, Any], extra: int) -> Any:
        session = self.pick_session(drawn) if extra >= 3 else None
        proof = {"session_id": session, "session_lease_id": self.session_lease(drawn, session)}
        return claim("a", f"job-lease-{self.made}", ttl=drawn["ttl"] * SECOND, **proof, **base)

    # -- known ids -----------------------------------------------------------------------------------------------

    def pick_task(self, drawn: dict[str, Any]) -> str:
        known = self.tasks.get(drawn["account"], [])
        return known[-1 - (drawn["name"] + 3 * drawn["who"]) % len(known)] if known else "no-such-task"

    def pick_session(self, drawn: dict[str, Any]) -> str:
        known = [key[1] for key in self.known_leases if key[0] == drawn["account"] and key[1].startswith("agent")]
        return known[drawn["name"] % len(known)] if known else "agent-0"

    def pick_question(self, drawn: dict[str, Any]) -> str:
        known = self.questions.get(drawn["account"], [])
        return known[-1 - drawn["name"] % len(known)] if known else "t0-1"

    def pick_key(self, drawn: dict[str, Any]) -> tuple[str, str, str]:
        if drawn["session"] == 0:
            return (Session.table, drawn["account"], self.pick_session(drawn))
        if drawn["session"] == 1:
            return (Question.table, drawn["account"], self.pick_question(drawn))
        return (Task.table, drawn["account"], self.pick_task(drawn))

    def record_outcomes(self, commands: list[Any], outcomes: list[Any]) -> None:
        """Record the ids, lease ids and secrets in the outcomes."""
        super().record_outcomes(commands, outcomes)
        for command, outcome in zip(commands, outcomes, strict=True):
            if isinstance(outcome, TaskOutcome) and outcome.task.question is not None:
                asked = self.questions.setdefault(command.account, [])
                asked[:] = [*(each for each in asked if each != outcome.task.question), outcome.task.question]
            if isinstance(outcome, Created) and not outcome.deduplicated:
                self.tasks.setdefault(command.account, []).append(outcome.task.id)
            elif isinstance(outcome, Claimed):
                for taken in outcome.taken:
                    self.known_leases.setdefault((command.account, taken.task.id), []).append(taken.lease_id)
            elif isinstance(command, OfferTask) and isinstance(outcome, TaskOutcome):
                self.offered_tasks[command.account] = (command.task_id, command.code)
            elif isinstance(outcome, BegunSession):
                self._begun(command, outcome)
            elif isinstance(outcome, Outcomes):
                self.record_outcomes(list(command.items), list(outcome.each))

    def _begun(self, command: Any, outcome: BegunSession) -> None:
        account = command.account
        self.known_leases.setdefault((account, outcome.session.id), []).append(outcome.lease_id)
        for task in outcome.tasks:
            held = held_lease_id(outcome.lease_id, task)
            self.known_leases.setdefault((account, task.id), []).append(held)
        if outcome.secret is not None:
            self.secrets.setdefault((account, outcome.session.id), []).append(outcome.secret)
