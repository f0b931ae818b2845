"""How schemathesis asks: all of its checks, but for what they cannot know."""

import itertools
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings, strategies
from schemathesis import APIOperation, Case, GenerationMode, Response
from schemathesis.checks import CHECKS, load_all_checks

from holdfast.operations.table import OPERATIONS, Operation
from holdfast.transport.http.schemas.all_operations import OPERATION_SCHEMAS
from holdfast.transport.http.system.openapi import openapi
from tests.openapi.sample_resources import Belongings
from tests.proof_size import sized

load_all_checks()
ACCEPTED, REJECTED, METHODS, GUARDED = CHECKS.get_by_names(
    ["positive_data_acceptance", "negative_data_rejection", "unsupported_method", "ignored_auth"]
)

BY_RULE = {
    **dict.fromkeys(
        ("/checkpoint", "/context", "/metadata", "/payload", "/progress", "/result"),
        "any JSON, but only so deep and without U+0000 on any level",
    ),
    "invalid_cursor": "a cursor is one that a page answered; what is in it is our business",
    "invalid_lock_name": "names are counted in bytes, part by part, and may have the letters of every script",
    "unknown_plan": "which plans there are is in the settings",
    "mismatch": "only the account's own id confirms that it shall go",
    "lease_not_current": "OctoStore answers 400 to a lease that another one holds; no form of an id tells that",
}
"""Refusals of requests that are as they should be, by rules that JSON Schema cannot tell."""

EXAMPLES = sized(4, 50)
EVERY = sized(3, 1)
"""One corner of so many is asked about."""
CONFIG = {
    "generation": {"deterministic": True, "with-security-parameters": False},
    "checks": {
        # 410: what was asked about is over. 413: too much of it. 422: an Idempotency-Key was used before.
        "positive_data_acceptance": {
            "expected-statuses": ["2xx", "304", "401", "402", "403", "404", "409", "410", "422", "429"]
        },
        "negative_data_rejection": {
            "expected-statuses": ["400", "401", "403", "404", "405", "409", "410", "413", "415", "422", "429"]
        },
    },
}


NEVER_GRANTED = {
    "checkout": "nobody takes payments here",
    "verify_payment": "nobody takes payments here",
    "register_user": "static tokens are listed, so nobody takes a name",
    "rotate_own_key": "the root key is part of the settings",
    "rotate_token": "the root key is part of the settings",
    "delete_account": "the server's own account stays",
}
"""Operations that refuse whatever this caller asks."""


ASKED = [operation for operation in OPERATIONS if OPERATION_SCHEMAS[operation.name].media != "text/event-stream"]
"""Answers that have no end are held against their own tests."""


class Questions:
    """The document, ready to be asked about on one server."""

    def __init__(self, belongings: Belongings) -> None:
        self._schema = schemathesis.openapi.from_dict(openapi(), config=schemathesis.Config.from_dict(CONFIG))
        self._belongings = belongings
        self._granted: set[str] = set()
        """Operations that said yes, and were then seen to refuse callers without a good key: once is enough."""

    def ask_every_corner(self, operation: Operation) -> None:
        """Each bound of each field in turn, from both sides; and methods that nobody has."""
        corners = self._schema.iter_coverage_cases(
            self._described(operation),
            generation_modes=list(GenerationMode),
            generation_config=self._schema.config.generation_for(phase="coverage"),
        )
        for case in itertools.islice(corners, 0, None, EVERY):
            self._ask(case)

    def ask_generated(self, operation: Operation) -> None:
        """Send requests that fit the description, and some that almost fit."""
        described = self._described(operation)
        can_be_wrong = _takes_anything(operation)
        cases = [described.as_strategy(mode) for mode in GenerationMode if mode.is_positive or can_be_wrong]
        self._send_generated(strategies.one_of(cases), EXAMPLES if can_be_wrong else 1)

    def ask_until_granted(self, operation: Operation) -> None:
        """Send valid requests until one succeeds.

        Hypothesis draws values from the constants of all loaded modules, so the few examples of `ask_generated` differ
        with the tests that ran before, and at times all of them are refused.
        """
        for examples in (10, 50):
            if not self.was_granted(operation):
                self._send_generated(self._described(operation).as_strategy(GenerationMode.POSITIVE), examples)

    def _send_generated(self, cases: strategies.SearchStrategy[Case], examples: int) -> None:
        @settings(
            max_examples=examples,
            derandomize=True,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(cases)
        def ask(case: Case) -> None:
            self._ask(case)

        ask()

    def was_granted(self, operation: Operation) -> bool:
        """Whether it ever said yes: questions that are all refused prove little."""
        if operation.name in NEVER_GRANTED:
            return True
        return self._described(operation).label in self._granted

    def _described(self, operation: Operation) -> APIOperation[Any, Any, Any, Any]:
        return self._schema[operation.path.replace("...", "")][operation.method]

    def _ask(self, case: Case) -> None:
        """Ask, and hold the answer against the document."""
        self._belongings.lend(case)
        headers = self._belongings.headers
        response = case.call(base_url=self._belongings.url, headers=headers)
        excluded = _excluded(case, response)
        if case.operation.label in self._granted:
            excluded.append(GUARDED)
        case.validate_response(response, headers=headers, excluded_checks=excluded)
        if response.status_code < 300:
            self._granted.add(case.operation.label)


def _takes_anything(operation: Operation) -> bool:
    """Whether it takes anything that could be of the wrong form."""
    shape = OPERATION_SCHEMAS[operation.name]
    return shape.body is not None or shape.query is not None or "{" in operation.path


def _excluded(case: Case, response: Response) -> list[Any]:
    """Checks that do not fit this case."""
    path = case.operation.path
    if path == "/v1/tasks/batch":
        return [REJECTED]  # an item that is wrong is refused alone, inside a 200
    if path.startswith("/v1/jobs/"):
        return [METHODS]  # ids have slashes: GET `x/claim` looks at a job, POST `x` lacks its verb
    if path.startswith(("/locks", "/sessions", "/elections")) and _is_positional(case.body):
        return [REJECTED]  # as in OctoStore, an array with one element per field stands for an object
    if response.status_code == 400 and _names(response.json()) & BY_RULE.keys():
        return [ACCEPTED]
    return []


def _is_positional(body: Any) -> bool:
    return isinstance(body.get("acl") if isinstance(body, dict) else body, list)


def _names(refusal: dict[str, Any]) -> set[str]:
    """The code of a refusal; the codes and the places of its fields."""
    fields = refusal.get("errors", ())
    return {refusal.get("code", ""), *(error["code"] for error in fields), *(error["pointer"] for error in fields)}
