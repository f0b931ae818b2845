"""What `/v1/jobs` refuses: ids, fields and bodies out of bounds, and invalid keys."""

import json
import unicodedata
from urllib.parse import quote

import pytest

from tests.compat.octostore.wire import Caller
from tests.http.job_client import Agent, claimed, fresh, job_path, ok, pointers, problem, stranger

LARGE_INTEGER = 10**30


def nested(levels):
    return json.loads("[" * levels + "]" * levels)


# -- ids ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 256])
def test_an_id_has_one_to_256_characters(alice, root, length):
    job = fresh().ljust(256, "x")[:length] if length > 1 else "q"
    body = ok(alice.claim(job))
    assert body["job_id"] == job
    ok(root.force_release(job))


@pytest.mark.parametrize(
    "job",
    ["x" * 257, "a//b", "/a", "a/", "a/../b", "..", "a\nb", "a\0b", "a\u202eb", "a\u2028b", "a/*",
     "__election/room-12345"],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["/claim", "/heartbeat", ""])
def test_an_id_outside_the_grammar_is_refused(server, alice, job, verb):
    path = job_path(job, verb)
    answer = alice.post(path, {"owner": "me", "lease_id": fresh()}) if verb else alice.get(path)
    body = problem(answer, 400, "invalid_request")
    assert body["errors"][0]["code"] == "invalid_job_id"


@pytest.mark.parametrize(
    "job",
    ["src/app/[slug]/page.tsx", "docs/Über uns.md", "日本/é & ß (1) #2?+%41.md", 'a"b\\c', "x.", "a/*/b", "claim"],
)
def test_a_file_name_is_a_job_id_and_every_endpoint_of_its_answers_can_be_sent_as_it_is(alice, job):
    decomposed = unicodedata.normalize("NFD", job)
    lease = claimed(alice.claim(decomposed, "ann"))
    assert lease["job_id"] == job, "answered in normal form C, whichever form was sent"
    held = ok(alice.claim(job))
    assert held["status"] == "held"
    free = alice.owner_of(f"{job}.free")
    steps = [step for answer in (lease, held, free) for step in answer["agent_contract"]["next_actions"]]
    for step in steps:
        endpoint = step["endpoint"]
        assert endpoint.isascii()
        sent = {"owner": "bob", "lease_id": lease["lease_id"]}
        answer = alice.get(endpoint) if step["method"] == "GET" else alice.post(endpoint, sent)
        assert answer.status == 200, (step, answer.json)
        assert answer.json["job_id"] in {job, f"{job}.free"}
    assert alice.owner_of(job)["owner"] == "bob", "ann's release_job came before bob's claim_job"


def test_a_lock_whose_name_is_not_in_normal_form_is_no_job_and_a_job_whose_id_is_no_lock_name_is_no_lock(alice):
    start = fresh()
    lock, job = f"{start}/e\u0301", f"{start}/a b"
    assert alice.post(f"/locks/{quote(lock, safe='')}/acquire", {"ttl_seconds": 60}).status == 400, "an accent alone"
    lock = f"{start}/\u1100\u1161"  # two letters of Hangul that are one in normal form C
    ok(alice.post(f"/locks/{quote(lock, safe='')}/acquire", {"ttl_seconds": 60}))
    claimed(alice.claim(job))
    assert [each["job_id"] for each in alice.jobs(f"?prefix={start}")["jobs"]] == [job]
    assert [each["name"] for each in ok(alice.get(f"/locks?prefix={start}"))["locks"]] == [lock]
    assert alice.owner_of(lock)["status"] == "free", "the job of this name in normal form C"


def test_a_path_that_is_not_utf_8_is_refused(alice):
    problem(alice.post("/v1/jobs/%FF/claim", {"owner": "me"}), 400, "invalid_request")


def test_a_post_without_a_known_verb_is_not_found(alice, job):
    for path in (f"/v1/jobs/{job}/steal", f"/v1/jobs/{job}", "/v1/jobs/release"):
        body = problem(alice.post(path, {"owner": "me"}), 404, "not_found")
        assert "claim, heartbeat, release, offer, withdraw-offer, force-release" in body["message"]


@pytest.mark.parametrize(("verb", "allowed"), [("", {"get", "head"}), ("/claim", {"get", "head", "post"})])
def test_another_method_is_refused_with_the_allowed_ones(alice, job, verb, allowed):
    answer = alice.send("PUT", job_path(job, verb))
    problem(answer, 405, "wrong_method")
    assert answer.words("Allow") == allowed


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/", "/v1"])
def test_a_path_that_is_not_there_is_not_found(alice, path):
    answer = alice.get(path)
    assert answer.status == 404
    if path.startswith("/v1/"):
        assert answer.json["error"] == "not_found"
        assert answer.json["agent_contract"]["next_actions"][0]["action"] == "fix_request"


# -- fields ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("owner", ["x", "x" * 256, "日本", "a\tb\u0001\u202e"], ["", "   ", "x" * 257, "a\0b", 5, None, ["x"]]),
        ("ttl_seconds", [1, 3600], [0, -1, 3601, 1.5, "60", None, True, LARGE_INTEGER]),
        ("metadata", [{}, "", "x" * 4094, None, {"a": {"b": [1, None]}}], [5, ["a"], True, "a\0b", {"a\0": 1}]),
        ("session_id", [None], ["", "no-uuid", 5, {}]),
        ("wait_seconds", [0, 0.01], [-1, 60.5, 61, "1", None, True, LARGE_INTEGER]),
    ],
)  # fmt: skip
def test_the_bounds_of_a_claim(alice, field, good, bad):
    for value in good:
        claimed(alice.post(job_path(fresh(), "/claim"), {"owner": "me"} | {field: value}))
    job = fresh()
    for value in bad:
        body = problem(alice.post(job_path(job, "/claim"), {"owner": "me"} | {field: value}), 400, "invalid_request")
        assert pointers(body) == {f"/{field}"}, value
    assert alice.owner_of(job)["status"] == "free"


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("ttl_seconds", [1, 3600, None], [0, -5, 3601, 2.5, "9", LARGE_INTEGER]),
        ("note", ["", "x" * 4096, None, "línea\n"], ["x" * 4097, 5, {}, "a\0b"]),
        ("checkpoint", [None, 0, False, "", [], {}, "x" * 65534], ["a\0b", nested(33), [{"k\0": 1}]]),
        ("progress", [None, 0.5, "almost", {"done": 1}], ["a\0b", nested(33)]),
        ("token", [None], ["1", 1.5, {}]),
        ("lease_id", [], ["", "no-uuid", 5, None, {}]),
    ],
)
def test_the_bounds_of_a_heartbeat(alice, job, field, good, bad):
    lease = claimed(alice.claim(job))
    for value in good:
        ok(alice.post(job_path(job, "/heartbeat"), {"lease_id": lease["lease_id"], field: value}))
    before = alice.owner_of(job)
    for value in bad:
        answer = alice.post(job_path(job, "/heartbeat"), {"lease_id": lease["lease_id"], field: value})
        assert pointers(problem(answer, 400, "invalid_request")) == {f"/{field}"}, value
    assert alice.owner_of(job)["expires_at"] == before["expires_at"]


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("note", ["x" * 4096], ["x" * 4097, 5]),
        ("checkpoint", [nested(32)], [nested(33), nested(200)]),
        ("lease_id", [], ["no-uuid", None]),
    ],
)
def test_the_bounds_of_a_release(alice, job, field, good, bad):
    lease = claimed(alice.claim(job))
    for value in bad:
        answer = alice.post(job_path(job, "/release"), {"lease_id": lease["lease_id"], field: value})
        assert pointers(problem(answer, 400, "invalid_request")) == {f"/{field}"}, value
    assert alice.owner_of(job)["status"] == "claimed"
    for value in good:
        ok(alice.release_job(job, lease["lease_id"], **{field: value}))


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501, 5, None, "a\0b"])
def test_the_bounds_of_a_force_release(alice, root, job, reason):
    claimed(alice.claim(job))
    body = problem(root.post(job_path(job, "/force-release"), {"reason": reason}), 400, "invalid_request")
    assert pointers(body) == {"/reason"}
    assert alice.owner_of(job)["status"] == "claimed"


@pytest.mark.parametrize(
    ("verb", "field", "limit"),
    [("claim", "metadata", 4096), ("heartbeat", "checkpoint", 65536), ("heartbeat", "progress", 1024),
     ("release", "checkpoint", 65536)],
)  # fmt: skip
def test_json_is_measured_compact_and_a_byte_too_much_is_413(alice, job, verb, field, limit):
    lease = {"lease_id": claimed(alice.claim(job))["lease_id"]} if verb != "claim" else {"owner": "me"}
    too_much = {"k": "x" * (limit - 7)}
    body = problem(alice.post(job_path(job, f"/{verb}"), lease | {field: too_much}), 413, "too_large")
    assert pointers(body) == {f"/{field}"}
    fits = b'{ "k" :  "%s"   }' % (b"x" * (limit - 8))
    raw = b'{%s, "%s": %s}' % (json.dumps(lease).encode()[1:-1], field.encode(), fits)
    assert len(fits) > limit
    ok(alice.send("POST", job_path(job, f"/{verb}"), raw, Content_Type="application/json"))


def test_several_errors_are_reported_together(alice, job):
    body = problem(alice.claim(job, "", ttl_seconds=0, wait_seconds=99, session_id="x"), 400, "invalid_request")
    assert pointers(body) == {"/owner", "/ttl_seconds", "/wait_seconds", "/session_id"}
    body = problem(alice.post(job_path(job, "/claim"), {"ttl_seconds": "x", "session_id": 5}), 400, "invalid_request")
    assert pointers(body) == {"/owner", "/ttl_seconds", "/session_id"}
    assert all(error.keys() >= {"pointer", "code", "message"} for error in body["errors"])


def test_an_unknown_field_is_ignored_with_a_warning_that_guesses(alice, job):
    body = claimed(alice.claim(job, ttl_second=5, color="red"))
    assert body["ttl_seconds"] == 120
    assert len(body["warnings"]) == 2
    assert "'ttl_second'" in body["warnings"][0]
    assert "did you mean 'ttl_seconds'" in body["warnings"][0]
    assert "'color'" in body["warnings"][1]
    assert "did you mean" not in body["warnings"][1]
    assert "warnings" not in ok(alice.heartbeat(job, body["lease_id"]))
    assert ok(alice.heartbeat(job, body["lease_id"], chekpoint=1))["warnings"]
    assert ok(alice.release_job(job, body["lease_id"], nite="x"))["warnings"]


def test_an_empty_body_is_an_empty_object(alice, job):
    assert pointers(problem(alice.post(job_path(job, "/claim")), 400, "invalid_request")) == {"/owner"}


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "text/json"])
def test_a_body_of_another_kind_is_415(alice, job, kind):
    answer = alice.send("POST", job_path(job, "/claim"), b'{"owner": "me"}', Content_Type=kind)
    problem(answer, 415, "unsupported_media_type")


def test_a_body_over_a_megabyte_is_413(alice, job):
    raw = b'{"owner": "me", "x": "%s"}' % (b"x" * 1024 * 1024)
    problem(alice.send("POST", job_path(job, "/claim"), raw, Content_Type="application/json"), 413, "too_large")


# -- keys --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (None, "missing_api_key"),
        ("Bearer ", "missing_api_key"),
        ("Basic YTpi", "missing_api_key"),
        ("Bearer nobody-ever-issued-this-token", "invalid_api_key"),
        ("Bearer hf_live_00000000000000000000000000000000_000000", "invalid_api_key"),
    ],
)
@pytest.mark.parametrize("verb", ["/claim", "/heartbeat", "/release", "/force-release", "", "list"])
def test_a_missing_or_invalid_key_is_refused_by_every_operation(server, job, header, code, verb):
    caller: Caller = stranger(server)
    if header is not None:
        caller = caller.with_headers(Authorization=header)
    path = "/v1/jobs" if verb == "list" else job_path(job, verb)
    answer = caller.get(path) if verb in {"", "list"} else caller.post(path, {"owner": "me"})
    body = problem(answer, 401, code)
    assert answer.header("WWW-Authenticate") == "Bearer"
    assert body["agent_contract"]["next_actions"][0]["action"] == "authenticate"


def test_malformed_and_unknown_keys_get_the_same_answer(server, job):
    def answer_to(token):
        body = Agent(server.port, {"Authorization": f"Bearer {token}"}).get(job_path(job)).json
        return {key: value for key, value in body.items() if key not in {"request_id", "instance"}}

    assert answer_to("x" * 30) == answer_to("hf_live_00000000000000000000000000000000_000000")


def test_a_request_id_of_the_callers_own_comes_back(alice, job):
    answer = alice.with_headers(X_Request_Id="my-id:1.2_3").get(job_path(job))
    assert answer.header("X-Request-Id") == "my-id:1.2_3"
    answer = alice.with_headers(X_Request_Id="no spaces").get(job_path(job))
    assert (answer.header("X-Request-Id") or "").startswith("req_")
