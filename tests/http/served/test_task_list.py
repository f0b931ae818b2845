"""Lists and counts of tasks: filters, stable pages while tasks are created, short pages with a cursor."""

import time
from urllib.parse import quote

import pytest

from tests.compat.orchestrion.expect import assert_task, claimed, ids_of, in_seconds
from tests.compat.orchestrion.states import cancelled, completed, dead, held, pending, retrying
from tests.http.job_client import Callers
from tests.http.replies import done, refused
from tests.http.session_client import begin

pytest_plugins = ["tests.http.fresh_accounts"]

SCANNED = 10_000
"""No page looks at more tasks than this."""


def listed(account, query=""):
    body = done(account.list(query))
    for shown in body["tasks"]:
        assert_task(shown)
    return ids_of(body)


def walk(account, query):
    """All pages of a list."""
    seen, cursor = [], ""
    while cursor is not None:
        body = done(account.list(f"{query}{cursor}"))
        seen.append(ids_of(body))
        assert body["hasMore"] is (body["nextCursor"] is not None)
        cursor = body["nextCursor"] and f"&cursor={body['nextCursor']}"
    return seen


def many(account, count, **fields):
    """The ids of that many new tasks, newest first."""
    made = []
    for place in range(0, count, 1000):
        items = [{"op": "create", "type": "work", "payload": {}, **fields}] * min(1000, count - place)
        made += [result["task"]["id"] for result in done(account.post("/v1/tasks/batch", {"items": items}))["results"]]
    return made[::-1]


# -- filters -----------------------------------------------------------------------------------------------------


def test_by_worker_are_the_tasks_that_it_holds_or_has_completed(account):
    ours = held(account)
    mine = claimed(account.do("claim", pending(account)["id"], worker_id="me & co"))
    done_by_me = claimed(account.do("claim", pending(account)["id"], worker_id="me & co"))
    done(account.complete(done_by_me["id"]))
    assert listed(account, f"worker={quote('me & co')}") == [done_by_me["id"], mine["id"]]
    assert listed(account) == [done_by_me["id"], mine["id"], ours["id"]]


@pytest.mark.parametrize("name", ["key", "uniqueKey", "unique_key"])
def test_by_key_are_the_tasks_that_ever_had_it(account, name):
    first = cancelled_under_key(account)
    second = pending(account, uniqueKey="a/b")
    pending(account, uniqueKey="a")
    assert listed(account, f"{name}=a%2Fb") == [second["id"], first["id"]]


def cancelled_under_key(account):
    return done(account.do("cancel", pending(account, uniqueKey="a/b")["id"]))


def test_by_tag(account):
    tagged = [pending(account, tag="blue"), held(account, tag="blue")]
    pending(account, tag="Blue")
    assert listed(account, "tag=blue") == [tagged[1]["id"], tagged[0]["id"]]


def test_by_session_are_the_tasks_that_it_holds(account):
    life = begin(account)
    pending(account)
    mine = claimed(account.do("claim", pending(account)["id"], session_id=life["session_id"]))
    assert mine["sessionId"] == life["session_id"]
    for name in ("sessionId", "session_id"):
        assert listed(account, f"{name}={life['session_id']}") == [mine["id"]]


def test_by_time_of_creation_and_of_the_last_change(account):
    first = pending(account)
    time.sleep(0.005)
    middle = pending(account)
    last = pending(account)
    changed = done(account.do("cancel", first["id"]))
    assert listed(account, f"createdAfter={middle['createdAt']}")[-1] == middle["id"]
    assert listed(account, f"createdBefore={middle['createdAt']}") == [first["id"]]
    assert first["id"] in listed(account, f"updatedAfter={changed['updatedAt']}")
    assert middle["id"] not in listed(account, f"updatedAfter={changed['updatedAt']}&createdBefore={last['createdAt']}")
    assert listed(account, f"updatedBefore={in_seconds(-3600)}") == []
    assert len(listed(account, f"createdAfter={in_seconds(-3600)}&updatedBefore={in_seconds(3600)}")) == 3


def test_a_time_in_a_query_may_carry_an_offset(account):
    made = pending(account)
    assert listed(account, "createdAfter=2020-01-01T00:00:00%2B02:00") == [made["id"]]
    assert listed(account, "createdAfter=2020-01-01T00:00:00+02:00") == [made["id"]]


def test_filters_are_taken_together(account):
    wanted = claimed(account.do("claim", pending(account, type="a", tag="t")["id"], worker_id="w"))
    pending(account, type="a", tag="t")
    held(account, type="a")
    held(account, type="b", tag="t")
    assert listed(account, "type=a&tag=t&status=claimed&worker=w&limit=1") == [wanted["id"]]


@pytest.mark.parametrize(
    "query",
    ["resolved=maybe", "status=done", "createdAfter=yesterday", "createdBefore=2020-01-01", "updatedAfter=x",
     "updatedBefore=1", "limit=101", "limit=0", f"tag={'x' * 1025}"],
)  # fmt: skip
def test_a_filter_that_makes_no_sense_is_named(account, query):
    body = refused(account.list(query), 400, "invalid_request")
    assert [error["pointer"] for error in body["errors"]] == [f"/{query.partition('=')[0]}"]


# -- pages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query", ["limit=7", "limit=7&tag=t", "limit=7&worker=nobody", "limit=7&type=work&status=pending"]
)
def test_pages_are_full_lead_on_and_show_each_task_once(account, query):
    made = many(account, 23, tag="t")
    expected = [] if "worker" in query else made
    pages = walk(account, query)
    assert [task for page in pages for task in page] == expected
    assert [len(page) for page in pages] == ([0] if "worker" in query else [7, 7, 7, 2])


def test_the_last_page_is_known_to_be_the_last(account):
    made = many(account, 14)
    assert walk(account, "limit=7") == [made[:7], made[7:]]


def test_pages_are_stable_while_tasks_are_created_and_claimed(account):
    made = many(account, 30)
    seen, cursor = [], ""
    while cursor is not None:
        body = done(account.list(f"limit=4{cursor}"))
        seen += ids_of(body)
        cursor = body["nextCursor"] and f"&cursor={body['nextCursor']}"
        many(account, 3)
        claimed(account.claim())
    assert seen == made


def test_the_contract_leads_to_the_next_page_with_the_same_filter(account):
    many(account, 3, tag="t & u")
    body = done(account.list("tag=t%20%26%20u&limit=2"))
    (more,) = [step for step in body["agent_contract"]["next_actions"] if step["action"] == "list_tasks"]
    assert len(ids_of(done(account.get(more["endpoint"])))) == 1


def test_a_rare_filter_gets_short_pages_that_lead_to_the_end(account):
    """The one task that fits is older than all that one page looks at."""
    mine = claimed(account.do("claim", pending(account)["id"], worker_id="rare"))
    many(account, SCANNED + 500)
    pages = walk(account, "worker=rare&limit=100")
    assert [task for page in pages for task in page] == [mine["id"]]
    assert len(pages) > 1
    assert pages[0] == []


# -- counts ------------------------------------------------------------------------------------------------------


def counts(account):
    return done(account.get("/v1/tasks/counts"))


def test_tasks_are_counted_by_type_and_state(account):
    for make, times in ((pending, 2), (held, 3), (completed, 1), (dead, 2), (cancelled, 1), (retrying, 1)):
        for _ in range(times):
            make(account)
    pending(account, type="other")
    expected = {"pending": 3, "claimed": 3, "completed": 1, "dead_letter": 2, "cancelled": 1}
    body = counts(account)
    assert body["types"]["work"] == expected
    assert body["types"]["other"] == dict.fromkeys(expected, 0) | {"pending": 1}
    assert body["total"] == expected | {"pending": 4}


def test_an_empty_account_counts_nothing(account):
    body = counts(account)
    assert (body["types"], set(body["total"].values())) == ({}, {0})


def test_counts_stay_true_while_many_write(account):
    made = many(account, 60)

    def work(number):
        while claimed_one := done(account.claim(worker_id=f"w{number}"))["task"]:
            verb = ("complete", "fail", "release", "cancel")[int(claimed_one["id"][-1], 36) % 4]
            account.do(verb, claimed_one["id"], **({"mode": "force"} if verb == "cancel" else {}))
            if verb == "release":
                account.do("cancel", claimed_one["id"])

    with Callers() as callers:
        for future in [callers._pool.submit(work, number) for number in range(6)]:
            future.result(30)
    total = counts(account)["total"]
    assert sum(total.values()) == len(made)
    for state, count in total.items():
        assert len([task for page in walk(account, f"status={state}&limit=100") for task in page]) == count
