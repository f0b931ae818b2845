"""The list of claimed jobs: by prefix, in order, page by page."""

import pytest

from tests.http.job_client import claimed, fresh, ok, pointers, problem


@pytest.fixture
def prefix(alice):
    """Seven claimed jobs under one prefix, and one beside it."""
    prefix = fresh("list") + "/"
    for name in ("b", "a", "C", "a/1", "a.1", "a-1", "z"):
        claimed(alice.claim(prefix + name, name))
    claimed(alice.claim(prefix[:-1], "beside"))
    return prefix


IN_ORDER = ["C", "a", "a-1", "a.1", "a/1", "b", "z"]


def test_jobs_come_bytewise_by_id_and_only_under_the_prefix(alice, prefix):
    body = alice.jobs(f"?prefix={prefix}")
    assert [found["owner"] for found in body["jobs"]] == IN_ORDER
    assert [found["job_id"] for found in body["jobs"]] == [prefix + name for name in IN_ORDER]
    assert (body["hasMore"], body["nextCursor"]) == (False, None)
    assert all(not found.keys() & {"lease_id", "token"} for found in body["jobs"])


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 8])
def test_pages_put_together_are_the_whole_list(alice, prefix, limit):
    seen, cursor, pages = [], "", 0
    while True:
        body = alice.jobs(f"?prefix={prefix}&limit={limit}{cursor}")
        seen += [found["owner"] for found in body["jobs"]]
        assert len(body["jobs"]) <= limit
        pages += 1
        if not body["hasMore"]:
            break
        cursor = f"&cursor={body['nextCursor']}"
    assert seen == IN_ORDER
    assert pages == -(-len(IN_ORDER) // limit)


def test_a_page_goes_on_where_it_stopped_although_jobs_went_meanwhile(alice, prefix):
    first = alice.jobs(f"?prefix={prefix}&limit=3")
    lease = claimed(alice.claim(prefix + "a.0", "new, but behind"))
    ok(alice.release_job(prefix + "a.0", lease["lease_id"]))
    second = alice.jobs(f"?prefix={prefix}&limit=10&cursor={first['nextCursor']}")
    assert [found["owner"] for found in first["jobs"] + second["jobs"]] == IN_ORDER


def test_released_and_lapsed_jobs_are_not_listed(alice, prefix):
    lease = claimed(alice.claim(prefix + "gone"))
    ok(alice.release_job(prefix + "gone", lease["lease_id"]))
    assert len(alice.jobs(f"?prefix={prefix}")["jobs"]) == len(IN_ORDER)


def test_an_empty_list_still_says_what_to_do(alice):
    body = alice.jobs(f"?prefix={fresh()}")
    assert body["jobs"] == []
    assert body["agent_contract"]["next_actions"][0]["action"] == "continue_work"


def test_election_rooms_and_lock_names_that_are_not_in_normal_form_are_no_jobs(alice, prefix):
    room = fresh("room")
    alice.campaign(room)
    decomposed = "\u1100\u1161"  # in normal form C these two letters are one
    alice.acquire(f"{prefix[:-1]}{decomposed}")
    found = [job["job_id"] for job in alice.jobs("?limit=1000")["jobs"]]
    assert prefix + "a" in found
    assert not [name for name in found if room in name or decomposed in name]


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "ten", "1.5", "", " 1", "9" * 4999])
def test_a_limit_out_of_range_is_refused(alice, limit):
    body = problem(alice.get(f"/v1/jobs?limit={limit.replace(' ', '%20')}"), 400, "invalid_request")
    assert pointers(body) == {"/limit"}


@pytest.mark.parametrize("cursor", ["!", "AAA", "%00", "gIA", "x" * 5000, "AA"])
def test_a_cursor_that_is_not_ours_is_refused(alice, cursor):
    answer = alice.get(f"/v1/jobs?cursor={cursor}")
    if answer.status != 200:  # any base64 of plain text might have been one of ours
        problem(answer, 400, "invalid_request")


def test_a_prefix_with_a_null_character_is_refused(alice):
    problem(alice.get("/v1/jobs?prefix=a%00b"), 400, "invalid_request")
