"""Each query of questions selects what its rule in core selects, over generated rows with independent times."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core import question as questions
from holdfast.core.question import OPEN, QUESTION_STATES, Question
from holdfast.core.task import PENDING, Task
from tests.proof_size import FULL
from tests.support import START, empty, load_view, put

EXAMPLES = 300 if FULL else 6

accounts = st.sampled_from(["a", "b"])
instants = st.integers(START - 2, START + 2)


@st.composite
def question_rows(draw):
    number, state = draw(st.integers(0, 30)), draw(st.sampled_from([OPEN, *QUESTION_STATES]))
    return Question(
        draw(accounts), f"t{number % 4}-{number:02}", task=f"t{number % 4}", task_type="x", text="?",
        asked_at=draw(instants), deadline_at=draw(st.none() | instants), state=state,
        answer="a" if state == questions.ANSWERED else None,
    )  # fmt: skip


row_lists = st.lists(question_rows(), max_size=12, unique_by=lambda row: row.key)


@pytest.fixture
def fresh(sql_store):
    def fill(*rows):
        empty(sql_store)
        if rows:
            put(sql_store, *rows)
        return sql_store

    return fill


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=row_lists, after=st.tuples(instants, st.sampled_from(["", "t1-05", "t3-99"])))
def test_the_queries_select_what_the_rules_select(fresh, rows, after):
    with fresh(*rows).read() as reader:
        due = {row.key for row in rows if questions.is_due(row, reader.wall)}
        assert set(reader.due(100)) == due
        deadlines = [at for row in rows if (at := questions.deadline(row)) is not None]
        assert reader.next_deadline() == min(deadlines, default=None)
        for account in ("a", "b"):
            own = sorted((row for row in rows if row.account == account), key=lambda row: (row.asked_at, row.id))
            waiting = [row.id for row in own if row.state == OPEN and (row.asked_at, row.id) > after]
            closed = [row.id for row in own[::-1] if row.state != OPEN and (row.asked_at, row.id) < after]
            assert [row.id for row in reader.questions(account, after, 99, is_open=True)] == waiting
            assert [row.id for row in reader.questions(account, after, 3, is_open=False)] == closed[:3]
            assert reader.count_open_questions(account, 3) == min(sum(row.state == OPEN for row in own), 3)
            of_tasks = sorted((row.task, row.id) for row in own if row.task in {"t1", "t2"})
            assert sorted(reader.questions_of_tasks(account, ["t1", "t2"])) == of_tasks


def test_the_question_of_a_task_is_loaded_with_it(sql_store):
    asked = [Question("a", f"t{number}-1", task=f"t{number}", text="?") for number in (1, 2)]
    waiting = Task("a", "t1", type="x", state=PENDING, question="t1-1", waits_for="answer")
    put(sql_store, *asked, waiting)
    view = load_view(sql_store, rows=((Task.table, "a", "t1"),))
    assert view.find(Question, "a", "t1-1") is not None
    assert view.find(Question, "a", "t2-1") is None
