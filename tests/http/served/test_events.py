"""The log of an account: complete, in order, every seq once, also for readers that follow it while others write."""

import threading
import time

import pytest

from tests.compat.orchestrion.account import Account, register
from tests.compat.orchestrion.expect import claimed
from tests.compat.orchestrion.states import completed, held, pending
from tests.http.job_client import Callers, agent, job_path, pointers, problem
from tests.http.replies import caused_by, done, events, nothing_changes
from tests.http.session_client import begin, write
from tests.proof_size import sized

pytest_plugins = ["tests.http.fresh_accounts"]

LARGE = 80
WRITERS = 6
ROUNDS = sized(8, 300)


def page(account, query):
    return done(account.get(f"/v1/events?{query}"))


def kinds(told):
    return [event["kind"] for event in told]


# -- which changes are logged ------------------------------------------------------------------------------------


def test_the_log_begins_with_the_account_and_has_no_gaps(account):
    completed(account)
    told = events(account)
    assert [event["seq"] for event in told] == list(range(1, len(told) + 1))
    assert kinds(told) == [
        "account.registered", "principal.created", "task.created", "task.claimed", "task.completed",
    ]  # fmt: skip


def test_every_kind_of_row_has_events(account):
    mine = held(account)
    life = begin(account)
    lease = done(account.post(job_path("deploy/web", "/claim"), {"owner": "me", "session_id": life["session_id"]}))
    done(account.post(job_path("deploy/web", "/release"), {"lease_id": lease["lease_id"]}))
    done(account.send_json("DELETE", f"/v1/sessions/{life['session_id']}", {"lease_id": life["lease_id"]}))
    subjects = [event["subject"] for event in events(account)[2:]]
    task, session = f"task:{mine['id']}", f"session:{life['session_id']}"
    assert subjects == [task, task, session, "lease:deploy/web", "lease:deploy/web", session]


def test_a_request_that_changed_nothing_has_no_event(account):
    mine = held(account)
    with nothing_changes(account):
        account.do("cancel", mine["id"])
        account.read_task(mine["id"])
        account.claim()
        account.create(priority=-1)


# -- filters -----------------------------------------------------------------------------------------------------


@pytest.fixture
def two(account):
    """Two tasks, one of them completed, and a session: seven events after the account's own two."""
    return pending(account), completed(account), begin(account)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("subject=task:*", ["task.created", "task.created", "task.claimed", "task.completed"]),
        ("subject=session:*", ["session.opened"]),
        ("subject=task:", []),
        ("kind=task.created", ["task.created", "task.created"]),
        ("kind=task.c*", ["task.created", "task.created", "task.claimed", "task.completed"]),
        ("kind=task", []),
        ("kind=*", ["account.registered", "principal.created", "task.created", "task.created", "task.claimed",
                    "task.completed", "session.opened"]),
        ("subject=task:*&kind=task.completed", ["task.completed"]),
        ("subject=session:*&kind=task.*", []),
        ("request_id=req_nobody", []),
    ],
)  # fmt: skip
def test_events_are_filtered_by_subject_kind_and_request_id(account, two, query, expected):
    assert kinds(page(account, query)["events"]) == expected


def test_one_subject_can_be_followed(account, two):
    told = page(account, f"subject=task:{two[1]['id']}")["events"]
    assert kinds(told) == ["task.created", "task.claimed", "task.completed"]


def test_what_a_request_changed_can_be_found_by_its_id(account):
    answer = account.create()
    (told,) = caused_by(account, answer)
    assert (told["kind"], told["subject"]) == ("task.created", f"task:{answer.json['id']}")


def test_a_request_may_bring_its_own_id(account):
    account.with_headers(X_Request_Id="deploy-42").create()
    assert kinds(events(account, "request_id=deploy-42")) == ["task.created"]


# -- page by page ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_pages_lead_on_until_the_end(account, two, limit):
    seen, after, more = [], 0, True
    while more:
        told = page(account, f"after={after}&limit={limit}")
        assert len(told["events"]) <= limit
        seen += [event["seq"] for event in told["events"]]
        after, more = told["nextCursor"], told["hasMore"]
    assert seen == list(range(1, 8))
    assert page(account, f"after={after}")["events"] == []


def test_the_cursor_advances_past_events_that_do_not_match(account, two):
    told = page(account, "kind=session.*")
    assert told["nextCursor"] == 7
    assert page(account, f"after={told['nextCursor']}&kind=session.*")["events"] == []


def test_a_page_that_is_full_stops_before_the_next_match(account, two):
    told = page(account, "kind=task.created&limit=1")
    assert (told["hasMore"], len(told["events"])) == (True, 1)
    rest = page(account, f"kind=task.created&limit=1&after={told['nextCursor']}")
    assert (kinds(rest["events"]), rest["hasMore"]) == (["task.created"], False)


def test_a_page_has_about_four_megabytes_however_many_events_are_asked_for(account):
    """Events of 64 KiB each, so that two pages are needed; a page by request is cut by the same rule."""
    agent = account.with_headers(X_Request_Id="many")
    life = begin(agent)
    for number in range(LARGE):
        text = f"{number:04}" + "\U0001f600" * 4_092
        done(write(agent, life, last_action=text, next_action=text, context_hash=text, memory_ref=text))
    for query in ("limit=1000", "limit=1000&request_id=many", "limit=1000&kind=session.*"):
        sizes, seen, after, more = [], [], 0, True
        while more:
            answer = account.get(f"/v1/events?{query}&after={after}")
            told = done(answer)
            sizes.append(len(answer.raw))
            seen += [event["seq"] for event in told["events"]]
            after, more = told["nextCursor"], told["hasMore"]
        assert len(seen) >= LARGE
        assert seen == list(range(seen[0], seen[0] + len(seen)))
        assert len(sizes) == 2, query
        assert max(sizes) < 5 * 2**20


def test_the_contract_says_how_to_follow(account):
    told = page(account, "limit=1000")
    (step,) = told["agent_contract"]["next_actions"]
    assert step["endpoint"] == f"/v1/events?limit=1000&after={told['nextCursor']}&wait_seconds=30"


# -- waiting -----------------------------------------------------------------------------------------------------


def test_a_reader_waits_for_what_it_wants(account):
    mine = held(account)
    last = page(account, "limit=1000")["nextCursor"]
    with Callers() as callers:
        reader = callers.send(account.get, f"/v1/events?after={last}&kind=task.completed&wait_seconds=15")
        done(account.do("heartbeat", mine["id"]))
        done(account.complete(mine["id"]))
        assert kinds(done(reader.result(5)[0])["events"]) == ["task.completed"]


def test_a_read_that_waited_in_vain_returns_no_events(account):
    last = page(account, "limit=1000")["nextCursor"]
    before = time.monotonic()
    told = page(account, f"after={last}&wait_seconds=0.4")
    assert (told["events"], told["nextCursor"]) == ([], last)
    assert 0.4 <= time.monotonic() - before < 3


def test_events_of_another_account_do_not_end_a_wait(account, stranger):
    last = page(account, "limit=1000")["nextCursor"]
    with Callers() as callers:
        reader = callers.send(account.get, f"/v1/events?after={last}&wait_seconds=0.5")
        pending(stranger)
        assert done(reader.result(5)[0])["events"] == []


def test_a_reader_on_another_server_gets_the_event_at_once(postgres_server, second_postgres_server):
    here = register(postgres_server.anyone)
    there = Account(second_postgres_server.port, here.headers)
    last = page(here, "limit=1000")["nextCursor"]
    with Callers() as callers:
        for _ in range(3):
            reader = callers.send(there.get, f"/v1/events?after={last}&wait_seconds=15")
            time.sleep(0.1)  # on an idle machine it waits by now
            answer = here.create()
            (told,) = done(reader.result(5)[0])["events"]
            assert told["request_id"] == answer.header("X-Request-Id")
            last = told["seq"]


def test_a_follower_sees_every_seq_once_while_writers_write(account, server):
    assert_followed([account] * WRITERS, account)


def test_a_follower_on_another_server_sees_every_seq_once(postgres_server, second_postgres_server):
    here = register(postgres_server.anyone)
    there = Account(second_postgres_server.port, here.headers)
    assert_followed([here, there] * (WRITERS // 2), there)


def assert_followed(writers, reader):
    writing = threading.Event()
    writing.set()

    def write(account):
        for _ in range(ROUNDS):
            pending(account)
            done(account.complete(claimed(account.claim())["id"]))

    def follow():
        seen, after = [], 0
        while True:
            still = writing.is_set()
            told = page(reader, f"after={after}&limit=7&wait_seconds={0.2 if still else 0}")
            seen += [event["seq"] for event in told["events"]]
            after = told["nextCursor"]
            if not still and not told["events"]:
                return seen

    with Callers() as callers:
        follower = callers._pool.submit(follow)
        try:
            for future in [callers._pool.submit(write, account) for account in writers]:
                future.result(120)
        finally:
            writing.clear()
        seen = follower.result(60)
    assert seen == list(range(1, 2 + 3 * len(writers) * ROUNDS + 1))


# -- refusals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("after", ["0", "1"], ["-1", str(2**53 + 1), "x", "1.5", ""]),
        ("limit", ["1", "1000"], ["0", "1001", "-1", "x", ""]),
        ("wait_seconds", ["0", "0.01"], ["-1", "60.1", "61", "x", ""]),
        ("subject", ["x" * 1024], ["x" * 1025]),
        ("kind", ["x" * 1024], ["x" * 1025]),
        ("request_id", ["x" * 1024], ["x" * 1025]),
    ],
)
def test_the_bounds_of_query_parameters(account, field, good, bad):
    for value in good:
        page(account, f"{field}={value}")
    for value in bad:
        body = problem(account.get(f"/v1/events?{field}={value}"), 400, "invalid_request")
        assert pointers(body) == {f"/{field}"}, value


def test_a_caller_without_a_key_sees_nothing(server):
    problem(server.anyone.get("/v1/events"), 401, "missing_api_key")


def test_everybody_in_an_account_reads_its_log(server):
    answer = agent(server, "alice-1").post("/v1/tasks", {"type": "work", "payload": {}})
    told = page(agent(server, "bob-1"), f"request_id={answer.header('X-Request-Id')}")["events"]
    assert kinds(told) == ["task.created"]
