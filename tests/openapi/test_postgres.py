"""On PostgreSQL: the same doors over another store, so chance alone does for every day."""

import pytest

from tests.openapi.schemathesis_checks import ASKED, Questions
from tests.proof_size import FULL


@pytest.fixture(scope="module")
def questions(postgres_belongings):
    return Questions(postgres_belongings)


@pytest.mark.parametrize("operation", ASKED, ids=lambda operation: operation.name)
def test_whatever_is_asked_the_answer_is_one_that_the_document_promises(questions, operation):
    if FULL:
        questions.ask_every_corner(operation)
    questions.ask_generated(operation)
