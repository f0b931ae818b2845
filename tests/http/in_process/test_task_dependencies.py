"""Dependencies over HTTP: by id, unique key or ref; what a claim shows of them; both directions listed in pages."""

import json

from tests.compat.orchestrion.expect import claimed, task
from tests.compat.orchestrion.states import pending
from tests.http.replies import done, refused

KB = 1024


def new(answer):
    return done(answer, 201)


def repeated(account, path, body):
    """The answers to a request that is sent twice under one key."""
    text = json.dumps(body).encode()
    headers = {"Content_Type": "application/json", "Idempotency_Key": "same"}
    return [done(account.send("POST", path, text, **headers)) for _ in range(2)]


def batch(account, *items, **more):
    body = {"items": [{"op": "create", "type": "step", "payload": {}} | item for item in items]} | more
    return account.post("/v1/tasks/batch", body)


def finish(account, task_id, result=None):
    held = claimed(account.do("claim", task_id))
    return task(account.complete(task_id, lease_id=held["leaseId"], result=result or {"of": task_id}))


def dependencies(account, task_id, query=""):
    return done(account.get(f"/v1/tasks/{task_id}/dependencies{query}"))


def test_a_task_waits_and_says_for_what(account):
    first, second = pending(account, uniqueKey="build"), pending(account)
    made = new(account.create(dependsOn=["build", second["id"]], onDependencyFailure="cancel"))
    assert made["dependsOn"] == [first["id"], second["id"]]
    shown = {name: made[name] for name in ("status", "waitingFor", "unmetDependencies", "onDependencyFailure")}
    assert shown == {
        "status": "pending", "waitingFor": "dependencies", "unmetDependencies": 2, "onDependencyFailure": "cancel"
    }  # fmt: skip
    assert made["agent_contract"]["next_actions"][0]["action"] == "task_dependencies"
    refused(account.do("claim", made["id"]), 409, "not_yet_claimable")
    listed = done(account.list("waiting=dependencies"))["tasks"]
    assert [each["id"] for each in listed] == [made["id"]]


def test_a_task_without_dependencies_shows_nothing_of_them(account):
    made = pending(account)
    assert made.keys().isdisjoint({"dependsOn", "unmetDependencies", "onDependencyFailure", "waitingFor"})
    assert "dependencies" not in claimed(account.do("claim", made["id"]))


def test_an_unknown_dependency_is_named_and_nothing_is_created(account):
    known = pending(account)
    body = refused(account.create(dependsOn=[known["id"], "tsk_nope"]), 400, "invalid_request")
    assert "tsk_nope" in body["message"]
    assert [each["id"] for each in done(account.list())["tasks"]] == [known["id"]]


def test_a_claim_shows_the_results_of_what_the_task_depends_on(account):
    first, second = pending(account), pending(account)
    made = new(account.create(dependsOn=[second["id"], first["id"]], onDependencyFailure="run"))
    finish(account, first["id"], {"n": 1})
    account.do("cancel", second["id"])
    by_id = claimed(account.do("claim", made["id"]))
    wanted = [
        {"id": second["id"], "status": "cancelled", "result": None},
        {"id": first["id"], "status": "completed", "result": {"n": 1}},
    ]
    assert by_id["dependencies"] == by_id["task"]["dependencies"] == wanted
    account.do("release", made["id"], lease_id=by_id["leaseId"])
    several = repeated(account, "/v1/tasks/claim", {"limit": 2, "types": [made["type"]]})
    assert [each["tasks"][0]["dependencies"] for each in several] == [wanted, wanted]


def test_results_that_are_too_large_together_are_left_out_and_marked(account):
    needed = [pending(account)["id"] for _ in range(3)]
    for task_id, size in zip(needed, (40 * KB, 30 * KB, 20 * KB), strict=True):
        finish(account, task_id, {"text": "x" * size})
    made = new(account.create(dependsOn=needed))
    shown = claimed(account.do("claim", made["id"]))["dependencies"]
    assert [each["result"] is None for each in shown] == [False, True, False]
    assert [each.get("resultOmitted") for each in shown] == [None, True, None]


def test_both_directions_are_listed_dependents_in_pages(account):
    first = pending(account)
    made = [new(account.create(dependsOn=[first["id"]])) for _ in range(3)]
    page = dependencies(account, first["id"], "?limit=2")
    assert [each["id"] for each in page["dependents"]] == [each["id"] for each in made[:2]]
    assert page["dependents"][0] == {
        "id": made[0]["id"], "type": made[0]["type"], "status": "pending", "waitingFor": "dependencies"
    }  # fmt: skip
    rest = dependencies(account, first["id"], f"?limit=2&cursor={page['nextCursor']}")
    assert ([each["id"] for each in rest["dependents"]], rest["hasMore"]) == ([made[2]["id"]], False)
    needs = dependencies(account, made[0]["id"])["dependsOn"]
    assert needs == [{"id": first["id"], "type": first["type"], "status": "pending", "met": False}]
    finish(account, first["id"])
    assert dependencies(account, made[0]["id"])["dependsOn"][0]["met"]
    refused(account.get("/v1/tasks/tsk_nope/dependencies"), 404, "task_not_found")


def test_a_batch_with_refs_is_a_plan_created_whole(account):
    items = [{"ref": "test", "dependsOn": ["build"]}, {"ref": "build"}, {"dependsOn": ["test", "build"]}]
    answer = done(batch(account, *items, full=True))
    made = [each["task"] for each in answer["results"]]
    assert (answer["succeeded"], [each["status"] for each in answer["results"]]) == (3, [201] * 3)
    assert [each.get("dependsOn") for each in made] == [[made[1]["id"]], None, [made[0]["id"], made[1]["id"]]]


def test_a_plan_with_an_error_is_refused_as_a_whole(account):
    wrong = {
        "/items/0/dependsOn": [{"ref": "a", "dependsOn": ["b"]}, {"ref": "b", "dependsOn": ["a"]}],
        "/items/1/dependsOn/0": [{"ref": "a"}, {"dependsOn": ["tsk_nope"]}],
        "/items/1/ref": [{"ref": "a"}, {"ref": "a"}],
        "/items/0/ref": [{"ref": ""}, {}],
        "/items/1/payload": [{"ref": "a"}, {"payload": "text"}],
        "/items/1/op": [{"ref": "a"}, {"op": "cancel", "id": "tsk_nope"}],
    }
    for pointer, items in wrong.items():
        answer = batch(account, *items)
        errors = refused(answer, 400, "invalid_request")["errors"]
        assert [error["pointer"] for error in errors] == [pointer]
    assert done(account.list())["tasks"] == []


def test_a_repeated_plan_has_one_effect(account):
    items = [{"ref": "a"}, {"dependsOn": ["a"]}]
    body = {"items": [{"op": "create", "type": "step", "payload": {}} | item for item in items]}
    first, again = repeated(account, "/v1/tasks/batch", body)
    assert first["results"] == again["results"]
    assert len(done(account.list())["tasks"]) == 2
