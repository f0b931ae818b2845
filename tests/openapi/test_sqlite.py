"""On SQLite: every operation, asked everything that its description allows and much that it forbids."""

import pytest

from tests.openapi.schemathesis_checks import ASKED, Questions
from tests.proof_size import FULL

# The bodies of all verbs in one have as many corners as a quarter of the rest.
CORNERS = [operation for operation in ASKED if FULL or operation.name != "batch_tasks"]


@pytest.fixture(scope="module")
def questions(sqlite_belongings):
    return Questions(sqlite_belongings)


@pytest.mark.parametrize("operation", CORNERS, ids=lambda operation: operation.name)
def test_every_corner_of_an_operation_is_as_the_document_says(questions, operation):
    questions.ask_every_corner(operation)


@pytest.mark.parametrize("operation", ASKED, ids=lambda operation: operation.name)
def test_whatever_is_asked_the_answer_is_one_that_the_document_promises(questions, operation):
    questions.ask_generated(operation)
    questions.ask_until_granted(operation)
    assert questions.was_granted(operation)
