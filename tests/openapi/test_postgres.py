"""Responses match the OpenAPI document on PostgreSQL. Boundary values are checked there only in `make prove`."""

import pytest

from tests.openapi.schemathesis_checks import CHECKED_OPERATIONS, ApiChecker
from tests.proof_size import FULL


@pytest.fixture(scope="module")
def checker(postgres_resources):
    return ApiChecker(postgres_resources)


@pytest.mark.parametrize("operation", CHECKED_OPERATIONS, ids=lambda operation: operation.name)
def test_responses_to_random_requests_match_the_document(checker, operation):
    if FULL:
        checker.check_boundary_cases(operation)
    checker.check_random_cases(operation)
