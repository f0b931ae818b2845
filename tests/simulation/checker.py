"""The checker: every commit, every answer, and the state at the end, when all faults have stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import StoreUnavailable
from holdfast.core.event import BrokenLog, Event, row_image, subject_of
from holdfast.core.lease import Lease
from holdfast.core.names import ELECTION_PREFIX
from holdfast.core.principal import Principal
from holdfast.core.question import choices_of
from holdfast.core.row import SECOND
from holdfast.core.task import FINAL_STATES, PENDING, Task, unmet_ids
from holdfast.core.task.queue import Queue
from holdfast.core.webhooks.webhook import ACTIVE, PAUSED, Webhook
from holdfast.engine.verbs.questions import AnswerQuestion
from holdfast.engine.verbs.queues import ChangeQueue
from holdfast.engine.verbs.tasks.cancelling import CancelTask
from holdfast.engine.verbs.tasks.claiming import Claimed, ClaimTasks, Empty
from holdfast.engine.verbs.tasks.holding import CompleteTask
from holdfast.engine.verbs.webhooks import UpdateWebhook
from tests.simulation.answer_checker import AnswerChecker
from tests.simulation.clients import BASE
from tests.simulation.dependency_checker import left_waiting
from tests.simulation.log_checker import LogChecker
from tests.simulation.request import Operation, Request
from tests.simulation.reservation_checker import who_waits_for_nothing
from tests.simulation.server import Server
from tests.simulation.supervised_tasks import OPERATOR, PERSON
from tests.support import ACCOUNT, ALICE, check_log

if TYPE_CHECKING:
    from tests.simulation.world import World

MAX_ROUNDS = 60
MAX_TRIES = 5
LONGEST_JUMP = 4.0
"""Seconds: a server that did nothing for more than 5 s would give grace."""


class Checker:
    """Knows all promises; knows no rule of core."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._fail = world.fail
        self.log = LogChecker(world)
        self.answers = AnswerChecker(world, self.log)

    def committed(self, server: Server, events: Sequence[Event], newest_token: int) -> None:
        world = self._world
        for event in events:
            world.seen[event.kind.partition(".")[2]] += 1
            if world.is_traced:
                world.note(server, f"commits {event.kind} {event.subject} ({event.request_id or event.actor})")
        self.log.committed(events, newest_token)

    def answered(self, request: Request, outcome: Any) -> None:
        self.answers.answered(request, outcome)

    # -- the end -----------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Stop all faults, then check that everything becomes free, done and delivered."""
        world = self._world
        world.note("world", "all faults stop")
        world.faults.stop()
        for server in world.servers:
            server.paused_until = server.cut_off_until = 0
        for number in range(world.server_count):
            if world.server(number) is None:
                world.start_server(number)
        for client in world.clients:
            client.crash()
        world.time.now += 2 * SECOND
        for _ in range(MAX_ROUNDS):
            self._run_until_idle()
            world.check()
            self._check_waiters()
            if self._is_settled():
                break
            self._pass_time()
        else:
            self._fail("P12: after the faults stopped, not everything became free or done")
        self.check_final_state()
        if world.random.random() < 0.15:
            self._age()

    def _age(self) -> None:
        """A minute later, retention removes what is old; the rest of the log must still give the rows."""
        world = self._world
        world.time.now += 61 * SECOND
        world.run_as(world.servers[0], world.servers[0].run_cleanup)
        self.check_final_state()

    def _run_until_idle(self) -> None:
        """Everything that can happen now happens."""
        world = self._world
        is_idle, rounds = False, 0
        while not is_idle:
            world.check()
            rounds += 1
            if rounds > MAX_ROUNDS:
                self._fail("P12: the servers are never idle, although no time passes")
            world.network.deliver_requests(1.0)
            is_idle = True
            for server in world.servers:
                world.run_as(server, server.run_signals)
                if server.is_sweep_due():
                    world.run_as(server, server.run_sweep)
                    is_idle = False
                if server.has_work():
                    world.run_as(server, server.run_lane)
                    is_idle = False
                if world.has_webhooks and server.serving:
                    is_idle = not server.dispatcher.run() and is_idle
            world.network.deliver_answers(1.0)

    def _pass_time(self) -> None:
        world = self._world
        moments = [server.timer.next_moment() for server in world.servers]
        deadline = world.database.indexes.deadlines.lowest()
        moments += [] if deadline is None else [(deadline - world.time.now) / SECOND + world.time.monotonic()]
        ahead = [moment - world.time.monotonic() for moment in moments if moment is not None]
        world.time.now += int(min([*(each for each in ahead if each > 0), LONGEST_JUMP]) * SECOND) + 1000

    def _is_settled(self) -> bool:
        """Whether nothing is held, no caller waits, every task is done and every message delivered; work on these."""
        world = self._world
        self._let_tasks_go_on()
        self._work_on_tasks()
        self._end_held_back()
        rows = world.database.rows.values()
        open_tasks = any(isinstance(row, Task) and row.state not in FINAL_STATES for row in rows)
        hooks = [row for row in rows if isinstance(row, Webhook) and row.state == PAUSED]
        for hook in hooks:
            self._ask(UpdateWebhook(**BASE, hook_id=hook.id, state=ACTIVE))
        waiting = any(request.ticket is not None and request.answer is None and request.ticket.sink.is_alive
                      for request in world.requests.values())  # fmt: skip
        undelivered = any(delivery.state == "pending" for delivery in world.database.deliveries.rows.values())
        is_held = world.database.indexes.deadlines.lowest() is not None
        return not (open_tasks or hooks or waiting or undelivered or is_held)

    def _let_tasks_go_on(self) -> None:
        """Resume the queues and answer the questions, unless they will expire soon; limits stay."""
        world = self._world
        for queue in [row for row in world.database.rows.values() if isinstance(row, Queue) and row.paused]:
            self._ask(ChangeQueue(**BASE, type=queue.id, changes={"paused": False}), OPERATOR)
        soon = world.database.wall() + 8 * SECOND
        for question in [row for row in world.open_questions() if (row.deadline_at or soon + 1) > soon]:
            text = (*choices_of(question), "yes")[0]
            self._ask(AnswerQuestion(**BASE, question_id=question.id, answer=text, by=PERSON.name), PERSON)

    def _end_held_back(self) -> None:
        """Cancel tasks that wait for one that failed for good; by now nothing else may wait for what is over."""
        for task_id in left_waiting(self.log.images):
            self._fail(f"P28: task:{task_id} waits, and everything that it needs has completed")
        rows = self._world.database.rows
        pending = [row for row in rows.values() if isinstance(row, Task) and row.state == PENDING]
        held_back = [row.id for row in pending if any(_is_over(rows, row.account, needed) for needed in unmet_ids(row))]
        for task_id in held_back:
            self._ask(CancelTask(**BASE, task_id=task_id))

    def _work_on_tasks(self) -> None:
        """Complete every task that can be claimed; a queue may let only a few of them run at once."""
        has_limits = Queue.table in self._world.database.indexes.tables
        limit = 1 if has_limits else 50  # a claim of few tasks meets those first for which there is no room
        while claimable := self._claimable((ACCOUNT, "")):
            claimed = self._ask(ClaimTasks(**BASE, by=ALICE, worker="finisher", seed=b"", limit=limit))
            if isinstance(claimed, Empty) and self._claimable((ACCOUNT, "")) == claimable:
                self._fail(f"P29: a claim found no task, and there is room for {', '.join(claimable)}")
            if not isinstance(claimed, Claimed):
                return
            commands = [
                CompleteTask(**BASE, task_id=each.task.id, lease_id=each.lease_id, result="1") for each in claimed.taken
            ]
            for tries_left in reversed(range(MAX_TRIES)):
                reports = [self._send(command) for command in commands]
                self._run_until_idle()
                # A row may be locked by the sweep of another server: a client tries again.
                again = [report for report in reports if isinstance(report.answer, StoreUnavailable) and tries_left]
                for report in reports:
                    if isinstance(report.answer, Exception) and report not in again:
                        self._fail(f"P10: {report} of the live holder was refused: {report.answer!r}")
                commands = [report.command for report in again]

    def _send(self, command: Any, by: Principal | None = None) -> Request:
        world = self._world
        world.network.send(None, Operation(None, command, by=by))
        return world.requests[f"r{len(world.requests)}"]

    def _ask(self, command: Any, by: Principal | None = None) -> Any:
        request = self._send(command, by)
        self._run_until_idle()
        return request.answer

    def _check_waiters(self) -> None:
        """Nobody waits for a name that is free, or for a task that is ready: a wake-up was lost."""
        world = self._world
        for server in world.servers:
            for key in server.engine.name_waiters._queues:
                row = world.database.rows.get(key)
                if not isinstance(row, Lease) or (row.proof is None and (row.available_at or 0) <= world.time.now):
                    self._fail(f"P12: callers of {server} wait for {key[2]}, which is free")
            for queue in server.engine.task_waiters._waiting:
                found = self._claimable(queue)
                if found:
                    self._fail(f"P12: callers of {server} wait for tasks, and {found[0]} is ready")
            places = {f"reservation:{ticket.place}" for ticket in server.engine.reservation_waiters._tickets()}
            for subject in who_waits_for_nothing(self.log.images, places):
                self._fail(f"P12: a caller of {server} waits by {subject}, and nothing conflicts")

    def _claimable(self, queue: tuple[str, str]) -> list[str]:
        """The ready tasks of a queue for which there is room."""
        ready = self._world.database.indexes.ready.get(queue, {}).get("")
        return [] if ready is None else self.log.room.with_room(key[2] for _, key in ready)

    def check_final_state(self) -> None:
        """The rows are what the log says, the log is what was committed, and the counts are right."""
        database = self._world.database
        self.answers.check_at_the_end()
        images = {subject_of(row): row_image(row) for row in database.rows.values()}
        if images != self.log.images:
            different = [name for name in images | self.log.images if images.get(name) != self.log.images.get(name)]
            self._fail(f"P13: {', '.join(different)} differ from the log")
        floor, last = database.log_bounds.get(ACCOUNT, (0, 0))
        if database.log.get(ACCOUNT, []) != self.log.events[floor:] or last != len(self.log.events):
            self._fail("P13: the log is not what was committed")
        counted = Counter((row.account, row.type, row.state) for row in database.rows.values() if isinstance(row, Task))
        if {key: count for key, count in database.task_counts.items() if count} != counted:
            self._fail(f"P9: {dict(database.task_counts)} tasks were counted, there are {dict(counted)}")
        if floor == 0:
            self._check_deliveries()
        else:
            self._check_cut_log()

    def _check_cut_log(self) -> None:
        try:
            check_log(self._world.database)
        except (AssertionError, BrokenLog) as problem:
            self._fail(f"P13: {problem}")

    def _check_deliveries(self) -> None:
        """Every event after the creation of a webhook was delivered, first in order for each subject, or given up."""
        world = self._world
        given_up = {delivery.seq for delivery in world.database.deliveries.rows.values() if delivery.state == "dead"}
        for hook in [row for row in world.database.rows.values() if isinstance(row, Webhook)]:
            created = next(event.seq for event in self.log.events if event.subject == f"webhook:{hook.id}")
            wanted: dict[str, list[int]] = {}
            for event in self.log.events[created:]:
                if ELECTION_PREFIX not in event.subject and event.seq not in given_up:
                    wanted.setdefault(event.subject, []).append(event.seq)
            got = {key[2]: [seq for seq in numbers if seq not in given_up]
                   for key, numbers in world.receiver.first_of_subject.items() if key[1] == hook.id}  # fmt: skip
            for subject, numbers in wanted.items():
                if got.get(subject, []) != numbers:
                    self._fail(f"P20: {hook.id} got {got.get(subject)} of {subject}, not {numbers}")


def _is_over(rows: Any, account: str, task_id: str) -> bool:
    """Whether a task has failed, or was removed by retention."""
    row = rows.get((Task.table, account, task_id))
    return not isinstance(row, Task) or row.state in FINAL_STATES
