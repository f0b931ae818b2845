"""`/v1/reservations`: bodies, precise errors that change nothing, repeated requests, sessions and prefixes."""

import json

import pytest

from holdfast.operations import bounds
from tests.compat.orchestrion.account import Account
from tests.http.job_client import ABSENT_LEASE, fresh
from tests.http.replies import done, refused_as_problem
from tests.http.session_client import beat, begin, close, resume

SPACE = "acme/shop"


def reserve(caller, *paths, **fields):
    return caller.post("/v1/reservations", {"space": SPACE, "owner": "me", "paths": paths, **fields})


def of(reserved, verb=""):
    return f"/v1/reservations/{reserved['reservation_id']}{verb}"


def held(caller, *paths, **fields):
    body = done(reserve(caller, *paths, **fields))
    assert body["status"] == "reserved", body
    return body


def test_a_reservation_says_all_about_itself_and_nothing_secret_to_others(account):
    mine = held(account, "src/", "README.md", mode="shared", reason="docs", metadata={"a": [1]}, ttl_seconds=60)
    shown = {"space": SPACE, "owner": "me", "paths": ["src/", "README.md"], "mode": "shared", "reason": "docs"}
    shown |= {"metadata": {"a": [1]}, "status": "reserved", "reservation_id": mine["reservation_id"]}
    assert shown.items() <= mine.items()
    assert (mine["ttl_seconds"], mine["heartbeat_every_seconds"]) == (60, 20)
    assert isinstance(mine["token"], int)
    read = done(account.get(of(mine)))
    listed = done(account.get("/v1/reservations"))["reservations"]
    assert shown.items() <= read.items()
    assert [each["reservation_id"] for each in listed] == [mine["reservation_id"]]
    answer = done(reserve(account, "src/a", "docs/"))
    (conflict,) = answer["conflicts"]
    assert (answer["status"], conflict["reservation_id"]) == ("held", mine["reservation_id"])
    assert conflict["paths"] == [{"yours": "src/a", "theirs": "src/"}]
    for other in (read, listed, answer):
        assert mine["lease_id"] not in json.dumps(other)
        assert "proof" not in json.dumps(other)
    assert done(account.get("/v1/reservations"))["reservations"] == listed


@pytest.mark.parametrize(
    ("fields", "pointer", "said"),
    [
        ({"paths": []}, "/paths", "1 to 20"),
        ({"paths": [f"f{number}" for number in range(21)]}, "/paths", "1 to 20"),
        ({"paths": ["ok", "/etc/passwd"]}, "/paths", "'/etc/passwd': a path is relative to the root"),
        ({"paths": ["a/../b"]}, "/paths", "'..'"),
        ({"paths": ["a**"]}, "/paths", "alone between slashes"),
        ({"paths": ["a\u202eb"]}, "/paths", "printable"),
        ({"paths": ["x" * 513]}, "/paths", "at most 512"),
        ({"space": ""}, "/space", "space"),
        ({"space": "a" * 257}, "/space", "256"),
        ({"space": "a\nb"}, "/space", "printable"),
        ({"owner": " "}, "/owner", "must not be empty"),
        ({"mode": "open"}, "/mode", ""),
        ({"ttl_seconds": 0}, "/ttl_seconds", ""),
        ({"ttl_seconds": 86_401}, "/ttl_seconds", ""),
        ({"wait_seconds": -1}, "/wait_seconds", ""),
        ({"session_id": "me"}, "/session_id", "UUID"),
        ({"metadata": [1]}, "/metadata", ""),
    ],
)
def test_a_bad_request_is_told_what_and_where_and_changes_nothing(account, fields, pointer, said):
    answer = account.post("/v1/reservations", {"space": SPACE, "owner": "me", "paths": ["ok"], **fields})
    body = refused_as_problem(answer, 400, "invalid_request")
    found = [error for error in body["errors"] if error["pointer"].startswith(pointer)]
    assert found, body["errors"]
    assert said in " ".join(error["message"] for error in found)
    assert done(account.get("/v1/reservations"))["reservations"] == []
    assert [each for each in done(account.get("/v1/events"))["events"] if "reservation" in each["subject"]] == []


@pytest.mark.parametrize("verb", ["/heartbeat", "/release", "/extend"])
def test_a_lease_id_must_be_one_and_the_right_one(account, verb):
    mine = held(account, "src/")
    fields = {"paths": ["x"]} if verb == "/extend" else {}
    body = refused_as_problem(account.post(of(mine, verb), {"lease_id": "nonsense", **fields}), 400, "invalid_request")
    assert [error["pointer"] for error in body["errors"]] == ["/lease_id"]
    refused_as_problem(account.post(of(mine, verb), {"lease_id": ABSENT_LEASE, **fields}), 409, "lease_lost")
    missing = {"reservation_id": ABSENT_LEASE}
    answer = account.post(of(missing, verb), {"lease_id": mine["lease_id"], **fields})
    refused_as_problem(answer, 404, "reservation_not_found")
    assert done(account.get(of(mine)))["paths"] == ["src/"]


def test_some_paths_are_released_extended_and_what_is_not_reserved_is_refused(account):
    mine = held(account, "src/", "docs/")
    body = refused_as_problem(
        account.post(of(mine, "/release"), {"lease_id": mine["lease_id"], "paths": ["src/a"]}), 400, "invalid_request"
    )
    assert [(error["pointer"], error["code"]) for error in body["errors"]] == [("/paths", "not_reserved")]
    left = done(account.post(of(mine, "/release"), {"lease_id": mine["lease_id"], "paths": ["src/"]}))
    assert left["paths"] == ["docs/"]
    other = held(account, "src/a")
    answer = done(account.post(of(mine, "/extend"), {"lease_id": mine["lease_id"], "paths": ["src/b", "src/*"]}))
    assert (answer["status"], answer["conflicts"][0]["reservation_id"]) == ("held", other["reservation_id"])
    assert done(account.get(of(mine)))["paths"] == ["docs/"]
    answer = done(account.post(of(mine, "/extend"), {"lease_id": mine["lease_id"], "paths": ["src/b"]}))
    assert (answer["status"], answer["paths"]) == ("reserved", ["docs/", "src/b"])
    done(account.post(of(mine, "/release"), {"lease_id": mine["lease_id"]}))
    body = refused_as_problem(account.post(of(mine, "/heartbeat"), {"lease_id": mine["lease_id"]}), 409, "lease_lost")
    assert body["ended"] == "released"


def test_a_repeated_request_is_answered_alike_and_reserves_once(account):
    caller = account.with_headers(Idempotency_Key=fresh("key"))
    first, again = held(caller, "src/"), held(caller, "src/")
    assert [again[name] for name in ("reservation_id", "lease_id", "token")] == [
        first[name] for name in ("reservation_id", "lease_id", "token")
    ]
    assert len(done(account.get("/v1/reservations"))["reservations"]) == 1
    assert reserve(caller, "docs/").status == 422
    done(account.post(of(first, "/release"), {"lease_id": first["lease_id"]}))
    refused_as_problem(reserve(caller, "src/"), 409, "lease_lost")


def test_a_reservation_ends_with_its_session_and_is_reissued_when_it_is_resumed(account):
    session = begin(account, fresh("agent"), ttl_seconds=600)
    own = {"session_id": session["session_id"], "session_lease_id": session["lease_id"]}
    mine = held(account, "src/", ttl_seconds=3600, **own)
    assert mine["session_id"] == session["session_id"]
    assert mine["expires_in_seconds"] <= 600
    assert [each["reservation_id"] for each in done(beat(account, session))["reservations"]] == [mine["reservation_id"]]
    resumed = resume(account, session)
    (reissued,) = resumed["reservations"]
    assert (reissued["reservation_id"], reissued["token"] > mine["token"]) == (mine["reservation_id"], True)
    refused_as_problem(account.post(of(mine, "/heartbeat"), {"lease_id": mine["lease_id"]}), 409, "lease_lost")
    done(account.post(of(mine, "/heartbeat"), {"lease_id": reissued["lease_id"]}))
    done(close(account, resumed))
    assert done(account.get(of(mine)))["status"] != "reserved"
    held(account, "src/")


def test_a_prefix_binds_spaces(account):
    made = done(account.post("/v1/keys", {"name": "team", "scopes": ["jobs"], "prefix": "team/"}), 201)
    limited = Account(account.port, {"Authorization": f"Bearer {made['apiKey']}"})
    outside, inside = held(account, "src/"), held(account, "src/", space="team/site")
    refused_as_problem(reserve(limited, "docs/"), 403, "forbidden")
    refused_as_problem(limited.get(of(outside)), 404, "reservation_not_found")
    body = {"lease_id": outside["lease_id"]}
    refused_as_problem(limited.post(of(outside, "/release"), body), 404, "reservation_not_found")
    assert done(limited.get(of(inside)))["owner"] == "me"
    listed = done(limited.get("/v1/reservations"))["reservations"]
    assert [each["space"] for each in listed] == ["team/site"]
    assert done(reserve(limited, "src/a", space="team/site"))["status"] == "held"
    held(limited, "docs/", space="team/site")


def test_only_an_administrator_takes_files_from_their_holder(account):
    mine = held(account, "src/")
    made = done(account.post("/v1/keys", {"name": "worker", "scopes": ["jobs"]}), 201)
    worker = Account(account.port, {"Authorization": f"Bearer {made['apiKey']}"})
    refused_as_problem(worker.post(of(mine, "/force-release"), {"reason": "stuck"}), 403, "forbidden")
    refused_as_problem(account.post(of(mine, "/force-release"), {"reason": " "}), 400, "invalid_request")
    done(account.post(of(mine, "/force-release"), {"reason": "it hangs"}))
    body = refused_as_problem(account.post(of(mine, "/heartbeat"), {"lease_id": mine["lease_id"]}), 409, "lease_lost")
    assert (body["ended"], body["reason"]) == ("forced", "it hangs")
    refused_as_problem(account.post(of(mine, "/force-release"), {"reason": "again"}), 409, "not_held")


def test_files_are_checked_with_and_without_the_lease_id(account):
    mine = held(account, "src/", mode="shared")
    held(account, "src/a", mode="shared", owner="other")
    asked = {"space": SPACE, "paths": ["src/a", "src/b", "docs/x"]}
    seen = [(each["path"], each["allowed"]) for each in done(account.post("/v1/reservations/check", asked))["files"]]
    assert seen == [("src/a", False), ("src/b", False), ("docs/x", True)]
    body = done(account.post("/v1/reservations/check", {**asked, "lease_ids": [mine["lease_id"]]}))
    assert [each["allowed"] for each in body["files"]] == [False, True, True]
    assert body["all_allowed"] is False
    refused_as_problem(account.post("/v1/reservations/check", {**asked, "paths": ["/x"]}), 400, "invalid_request")


@pytest.mark.parametrize("query", ["path=src/a", "space=a%0Ab", "limit=0", "cursor=nonsense", "space=x&path=/x"])
def test_a_list_with_a_wrong_filter_is_refused(account, query):
    assert account.get(f"/v1/reservations?{query}").status == 400


@pytest.mark.parametrize(
    ("path", "body", "field", "bound"),
    [
        ("/v1/jobs/claim", {"owner": "me"}, "any_of", bounds.ANY_OF),
        ("/v1/reservations", {"owner": "me", "space": "s"}, "paths", bounds.RESERVED_PATHS),
        ("/v1/reservations/check", {"space": "s"}, "paths", bounds.CHECKED_PATHS),
        ("/v1/tasks/claim", {"worker_id": "w"}, "types", bounds.TASK_CLAIM_TYPES),
    ],
)
def test_repeated_items_count_towards_the_bound_of_a_list(account, path, body, field, bound):
    answer = account.post(path, {**body, field: ["x"] * (bound.most + 1)})
    assert answer.status == 400, str(answer)
    assert f"must have {bound}" in str(answer)
    done(account.post(path, {**body, field: ["x"] * bound.most}))
