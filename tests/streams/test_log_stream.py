"""`GET /v1/events` as a stream: frames, cursors, filters, permissions and limits."""

import re
import time

import pytest

from tests.compat.octostore.server import Server
from tests.compat.orchestrion.account import Account, register
from tests.compat.orchestrion.states import completed, pending
from tests.http.replies import done
from tests.streams.reading import Stream, StreamEnded, fields, follow

pytestmark = pytest.mark.waits(17)

PER_KEY = 100


def kinds(stream, count):
    return [stream.event()["event"] for _ in range(count)]


# -- frames ------------------------------------------------------------------------------------------------------


def test_the_first_frame_has_the_cursor(account):
    with follow(account) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        assert stream.headers["x-accel-buffering"] == "no"
        assert stream.headers["x-request-id"].startswith("req_")
        assert re.fullmatch(r": open\nretry: \d+\nid: 2", stream.frame())


def test_an_event_is_one_frame_with_a_cloud_event_in_it(account):
    with follow(account) as stream:
        stream.frame()
        answer = account.create(payload={"text": "line\nbreak é"})
        lines = stream.frame().split("\n")
        assert [line.partition(": ")[0] for line in lines] == ["id", "event", "data"]
        assert lines[:2] == ["id: 3", "event: task.created"]
        with follow(account, "after=2") as again:
            again.frame()
            error = again.event()["data"]
    page = done(account.get("/v1/events?after=2"))["events"][0]
    assert error == {
        "specversion": "1.0",
        "id": f"{account.id}:3",
        "source": "urn:holdfast",
        "type": "task.created",
        "subject": f"task:{answer.json['id']}",
        "time": page["at"],
        "datacontenttype": "application/json",
        "sequence": "0000000000000003",
        "version": 1,
        "actor": page["actor"],
        "requestid": answer.header("X-Request-Id"),
        "data": page["data"],
    }


def test_only_accept_text_event_stream_gets_a_stream(account):
    for accepted in ("application/json", "*/*", "text/*", "text/event-stream;q=0"):
        assert "events" in done(account.with_headers(Accept=accepted).get("/v1/events"))
    answer = account.with_headers(Accept="application/json, Text/Event-Stream;q=0.5").get("/v1/events")
    assert answer.raw.startswith(b": open")


# -- where it begins ---------------------------------------------------------------------------------------------


def test_without_a_cursor_only_new_events_are_followed(account):
    pending(account)
    with follow(account) as stream:
        assert fields(stream.frame())["id"] == "3"
        completed(account)
        assert [stream.event()["id"] for _ in range(3)] == ["4", "5", "6"]


def test_last_event_id_takes_precedence_over_after(account):
    completed(account)
    with follow(account, "after=0") as stream:
        assert kinds(stream, 5)[:2] == ["account.registered", "principal.created"]
    with follow(account, "after=0", last=3) as stream:
        assert kinds(stream, 2) == ["task.claimed", "task.completed"]


def test_a_reader_that_received_no_event_reconnects_without_a_gap(account):
    """The first frame has no event but an id, so a reader that reconnects gets what happened in the meantime."""
    with follow(account) as stream:
        stood = int(fields(stream.frame())["id"])
    pending(account)
    with follow(account, last=stood) as stream:
        assert stream.event()["event"] == "task.created"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("subject=task:*", ["task.created", "task.claimed", "task.completed", "task.created"]),
        ("kind=task.c*", ["task.created", "task.claimed", "task.completed", "task.created"]),
        ("kind=task.created", ["task.created", "task.created"]),
        ("subject=task:*&kind=task.claimed", ["task.claimed"]),
    ],
)
def test_streams_accept_the_filters_of_pages(account, query, expected):
    """The first three events are read from the store, the last one is live."""
    completed(account)
    with follow(account, f"{query}&after=0") as stream:
        received = kinds(stream, len(expected) - ("claimed" not in query))
        last = pending(account)["id"]
        received += [] if "claimed" in query else [stream.event()["event"]]
        assert received == expected
        assert last


def test_a_stream_of_one_subject_skips_all_others(account):
    mine = pending(account)["id"]
    with follow(account, f"subject=task:{mine}") as stream:
        stream.frame()
        pending(account)
        done(account.do("claim", mine))
        assert (stream.event()["event"], pending(account) != {}) == ("task.claimed", True)


# -- permissions and limits --------------------------------------------------------------------------------------


def test_refusals_are_sent_instead_of_a_stream(account, server):
    with follow(account, "after=-1") as stream:
        assert (stream.status, stream.body()["errors"][0]["pointer"]) == (400, "/after")
    with Stream(server.port, "/v1/events", Accept="text/event-stream") as stream:
        assert (stream.status, stream.body()["error"]) == (401, "missing_api_key")
    for wrong in ("x", "-1", "1.5", str(2**53 + 1)):
        with follow(account.with_headers(Last_Event_ID=wrong)) as stream:
            assert (stream.status, stream.body()["error"]) == (400, "invalid_request")


def test_streams_are_isolated_by_account(server, account):
    other = register(server.anyone)
    with follow(account) as stream:
        stream.frame()
        pending(other)
        pending(account)
        error = stream.event()
        assert (error["id"], error["data"]["id"]) == ("3", f"{account.id}:3")


def test_elections_are_in_no_account_log(server):
    root = Account(server.port, {"Authorization": f"Bearer {server.settings['ROOT_KEY']}"})
    with follow(root, "subject=lease:*") as stream, follow(root, "subject=lease:__election/some-room-1") as other:
        stream.frame()
        other.frame()
        assert root.campaign("some-room-1", ttl_seconds=5).status == 200
        done(root.post("/v1/jobs/after-the-room/claim", {"owner": "me"}))
        assert stream.event()["data"]["subject"] == "lease:after-the-room"
        with pytest.raises(TimeoutError):
            other.event(0.3)


def test_the_streams_of_a_key_are_limited_and_freed_when_closed(account):
    streams = [follow(account) for _ in range(PER_KEY)]
    try:
        assert {stream.status for stream in streams} == {200}
        with follow(account) as one_too_many:
            assert (one_too_many.status, one_too_many.body()["error"]) == (429, "rate_limited")
            assert int(one_too_many.headers["retry-after"]) > 0
    finally:
        for stream in streams:
            stream.close()
    deadline = time.monotonic() + 10
    while (again := follow(account)).status != 200:
        again.close()
        assert time.monotonic() < deadline, "places were not given back"
    again.close()


def test_the_streams_of_a_server_are_limited(tmp_path):
    server = Server(f"sqlite:///{tmp_path}/x.db", MAX_STREAMS="2").start()
    try:
        accounts = [register(server.anyone) for _ in range(3)]
        streams = [follow(account) for account in accounts]
        assert [stream.status for stream in streams] == [200, 200, 503]
        assert (streams[2].body()["error"], "retry-after" in streams[2].headers) == ("overloaded", True)
        for stream in streams[:2]:
            stream.frame()
        begun = time.monotonic()
        server.process.terminate()
        for stream in streams[:2]:
            with pytest.raises(StreamEnded):
                stream.frame()
            assert stream.was_finished
        assert time.monotonic() - begun < 3
        assert server.process.wait(10) == 0
        assert "Traceback" not in server.log()
        for stream in streams:
            stream.close()
    finally:
        server.close()


def test_one_account_cannot_use_all_streams_of_a_server(tmp_path):
    """A second key does not raise the limit of the account."""
    server = Server(f"sqlite:///{tmp_path}/x.db", MAX_STREAMS=str(PER_KEY + 4)).start()
    streams = []
    try:
        account, other = register(server.anyone), register(server.anyone)
        second, _ = another_key(account)
        streams += [follow(second) for _ in range(PER_KEY)]
        assert {stream.status for stream in streams} == {200}
        with follow(account) as refused:
            assert (refused.status, refused.body()["error"]) == (429, "rate_limited")
            assert int(refused.headers["retry-after"]) > 0
        with follow(other) as stream:
            assert stream.status == 200
    finally:
        for stream in streams:
            stream.close()
        server.close()


# -- keys that end -----------------------------------------------------------------------------------------------


def another_key(account, **fields):
    made = done(account.post("/v1/keys", {"name": "reader", "scopes": ["read"], **fields}), 201)
    return Account(account.port, {"Authorization": f"Bearer {made['apiKey']}"}), made["keyId"]


def assert_ended(stream, seconds):
    begun = time.monotonic()
    with pytest.raises(StreamEnded):
        while True:
            stream.frame(seconds)
    return time.monotonic() - begun


def test_a_key_with_a_prefix_gets_events_of_its_names_only(account):
    reader, _ = another_key(account, prefix="web/")
    with follow(reader) as stream:
        stream.frame()
        pending(account)
        done(account.post("/v1/sessions", {"name": "me"}), 201)
        for job in ("api/deploy", "web/deploy", "web", "web/test"):
            done(account.post(f"/v1/jobs/{job}/claim", {"owner": "me"}))
        subjects = [stream.event()["data"]["subject"] for _ in range(2)]
    assert subjects == ["lease:web/deploy", "lease:web/test"]
    assert [event["subject"] for event in done(reader.get("/v1/events"))["events"]] == subjects


@pytest.mark.parametrize(
    ("scope", "nouns"),
    [
        ("jobs", ["lease", "session"]),
        ("tasks", ["task", "session"]),
        ("read", ["lease", "task", "session"]),
        ("admin", ["webhook", "lease", "task", "session"]),
    ],
)
def test_a_stream_has_only_events_of_what_the_key_may_read(account, scope, nouns):
    reader, _ = another_key(account, scopes=[scope])
    with follow(reader) as stream:
        stream.frame()
        done(account.post("/v1/webhooks", {"url": "https://hooks.example.com/x"}), 201)
        done(account.post("/v1/jobs/deploy/claim", {"owner": "me"}))
        pending(account)
        done(account.post("/v1/sessions", {"name": "me"}), 201)
        seen = []
        while "session" not in seen:  # the last event, and every one of these keys may read it
            seen.append(stream.event()["data"]["subject"].partition(":")[0])
    assert seen == nouns


def test_a_revoked_key_ends_its_streams_and_no_others(account):
    reader, key_id = another_key(account)
    with follow(reader) as stream, follow(account) as other:
        stream.frame()
        other.frame()
        done(account.delete(f"/v1/keys/{key_id}"))
        assert_ended(stream, 10)
        assert other.event()["event"] == "principal.revoked"


def test_an_expired_key_ends_its_streams(account):
    reader, _ = another_key(account, expiresInSeconds=1)
    with follow(reader) as stream:
        stream.frame()
        assert_ended(stream, 15)


def test_a_key_revoked_on_another_server_ends_its_streams_here(postgres_server, second_postgres_server):
    account = register(second_postgres_server.anyone)
    reader, key_id = another_key(account)
    here = Account(postgres_server.port, reader.headers)
    with follow(here) as stream:
        stream.frame()
        done(account.delete(f"/v1/keys/{key_id}"))
        assert_ended(stream, 15)
