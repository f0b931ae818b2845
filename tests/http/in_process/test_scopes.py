"""Scopes hold for every noun, wherever it is shown: in the log, in sessions and in the answers of other operations."""

import itertools

import pytest

from holdfast.core.event_filter import OTHERS, READ_SCOPES
from holdfast.core.log_gap import LOG
from holdfast.core.principal import ANY, SCOPES, grants
from holdfast.operations.table import OPERATIONS_BY_NAME
from holdfast.store.rows import ROW_TYPES
from tests.compat.orchestrion.account import Account, register
from tests.compat.orchestrion.states import held
from tests.http.account_resources import REQUESTS, Resources
from tests.http.job_client import fresh
from tests.http.replies import done
from tests.http.session_client import begin, claim_job, claim_task

LISTED_BY = {
    "lease": "list_claimed_jobs",
    "reservation": "list_reservations",
    "task": "list_tasks",
    "queue": "list_queues",
    "question": "list_questions",
    "session": "list_sessions",
    "principal": "list_keys",
    "webhook": "list_webhooks",
}
"""The operation that lists each noun."""
SETS = [" ".join(pair) for size in (1, 2) for pair in itertools.combinations(SCOPES, size)]


@pytest.fixture(scope="module")
def owner(server):
    """An account with events of every noun that an account can cause by itself."""
    things = Resources(register(server.anyone))
    for request in REQUESTS.values():
        request(things)
    return things.account


def with_scopes(account, scopes):
    made = done(account.post("/v1/keys", {"name": scopes, "scopes": scopes.split()}), 201)
    return Account(account.port, {"Authorization": f"Bearer {made['apiKey']}"})


def nouns_in(events):
    return {event["subject"].partition(":")[0] for event in events}


def test_the_log_asks_for_the_scope_of_the_operation_that_lists_the_noun():
    for noun, operation in LISTED_BY.items():
        assert READ_SCOPES.get(noun, OTHERS) == OPERATIONS_BY_NAME[operation].scope
    others = {row_type.noun for row_type in ROW_TYPES} - LISTED_BY.keys()
    assert {READ_SCOPES.get(noun, OTHERS) for noun in others} == {"admin"}
    assert READ_SCOPES[LOG] == ANY


@pytest.mark.parametrize("scopes", SETS)
def test_the_log_has_only_events_of_what_the_key_may_read(owner, scopes):
    answer = with_scopes(owner, scopes).get("/v1/events?limit=1000")
    if not grants(scopes, OPERATIONS_BY_NAME["list_events"].scope):
        assert answer.status == 403
        return
    everything = nouns_in(done(owner.get("/v1/events?limit=1000"))["events"])
    assert everything == {*LISTED_BY, "account"}
    allowed = {noun for noun in everything if grants(scopes, READ_SCOPES.get(noun, OTHERS))}
    assert nouns_in(done(answer)["events"]) == allowed


@pytest.mark.parametrize("filters", ["subject=task:*", "kind=task.*", "request_id={request}"])
def test_no_filter_leads_to_events_of_another_noun(owner, filters):
    task = held(owner)
    event = done(owner.get(f"/v1/events?subject=task:{task['id']}"))["events"][-1]
    for scopes, found in (("jobs", False), ("tasks", True)):
        page = done(with_scopes(owner, scopes).get(f"/v1/events?{filters.format(request=event['request_id'])}"))
        assert (event["subject"] in {each["subject"] for each in page["events"]}) == found


@pytest.mark.parametrize(("scopes", "shown"), [("jobs", "jobs"), ("tasks", "tasks"), ("read", "jobs tasks")])
def test_a_session_shows_only_the_holdings_that_the_key_may_read(owner, scopes, shown):
    life = begin(owner, fresh("agent"))
    job, task = claim_job(owner, life), claim_task(owner, life, payload={"secret": "of the task"})
    told = done(with_scopes(owner, scopes).get(f"/v1/sessions/{life['session_id']}"))
    assert [each["job_id"] for each in told["jobs"]] == ([job["job_id"]] if "jobs" in shown else [])
    assert [each["id"] for each in told["tasks"]] == ([task["id"]] if "tasks" in shown else [])
