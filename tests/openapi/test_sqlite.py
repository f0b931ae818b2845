"""Responses match the OpenAPI document, for generated requests to every operation on SQLite."""

import pytest

from tests.openapi.schemathesis_checks import CHECKED_OPERATIONS, ApiChecker
from tests.proof_size import FULL, sized

# batch_tasks contains the bodies of all verbs: it has a quarter of all boundary cases.
WITH_BOUNDARY_CASES = [operation for operation in CHECKED_OPERATIONS if FULL or operation.name != "batch_tasks"]


@pytest.fixture(scope="module")
def checker(sqlite_resources):
    return ApiChecker(sqlite_resources)


@pytest.mark.parametrize("operation", WITH_BOUNDARY_CASES, ids=lambda operation: operation.name)
def test_responses_to_boundary_values_match_the_document(checker, operation):
    checker.check_boundary_cases(operation)


@pytest.mark.parametrize("operation", CHECKED_OPERATIONS[:: sized(2, 1)], ids=lambda operation: operation.name)
def test_responses_to_random_requests_match_the_document(checker, operation):
    checker.check_random_cases(operation)
    checker.check_until_granted(operation)
    assert checker.was_granted(operation)
