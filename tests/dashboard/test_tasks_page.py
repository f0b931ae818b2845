"""Tasks page: filters in the address, one task in full, and actions."""

import json
import re
import uuid
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.dashboard import task_batches
from tests.dashboard.client import DashboardClient, text_of


@pytest.fixture
def kind():
    return "k" + uuid.uuid4().hex


@pytest.fixture
def client(server):
    return DashboardClient(server.port).sign_in()


@pytest.fixture
def reader(server, root):
    key = root.post("/v1/keys", {"name": "reader", "scopes": ["read"]}).json["apiKey"]
    return DashboardClient(server.port).sign_in(key)


def listed(client, **asked):
    status, _, page = client.get(f"/ui/tasks?{urlencode(asked)}")
    assert status == 200
    return text_of(page)


def test_the_filters_of_the_address_find_tasks(client, root, kind):
    plain, tagged, keyed = task_batches.make(root, kind, 3)[0], f"tag-{kind}", f"key-{kind}"
    make = {"type": kind, "payload": {}}
    (with_tag, with_key) = (
        root.post("/v1/tasks", make | more).json["id"] for more in ({"tag": tagged}, {"uniqueKey": keyed})
    )
    assert root.post(f"/v1/tasks/{plain}/claim", {"worker_id": f"w-{kind}"}).status == 200
    ids = (plain, with_tag, with_key)
    for asked, found in (
        ({"type": kind}, {plain, with_tag, with_key}),
        ({"type": kind, "state": "claimed"}, {plain}),
        ({"tag": tagged}, {with_tag}),
        ({"key": keyed}, {with_key}),
        ({"worker": f"w-{kind}"}, {plain}),
        ({"type": kind, "state": "completed"}, set()),
    ):
        page = listed(client, **asked)
        assert {task for task in ids if task in page} == found, asked


def test_states_are_tabs_with_counts_and_lists_are_paged(client, root, kind):
    made = task_batches.make(root, kind, 120)
    task_batches.claim(root, kind, 2)
    page = client.get(f"/ui/tasks?type={kind}")[2]
    tabs = " ".join(text_of(page[page.index('id="tabs"') : page.index("</nav>", page.index('id="tabs"'))]).split())
    assert "all 120" in tabs
    assert "pending 118" in tabs
    assert "claimed 2" in tabs
    seen, before = [], ""
    while True:
        page = client.get(f"/ui/tasks?{urlencode({'type': kind, **({'before': before} if before else {})})}")[2]
        found = [task for task in made if task in text_of(page)]
        seen += found
        if "Older tasks" not in page:
            break
        before = min(found)
    assert len(seen) == len(set(seen)) == 120


def test_a_task_is_shown_in_full_with_its_agent_contract(client, root, kind):
    task = root.post(
        "/v1/tasks",
        {"type": kind, "payload": {"page": 41}, "maxAttempts": 2, "priority": 7, "createdBy": "planner", "tag": "blue"},
    ).json["id"]
    for outcome in ("fail", "complete"):
        lease = root.post(f"/v1/tasks/{task}/claim", {"worker_id": f"{outcome}er"}).json["leaseId"]
        kept = {"note": "halfway there", "checkpoint": {"row": 99}}
        assert root.post(f"/v1/tasks/{task}/heartbeat", {"lease_id": lease, **kept}).status == 200
        page = " ".join(text_of(client.get(f"/ui/tasks/{task}")[2]).split())
        assert "halfway there" in page
        assert '"row": 99' in page
        contract = root.get(f"/v1/tasks/{task}").json["agent_contract"]
        assert all(f'"{step["action"]}"' in page for step in contract["next_actions"])
        details = (
            {"reason": "no page", "error_code": "E41", "retry_after_seconds": 0}
            if outcome == "fail"
            else {"result": {"words": 3}}
        )
        assert root.post(f"/v1/tasks/{task}/{outcome}", {"lease_id": lease, **details}).status == 200
    page = " ".join(text_of(client.get(f"/ui/tasks/{task}")[2]).split())
    for part in (
        "2 of 2 used",
        '"page": 41',
        '"words": 3',
        "by planner",
        "blue",
        "no page",
        "E41",
        "failer",
        "completeer",
    ):
        assert part in page, part
    shown = client.get(f"/ui/tasks/{task}")[2]
    contract = text_of(shown[shown.index('id="contract">') + 14 :].partition("</pre>")[0])
    assert json.loads(contract) == root.get(f"/v1/tasks/{task}").json["agent_contract"]


def test_a_task_lists_what_it_needs_and_what_needs_it(client, root, kind):
    def make(**more):
        return root.post("/v1/tasks", {"type": kind, "payload": {}, **more}).json["id"]

    first = make()
    second = make(dependsOn=[first], onDependencyFailure="cancel")
    third = make(dependsOn=[second])
    _, _, page = client.get(f"/ui/tasks/{second}")
    needs, _, needed_by = page.partition("Needed by")
    assert f'href="/ui/tasks/{first}"' in needs.partition("Depends on")[2]
    assert f'href="/ui/tasks/{third}"' in needed_by
    assert "this task is cancelled" in page
    assert "1 other task" in text_of(page)
    assert "Depends on" not in client.get(f"/ui/tasks/{first}")[2]


def test_long_json_is_cut_and_can_be_expanded(browse, root, kind):
    text = "word " * 2_000
    task = root.post("/v1/tasks", {"type": kind, "payload": {"text": text, "last": "the end"}}).json["id"]
    page = browse(path=f"/ui/tasks/{task}")
    expect(page.locator("#payload-text")).to_be_hidden()
    page.get_by_text("Show all").click()
    expect(page.locator("#payload-text")).to_contain_text("the end")


def test_tasks_are_requeued_resolved_and_cancelled_and_the_log_records_the_key(browse, root, kind):
    actor = root.get("/v1/account").json["key"]["keyId"]
    first, second = task_batches.kill(root, kind, 2)
    page = browse(path=f"/ui/tasks/{first}")
    page.get_by_role("button", name="Resolve").click()
    expect(page.get_by_text("The task stays a dead letter")).to_be_visible()
    page.get_by_role("button", name="Requeue").click()
    expect(page.get_by_text("The task is back in its queue.")).to_be_visible()
    page.locator("#cancel summary").click()
    page.get_by_label("Confirm").check()
    page.get_by_role("button", name="Cancel task").click()
    expect(page.get_by_text("The task is cancelled.")).to_be_visible()
    details = [(event["kind"], event["actor"]) for event in root.get(f"/v1/tasks/{first}/events").json["events"]]
    assert details[-3:] == [(f"task.{verb}", actor) for verb in ("resolved", "requeued", "cancelled")]
    assert root.get(f"/v1/tasks/{second}").json["status"] == "dead_letter"


def test_a_claimed_task_is_cancelled_by_request_or_by_force(client, root, kind):
    asked, ended = task_batches.make(root, kind, 2)
    leases = task_batches.claim(root, kind, 2)
    form = {"act": "cancel", "sure": "yes", "token": client.token()}
    assert client.post(f"/ui/tasks/{asked}", mode="request", **form)[1]["Location"].endswith("?done=requested")
    assert root.post(f"/v1/tasks/{asked}/heartbeat", {"lease_id": leases[asked]}).json["cancelRequested"]
    forced = client.post(f"/ui/tasks/{ended}", mode="force", reason="wrong branch", **form)
    assert forced[1]["Location"].endswith("?done=cancelled")
    assert root.post(f"/v1/tasks/{ended}/complete", {"lease_id": leases[ended]}).status == 409
    assert "Cancel reason\nwrong branch" in text_of(
        client.get(f"/ui/tasks/{ended}")[2].replace("</dt><dd", "</dt>\n<dd")
    )


def test_unconfirmed_invalid_and_foreign_forms_change_nothing(client, root, kind):
    (task,) = task_batches.make(root, kind, 1)
    token = client.token()
    for fields, status in (
        ({"act": "cancel"}, 400),
        ({"act": "cancel", "sure": "yes", "mode": "explode"}, 400),
        ({"act": "cancel", "sure": "yes", "mode": "force", "reason": "x" * 501}, 400),
        ({"act": "requeue"}, 409),
        ({"act": "explode"}, 404),
    ):
        assert client.post(f"/ui/tasks/{task}", token=token, **fields)[0] == status, fields
    assert client.post(f"/ui/tasks/{task}", token="0" * 64, act="cancel", sure="yes")[0] == 403
    sent = client.send(
        "POST", f"/ui/tasks/{task}", urlencode({"token": token, "act": "cancel", "sure": "yes"}),
        Content_Type="application/x-www-form-urlencoded", Origin="https://evil.example",
    )  # fmt: skip
    assert sent[0] == 403
    assert task_batches.states(root, kind) == {"pending": 1}


def test_a_read_only_key_sees_no_forms_and_may_not_act(reader, root, kind):
    (task,) = task_batches.kill(root, kind, 1)
    page = reader.get(f"/ui/tasks/{task}")[2]
    assert "boom" in page
    assert 'value="requeue"' not in page
    assert reader.post(f"/ui/tasks/{task}", token=reader.token(), act="requeue")[0] == 403
    assert task_batches.states(root, kind) == {"dead_letter": 1}


def test_a_task_of_another_account_is_not_found(server, root, kind):
    (task,) = task_batches.make(root, kind, 1)
    stranger = DashboardClient(server.port).sign_in(root.post("/v1/keys/register", {}).json["apiKey"])
    assert stranger.get(f"/ui/tasks/{task}")[0] == 404
    assert stranger.get("/ui/tasks/tsk_01AAAAAAAAAAAAAAAAAAAAAAAA")[0] == 404
    assert stranger.post(f"/ui/tasks/{task}", token=stranger.token(), act="cancel", sure="yes")[0] == 404
    assert "No tasks yet" in text_of(stranger.get("/ui/tasks")[2])
    assert "There are no dead letters" in text_of(stranger.get("/ui/dead-letters")[2])


def test_a_task_list_updates_and_works_by_keyboard(browse, root, kind):
    page = browse()
    page.wait_for_selector("#live-state[data-state=live]")
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page).to_have_url(re.compile("/ui/tasks$"))
    page.wait_for_selector("#live-state[data-state=live]")
    page.keyboard.press("/")
    page.keyboard.type(kind)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"q={kind}"))
    expect(page.get_by_text("No task matches this filter.")).to_be_visible()
    page.wait_for_selector("#live-state[data-state=live]")
    (task,) = task_batches.make(root, kind, 1)
    link = page.get_by_role("link", name=kind)
    expect(link).to_be_visible()  # by itself
    link.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(task))
    page.locator("#cancel summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("not needed")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The task is cancelled.")).to_be_visible()
    expect(page.locator("#facts")).to_contain_text("not needed")
