"""What a key holds, with every kind of client."""

import asyncio

import pytest

import holdfast
from holdfast.client import errors
from tests.client.ways import KEY, url_of


@pytest.fixture
def session(client, name):
    session = client.begin_session(name)
    yield session
    client.close_session(session["session_id"], lease_id=session["lease_id"])


def test_a_client_lists_what_it_holds_with_lease_ids_by_the_secret(client, session, name):
    proof = {"session_id": session["session_id"], "session_lease_id": session["lease_id"]}
    job = client.claim_job(name, "me", **proof)
    plain = client.list_mine(session_id=session["session_id"])["held"]
    assert [each["id"] for each in plain] == [session["session_id"], name]
    assert not any("lease_id" in each for each in plain)
    page = client.list_mine(session_id=session["session_id"], session_secret=session["secret"], limit=1)
    assert [each["lease_id"] for each in page["held"]] == [session["lease_id"]]
    page = client.list_mine(
        session_id=session["session_id"], session_secret=session["secret"], cursor=page["nextCursor"]
    )
    assert [each["lease_id"] for each in page["held"]] == [job["lease_id"]]
    with pytest.raises(errors.Forbidden):
        client.list_mine(session_id=session["session_id"], session_secret="wrong")


def test_a_client_iterates_over_all_pages(embedded_client, name):
    names = [f"{name}/{number:03}" for number in range(205)]
    jobs = [embedded_client.claim_job(each, name) for each in names]
    try:
        assert [each["id"] for each in embedded_client.mine(owner=name)] == names
    finally:
        for job in jobs:
            embedded_client.release_job(job["job_id"], job["lease_id"])


def test_an_async_client_iterates_too(sqlite_server, name):
    async def collect():
        async with holdfast.AsyncClient(url_of(sqlite_server), KEY) as client, client.job(name, owner=name):
            return [each["id"] async for each in client.mine(owner=name)]

    assert asyncio.run(collect()) == [name]


def test_a_secret_is_sent_as_a_header_and_never_in_a_url(recorded, transport, name):
    session = recorded.begin_session(name)
    recorded.list_mine(session_id=session["session_id"], session_secret=session["secret"])
    assert not any(session["secret"] in target for target in transport.targets)
    assert transport.targets[-1] == f"/v1/mine?session_id={session['session_id']}"
