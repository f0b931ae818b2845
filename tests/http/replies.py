"""What the answers about tasks, sessions and events share beyond Orchestrion's API, and the log behind them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.core.errors import HoldfastError
from holdfast.transport.http.routing import Router
from tests.compat.octostore.expect import assert_agent_contract
from tests.compat.octostore.wire import Answer
from tests.compat.orchestrion.account import Account
from tests.compat.orchestrion.expect import envelope

Body = dict[str, Any]

OTHER_WORDS = {"resume_session": "begin_session", "claim_task": "claim_task_by_id"}
"""Actions whose name differs from the operation that they advise."""


def done(answer: Answer, status: int = 200) -> Body:
    """A success whose `agent_contract` advises existing operations."""
    assert answer.status == status, str(answer)
    body: Body = answer.json
    assert_advice(body)
    return body


def refused(answer: Answer, status: int, code: str) -> Body:
    """A refusal of the task API's form, with one of our own codes."""
    body = envelope(answer, status)
    assert body["error"] == code, body
    assert_advice(body)
    return body


def refused_as_problem(answer: Answer, status: int, code: str) -> Body:
    """A refusal in RFC 9457 format, which all routes of Holdfast's own API use."""
    assert (answer.status, answer.header("Content-Type")) == (status, "application/problem+json"), str(answer)
    body: Body = answer.json
    assert (body["type"], body["error"]) == (f"urn:holdfast:problem:{code}", code), body
    assert body["request_id"] == answer.header("X-Request-Id")
    assert_advice(body)
    return body


def assert_advice(body: Body) -> None:
    """Each request that a contract advises exists, under that name."""
    assert_agent_contract(body, error="error" in body)
    for step in body["agent_contract"]["next_actions"]:
        if "endpoint" not in step:
            continue
        path = re.sub(r"\{[a-z_]+\}", "some-name", step["endpoint"]).partition("?")[0]
        try:
            operation, _ = Router().find(step["method"], path.encode())
        except HoldfastError as error:
            raise AssertionError(f"{step} leads nowhere: {error.message}") from None
        names = {step["action"], OTHER_WORDS.get(step["action"])}
        assert operation.name in names or step["action"] == "retry_after_wait", step


# -- the log -----------------------------------------------------------------------------------------------------


def events(account: Account, query: str = "") -> list[Body]:
    """All of the account's log, or what fits the query."""
    found: list[Body] = []
    after, more = 0, True
    while more:
        page = done(account.get(f"/v1/events?after={after}&limit=1000{query and '&'}{query}"))
        found += page["events"]
        after, more = page["nextCursor"], page["hasMore"]
    return found


def caused_by(account: Account, answer: Answer) -> list[Body]:
    """The events of a request."""
    return events(account, f"request_id={answer.header('X-Request-Id')}")


@contextmanager
def nothing_changes(account: Account) -> Iterator[None]:
    """Every change of a row is an event: where there is none, nothing was changed."""
    before = events(account)
    yield
    assert events(account) == before


# -- verbs that Orchestrion does not have --------------------------------------------------------------------------


def settle(account: Account, **fields: object) -> Answer:
    return account.send_json("PATCH", "/v1/account", fields)


def claimed_many(answer: Answer) -> list[Body]:
    body = done(answer)
    assert body["count"] == len(body["tasks"])
    return body["tasks"]
