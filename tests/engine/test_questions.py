"""Questions: a task waits for the answer of a person, on every store."""

from __future__ import annotations

import pytest

from holdfast.core.errors import Invalid, LeaseSuperseded, NotYetClaimable, QuestionClosed, QuestionMissing
from holdfast.core.question import ANSWERED, APPROVE, EXPIRED, OPEN, REJECT, TIMEOUT, WITHDRAWN, Question
from holdfast.core.row import SECOND
from holdfast.core.task import (
    ANSWER,
    CANCEL,
    CANCELLED,
    CLAIMED,
    DEAD,
    DEPENDENCIES,
    PENDING,
    UNANSWERED,
    Handover,
    Task,
    last_answer,
)  # fmt: skip
from holdfast.engine.cleanup import Cleanup
from holdfast.engine.retention import DAY, Retention
from holdfast.engine.verbs.tasks.claiming import Empty
from tests.support import START, check_log, every, run, transact
from tests.task_commands import (
    answer,
    approval,
    ask,
    beat,
    cancel,
    complete,
    create,
    event_kinds,
    fail,
    requeue,
    sweep,
    take,
    take_this,
    the_question,
    the_task,
)

HOUR = 3600 * SECOND


def asked(store, **more):
    """A task whose worker has asked, and the id of the question."""
    run(store, create("t1"))
    run(store, take("work"))
    return run(store, ask(**more)).task.question


def refused(store, command, error):
    with pytest.raises(error) as caught:
        run(store, command)
    return caught.value


def test_a_task_that_asks_is_parked_and_its_attempt_is_not_counted(store):
    asked(store, text="Which?", choices=("a", "b"), handover=Handover(checkpoint='{"page":3}'))
    task, question = the_task(store), the_question(store)
    assert (task.state, task.waits_for, task.ready, task.proof) == (PENDING, ANSWER, False, None)
    assert (task.attempt, task.attempt_count) == (1, 0)
    assert (question.state, question.text, question.task, question.worker) == (OPEN, "Which?", "t1", "worker")
    assert isinstance(run(store, take("work", seed="s2")), Empty)
    refused(store, take_this(seed="s2"), NotYetClaimable)
    refused(store, beat(), Exception)
    check_log(store)


def test_the_next_claim_has_the_answer_and_the_checkpoint(store, clock):
    question = asked(store, handover=Handover(checkpoint='{"page":3}'))
    clock.advance(5)
    run(store, answer(question, "the second", reason="it is cheaper"))
    (granted,) = run(store, take("work", seed="s2")).taken
    last = last_answer(granted.task)
    assert (last.id, last.question, last.answer) == (question, "Which one?", "the second")
    assert (last.by, last.reason, last.at) == ("alice", "it is cheaper", START + 5 * SECOND)
    assert granted.task.ended_checkpoint == '{"page":3}'
    assert (granted.task.attempt, granted.task.attempt_count) == (2, 1)
    assert event_kinds(store) == [
        "created", "claimed", "asked", "question.asked", "question.answered", "answered", "claimed",
    ]  # fmt: skip
    check_log(store)


def test_a_task_that_asks_on_its_last_attempt_gets_another_after_the_answer(store):
    run(store, create("t1", max_attempts=1))
    for number in range(3):
        run(store, take("work", seed=f"s{number}"))
        run(store, answer(run(store, ask(seed=f"s{number}")).task.question))
    assert the_task(store).attempt_count == 0
    assert len(every(store, Question)) == 3


def test_asking_again_after_a_lost_answer_changes_nothing(store):
    question = asked(store)
    assert run(store, ask(text="Another?")).task.question == question
    assert the_question(store).text == "Which one?"


def test_only_the_holder_asks(store):
    run(store, create("t1"))
    run(store, take("work"))
    refused(store, ask(lease_id="wrong"), LeaseSuperseded)
    assert every(store, Question) == []


def test_a_holder_that_was_asked_to_stop_cannot_ask(store):
    run(store, create("t1"))
    run(store, take("work"))
    run(store, cancel(mode="request"))
    assert run(store, ask()).task.state == CANCELLED
    assert every(store, Question) == []
    check_log(store)


def test_an_answer_must_be_one_of_the_choices(store):
    question = asked(store, choices=("a", "b"))
    refused(store, answer(question, "c"), Invalid)
    assert the_question(store).state == OPEN
    assert run(store, answer(question, "b")).question.answer == "b"


def test_a_question_is_answered_once(store):
    question = asked(store)
    first, second = transact(store, answer(question, "a"), answer(question, "b", by="bob"))
    assert first.question.answer == "a"
    assert isinstance(second, QuestionClosed)
    events = len(event_kinds(store))
    assert run(store, answer(question, "a")).question.state == ANSWERED, "the same answer again is a repeat"
    assert len(event_kinds(store)) == events
    refused(store, answer("t1-99"), QuestionMissing)
    refused(store, answer("nonsense"), QuestionMissing)


# -- deadlines ---------------------------------------------------------------------------------------------------


def test_a_question_that_nobody_answers_in_time_makes_its_task_a_dead_letter(store, clock):
    question = asked(store, deadline_at=START + HOUR)
    with store.read() as reader:
        assert reader.next_deadline() == START + HOUR
    clock.advance(3600)
    refused(store, answer(question), QuestionClosed)
    assert sweep(store) == [True]
    task = the_task(store)
    assert (task.state, task.dead_cause, task.waits_for) == (DEAD, UNANSWERED, None)
    assert (the_question(store).state, sweep(store)) == (EXPIRED, [])
    check_log(store)


def test_or_takes_the_default_answer(store, clock):
    asked(store, choices=("a", "b"), deadline_at=START + HOUR, on_timeout="b")
    clock.advance(3600)
    assert sweep(store) == [True]
    assert (the_question(store).state, the_question(store).answered_by) == (ANSWERED, TIMEOUT)
    (granted,) = run(store, take("work", seed="s2")).taken
    assert last_answer(granted.task).answer == "b"
    check_log(store)


def test_requeued_it_asks_again_with_as_much_time(store, clock):
    question = asked(store, deadline_at=START + HOUR)
    clock.advance(5000)
    sweep(store)
    back = run(store, requeue()).task
    assert (back.state, back.waits_for, back.question) == (PENDING, ANSWER, question)
    assert (the_question(store).state, the_question(store).deadline_at) == (OPEN, clock.now + HOUR)
    assert isinstance(run(store, take("work", seed="s2")), Empty)
    run(store, answer(question))
    assert run(store, take("work", seed="s2")).taken
    check_log(store)


@pytest.mark.parametrize("more", [{"deadline_at": START}, {"on_timeout": "a"}])
def test_a_question_that_makes_no_sense_is_refused(store, more):
    run(store, create("t1"))
    run(store, take("work"))
    refused(store, ask(**more), Invalid)
    assert the_task(store).state == CLAIMED
    refused(store, ask(deadline_at=START + HOUR, on_timeout="c", choices=("a",)), Invalid)


# -- the end of the task -----------------------------------------------------------------------------------------


def test_cancelling_a_task_withdraws_its_question(store):
    question = asked(store)
    run(store, cancel(reason="not needed"))
    assert (the_task(store).state, the_question(store).state) == (CANCELLED, WITHDRAWN)
    refused(store, answer(question), QuestionClosed)
    check_log(store)


def test_the_deadline_of_a_task_withdraws_its_question(store, clock):
    run(store, create("t1", deadline_at=START + HOUR))
    run(store, take("work"))
    question = run(store, ask()).task.question
    clock.advance(3600)
    refused(store, answer(question), QuestionClosed)
    assert sweep(store) == [True]
    assert (the_task(store).state, the_question(store).state) == (DEAD, WITHDRAWN)
    run(store, requeue())
    assert (the_task(store).waits_for, the_question(store).state) == (ANSWER, OPEN)
    check_log(store)


def test_a_question_is_removed_with_its_task(store, clock):
    run(store, answer(asked(store)))
    run(store, take("work", seed="s2"))
    run(store, ask(seed="s2"))
    run(store, cancel())
    cleanup = Cleanup(store, lambda commands: transact(store, *commands), Retention(tasks=DAY))
    cleanup.run()
    assert len(every(store, Question)) == 2
    clock.advance(3 * 86_400)
    cleanup.run()
    assert (every(store, Task), every(store, Question)) == ([], [])
    check_log(store)


# -- approval ----------------------------------------------------------------------------------------------------


def test_a_task_with_approval_cannot_be_claimed_before_it_is_given(store):
    question = run(store, create("t1", approval=approval())).task.question
    assert isinstance(run(store, take("work")), Empty)
    refused(store, take_this(), NotYetClaimable)
    refused(store, answer(question, "maybe"), Invalid)
    run(store, answer(question, APPROVE))
    assert run(store, take("work")).taken
    check_log(store)


def test_a_task_that_is_rejected_is_cancelled_with_the_reason(store):
    question = run(store, create("t1", approval=approval())).task.question
    run(store, answer(question, REJECT, reason="too expensive"))
    task = the_task(store)
    assert (task.state, task.cancel_reason) == (CANCELLED, "alice rejected it: too expensive")
    check_log(store)


def test_an_approval_that_was_never_given_keeps_a_requeued_task_from_being_claimed(store, clock):
    run(store, create("t1", approval=approval(deadline_at=START + HOUR)))
    clock.advance(3600)
    sweep(store)
    assert the_task(store).dead_cause == UNANSWERED
    run(store, requeue())
    assert isinstance(run(store, take("work")), Empty)
    assert the_question(store).state == OPEN
    check_log(store)


def test_a_failed_task_that_was_approved_needs_no_second_approval(store):
    run(store, answer(run(store, create("t1", approval=approval())).task.question, APPROVE))
    run(store, take("work"))
    run(store, fail(permanent=True))
    run(store, requeue())
    assert run(store, take("work", seed="s2")).taken


def test_other_work_under_the_same_key_needs_an_approval_of_its_own(store):
    first = run(store, create("t1", unique_key="k", approval=approval("Delete it?"))).task.question
    second = run(store, create("t2", unique_key="k", replaces=True, payload='{"n":2}')).task.question
    assert [row.state for row in every(store, Question)] == [WITHDRAWN, OPEN]
    refused(store, answer(first, APPROVE), QuestionClosed)
    run(store, answer(second, APPROVE))
    third = run(store, create("t3", unique_key="k", replaces=True, payload='{"n":3}')).task
    assert third.waits_for == ANSWER, "what was approved was other work"
    assert isinstance(run(store, take("work")), Empty)
    run(store, answer(third.question, APPROVE))
    assert run(store, take("work")).taken
    check_log(store)


def test_other_work_needs_its_approval_also_after_answers_to_other_questions(store):
    first = run(store, create("t1", unique_key="k", approval=approval("Delete it?"))).task.question
    run(store, answer(first, APPROVE))
    for number in range(2):
        run(store, take("work", seed=f"s{number}"))
        run(store, answer(run(store, ask("t1", f"s{number}")).task.question))
    replaced = run(store, create("t2", unique_key="k", replaces=True, payload='{"n":2}')).task
    assert replaced.waits_for == ANSWER, "the approval was for other work"
    assert every(store, Question)[-1].text == "Delete it?"
    assert isinstance(run(store, take("work", seed="s2")), Empty)
    check_log(store)


def test_open_questions_are_listed_by_age_and_closed_ones_newest_first(store, clock):
    for number in range(4):
        run(store, create(f"t{number}", approval=approval()))
        clock.advance(1)
    for number in (1, 2):
        run(store, answer(f"t{number}-1", APPROVE))
    with store.read() as reader:
        first = reader.questions("default", (0, ""), 1, is_open=True)
        rest = reader.questions("default", (first[0].asked_at, first[0].id), 9, is_open=True)
        closed = reader.questions("default", (2**60, ""), 9, is_open=False)
        assert [row.task for row in [*first, *rest]] == ["t0", "t3"]
        assert [row.task for row in closed] == ["t2", "t1"]
        assert [reader.count_open_questions("default", most) for most in (1, 10)] == [1, 2]
        assert reader.questions("other", (0, ""), 9, is_open=True) == []


# -- with dependencies -------------------------------------------------------------------------------------------


def test_a_task_that_is_cancelled_with_one_that_it_needs_withdraws_its_question(store):
    run(store, create("t0"))
    after = {"after": ["t0"], "on_dependency_failure": CANCEL}
    assert run(store, create("t1", approval=approval(), **after)).task.waits_for == DEPENDENCIES
    run(store, cancel("t0"))
    states = {task.id: task.state for task in every(store, Task)}
    assert (states["t1"], the_question(store).state) == (CANCELLED, WITHDRAWN)
    check_log(store)


def test_a_task_that_needs_another_and_an_approval_waits_for_both(store):
    run(store, create("t0"))
    question = run(store, create("t1", approval=approval(), after=["t0"])).task.question
    run(store, answer(question, APPROVE))
    assert [task.waits_for for task in every(store, Task)] == [None, DEPENDENCIES]
    run(store, take("work"))
    run(store, complete("t0"))
    assert run(store, take("work", seed="s2")).taken[0].task.id == "t1"
    check_log(store)


def test_the_end_of_a_task_by_its_question_reaches_those_that_need_it(store, clock):
    run(store, create("t0", approval=approval(deadline_at=START + HOUR)))
    run(store, create("t1", approval=approval()))
    for number, needed in ((2, "t0"), (3, "t1")):
        run(store, create(f"t{number}", after=[needed], on_dependency_failure=CANCEL))
    run(store, answer("t1-1", REJECT))
    clock.advance(3600)
    sweep(store)
    assert {task.id: task.state for task in every(store, Task)} == {
        "t0": DEAD, "t1": CANCELLED, "t2": CANCELLED, "t3": CANCELLED,
    }  # fmt: skip
    check_log(store)
