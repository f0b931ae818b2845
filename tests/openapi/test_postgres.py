"""Responses match the OpenAPI document on PostgreSQL.

`make test` checks every fifth operation there; boundary values and the others are in `make prove`.
"""

import pytest

from tests.openapi.schemathesis_checks import CHECKED_OPERATIONS, ApiChecker
from tests.proof_size import FULL, sized


@pytest.fixture(scope="module")
def checker(postgres_resources):
    return ApiChecker(postgres_resources)


@pytest.mark.parametrize("operation", CHECKED_OPERATIONS[:: sized(5, 1)], ids=lambda operation: operation.name)
def test_responses_to_random_requests_match_the_document(checker, operation):
    if FULL:
        checker.check_boundary_cases(operation)
    checker.check_random_cases(operation)
