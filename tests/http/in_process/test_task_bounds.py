"""The bounds of every field that Holdfast adds: each is taken at its edge, refused one step further, and named."""

import json

import pytest

from tests.compat.orchestrion.expect import claimed, created
from tests.compat.orchestrion.states import held, pending
from tests.http.replies import done, nothing_changes, refused

MONTH = 30 * 24 * 3600
HUGE = 10**30
ZERO = "a\0b"


def text_of(size):
    """A JSON text of so many bytes."""
    return "x" * (size - 2)


def nested(levels):
    return json.loads("[" * levels + "]" * levels)


def policy(**fields):
    return {"kind": "fixed", **fields}


LABELS = (["", "x", "x" * 255, "ü" * 255], ["x" * 256, ZERO, 5, ["x"]])
CREATE = {
    "uniqueKey": (["x", "x" * 255], ["", "x" * 256, ZERO, 5]),
    "onDuplicate": (["return", "replace"], ["", "ignore", 5, None]),
    "onDependencyFailure": (["hold", "cancel", "run"], ["", "wait", 5, None]),
    "dependsOn": ([[]], [["x"] * 101, [""], ["x" * 256], [ZERO], "x", [5], None, ["tsk_unknown"]]),
    "tag": LABELS,
    "createdBy": LABELS,
    "reviewedBy": LABELS,
    "source": LABELS,
    "backoff": (
        [
            *(policy(kind=kind) for kind in ("fixed", "linear", "exponential")),
            *(policy(base_seconds=seconds) for seconds in (0, 0.5, MONTH)),
            *(policy(max_seconds=seconds) for seconds in (0, MONTH)),
            *(policy(jitter=part) for part in (0, 0.5, 1)),
            None,
        ],
        [
            {},
            {"base_seconds": 1},
            policy(kind="random"),
            policy(base_seconds=-0.1),
            policy(base_seconds=MONTH + 1),
            policy(max_seconds=-1),
            policy(max_seconds=MONTH + 1),
            policy(jitter=-0.01),
            policy(jitter=1.01),
            policy(jitter="1"),
            policy(every=5),
            "fixed",
            5,
        ],
    ),
}
CLAIM = {
    "types": (
        [[], ["work"], ["work", *(f"t{n}" for n in range(99))], None],
        [[f"t{n}" for n in range(101)], "work", [5], {}],
    ),
    "limit": ([1, 100, None], [0, 101, -1, 1.5, "1", True, HUGE]),
    "wait_seconds": ([0, 0.01], [-1, -0.01, 60.01, 61, "1", None, True, HUGE]),
    "session_id": ([None], ["", "me", 5, {}]),
}
LEFT = {
    "lease_id": ([None], ["x" * 256, ZERO, 5, {}]),
    "fencing_token": ([None], ["1", 1.5, {}]),
    "note": (["", "x" * 4096, None], ["x" * 4097, ZERO, 5, {}]),
    "checkpoint": ([None, 0, False, "", [], {}, text_of(65_536)], [text_of(65_537), ZERO, [{ZERO: 1}], nested(33)]),
    "progress": ([None, 0.5, {"of": 3}, text_of(1024), nested(32)], [text_of(1025), ZERO, nested(33)]),
}
AT_THE_EDGE = {"note": "x" * 4096, "checkpoint": text_of(65_536), "progress": text_of(1024)}
DELAY = ([0, MONTH], [-1, MONTH + 1, 1.5, "1", HUGE])
VERBS = {
    "fail": {
        "error_code": (["", "x" * 100, None], ["x" * 101, ZERO, 5]),
        "permanent": ([True, False], [1, "true", None]),
    },
    "release": {"delay_seconds": ([*DELAY[0], None], DELAY[1])},
    "snooze": {"seconds": (DELAY[0], [*DELAY[1], None])},
    "cancel": {
        "mode": (["request", "force"], ["", "hard", 5, None]),
        "reason": (["", "x" * 500, None], ["x" * 501, ZERO, 5]),
    },
    "requeue": {"reset_attempts": ([True, False], [1, "true", None])},
}
NEEDED = {"snooze": {"seconds": 1}, "cancel": {"mode": "force"}}
HOLDERS = ("complete", "fail", "release", "snooze")


def cases(fields):
    return [pytest.param(name, *bounds, id=name) for name, bounds in fields.items()]


def assert_named(answer, field):
    body = refused(answer, 400, "invalid_request")
    assert {error["pointer"].removesuffix("/0") for error in body["errors"]} == {f"/{field}"}


@pytest.mark.parametrize(("field", "good", "bad"), cases(CREATE))
def test_the_bounds_of_a_create(account, field, good, bad):
    with nothing_changes(account):
        for value in bad:
            assert_named(account.create(**{field: value}), field)
    for value in good:
        done(account.create(**{field: value}), 201)


@pytest.mark.parametrize(("field", "good", "bad"), cases(CLAIM))
def test_the_bounds_of_a_claim(account, field, good, bad):
    pending(account)
    with nothing_changes(account):
        for value in bad:
            assert_named(account.post("/v1/tasks/claim", {field: value}), field)
    for value in good:
        body = done(account.post("/v1/tasks/claim", {field: value}))
        done(account.do("release", (body.get("tasks") or [body])[0]["id"]))


@pytest.mark.parametrize("name", ["no.dots", "", "x" * 101, "a b", "ü"])
def test_each_of_several_types_is_a_type(account, name):
    with nothing_changes(account):
        assert_named(account.post("/v1/tasks/claim", {"types": ["good", name]}), "type")


@pytest.mark.parametrize(("field", "good", "bad"), cases(LEFT))
def test_the_bounds_of_a_heartbeat(account, field, good, bad):
    mine = held(account)
    with nothing_changes(account):
        for value in bad:
            assert_named(account.do("heartbeat", mine["id"], **{field: value}), field)
    for value in good:
        done(account.do("heartbeat", mine["id"], **{field: value}))


@pytest.mark.parametrize("verb", HOLDERS)
def test_the_last_verb_of_a_holder_has_the_bounds_of_a_heartbeat(account, verb):
    mine = held(account)
    with nothing_changes(account):
        for field, (_, bad) in LEFT.items():
            for value in bad:
                assert_named(account.do(verb, mine["id"], **NEEDED.get(verb, {}), **{field: value}), field)
    done(account.do(verb, mine["id"], **NEEDED.get(verb, {}), **AT_THE_EDGE))


@pytest.mark.parametrize(
    ("verb", "field", "good", "bad"),
    [pytest.param(verb, name, *VERBS[verb][name], id=f"{verb}-{name}") for verb in VERBS for name in VERBS[verb]],
)
def test_the_bounds_of_a_verb(account, verb, field, good, bad):
    first = ready_for(account, verb)
    needed = NEEDED.get(verb, {})
    with nothing_changes(account):
        for value in bad:
            assert_named(account.do(verb, first["id"], **(needed | {field: value})), field)
    for value in good:
        done(account.do(verb, ready_for(account, verb)["id"], **(needed | {field: value})))


def ready_for(account, verb):
    """A task that this verb is about."""
    mine = held(account)
    return done(account.fail(mine["id"], permanent=True)) if verb == "requeue" else mine


def test_snooze_must_say_for_how_long(account):
    mine = held(account)
    with nothing_changes(account):
        assert_named(account.do("snooze", mine["id"]), "seconds")


@pytest.mark.parametrize(
    ("good", "bad"), [(["0", "0.01"], ["-1", "60.01", "61", "x", "", "1e1", "NaN"])], ids=["wait_seconds"]
)
def test_the_bounds_of_a_read_that_waits(account, good, bad):
    made = created(account.create())
    for value in good:
        done(account.read_task(f"{made['id']}?wait_seconds={value}"))
    for value in bad:
        assert_named(account.read_task(f"{made['id']}?wait_seconds={value}"), "wait_seconds")


def test_all_errors_of_a_request_are_reported_together(account):
    wrong = {"uniqueKey": "", "tag": "x" * 256, "backoff": policy(jitter=2)}
    body = refused(account.create(**wrong), 400, "invalid_request")
    assert {error["pointer"] for error in body["errors"]} == {"/uniqueKey", "/tag", "/backoff"}


def test_both_spellings_of_every_field_are_understood(account):
    made = done(account.create(unique_key="k", created_by="me", reviewed_by="you", on_duplicate="replace"), 201)
    assert (made["uniqueKey"], made["createdBy"], made["reviewedBy"]) == ("k", "me", "you")
    mine = claimed(account.claim(workerId="w", waitSeconds=1))
    proof = {"leaseId": mine["leaseId"], "fencingToken": mine["fencingToken"]}
    failed = done(account.do("fail", mine["id"], **proof, errorCode="E1", retryAfterSeconds=0))
    assert failed["previousAttempt"]["errorCode"] == "E1"
    mine = claimed(account.do("claim", mine["id"]))
    done(account.do("release", mine["id"], leaseId=mine["leaseId"], delaySeconds=0))
