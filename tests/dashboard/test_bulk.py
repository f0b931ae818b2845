"""Bulk operations: they change exactly the counted tasks, on the server, in small batches."""

import re
import uuid

import pytest
from playwright.sync_api import expect

from tests.dashboard import task_batches
from tests.dashboard.client import DashboardClient, text_of
from tests.http.job_client import fresh
from tests.proof_size import sized
from tests.support import wait_until

THOUSANDS = sized(1_200, 5_000)


@pytest.fixture
def client(server):
    return DashboardClient(server.port).sign_in()


@pytest.fixture
def kind():
    return "k" + uuid.uuid4().hex


def confirmation_fields(client, verb, **asked):
    """The fields of the confirmation form, without the typed number."""
    query = "&".join(f"{name}={value}" for name, value in asked.items())
    status, _, page = client.get(f"/ui/bulk?verb={verb}&{query}")
    assert status == 200, text_of(page)
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
    return fields | {"act": "start"}


def begin(client, fields, typed=None):
    """(status, address of the progress page)"""
    status, headers, page = client.post("/ui/bulk", typed=fields["count"] if typed is None else typed, **fields)
    return status, headers["Location"] or text_of(page)


def final_text(client, address):
    """The text of the progress page when the operation has ended."""
    text = []

    def is_over():
        text[:] = [text_of(client.get(address)[2])]
        return "● running" not in text[0] and not re.search(r"\brunning\b", text[0])

    wait_until(is_over, 60)
    return " ".join(text[0].split())


def test_thousands_of_dead_letters_are_requeued(browse, root, kind):
    dead = task_batches.kill(root, kind, THOUSANDS, "upstream timed out after 30 s")
    page = browse(path=f"/ui/dead-letters?type={kind}")
    row = page.get_by_role("row", name="upstream timed out after <n> s")
    expect(row).to_contain_text(f"{THOUSANDS:,}")
    row.get_by_role("link", name="Requeue…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Requeue: {THOUSANDS:,} tasks")
    page.get_by_label(f"Type {THOUSANDS} to confirm").fill(str(THOUSANDS))
    page.get_by_role("button", name=f"Requeue {THOUSANDS:,} tasks").click()
    expect(page.locator("#progress")).to_contain_text(f"{THOUSANDS:,} requeued", timeout=60_000)  # without a reload
    expect(page.locator("#progress")).to_contain_text("finished")
    assert task_batches.states(root, kind) == {"pending": THOUSANDS}
    actor = root.get("/v1/account").json["key"]["keyId"]
    last = root.get(f"/v1/tasks/{dead[0]}/events").json["events"][-1]
    assert (last["kind"], last["actor"]) == ("task.requeued", actor)


def test_a_bulk_operation_acts_on_exactly_the_counted_tasks(client, root, kind):
    dead = task_batches.kill(root, kind, 5)
    fields = confirmation_fields(client, "requeue", state="dead_letter", type=kind)
    assert fields["count"] == "5"
    later = set(task_batches.kill(root, kind, 3))
    assert root.post(f"/v1/tasks/{dead[0]}/resolve", {}).status == 200  # changed since it was counted
    _, address = begin(client, fields)
    assert "4 requeued" in final_text(client, address)
    left = {task["id"] for task in root.get(f"/v1/tasks?type={kind}&status=dead_letter").json["tasks"]}
    assert left == later | {dead[0]}


@pytest.mark.parametrize("typed", ["", "4", "50", "five", "-5", "5.0", "\u0665"])
def test_a_wrong_confirmation_number_starts_nothing(client, root, kind, typed):
    task_batches.kill(root, kind, 5)
    fields = confirmation_fields(client, "requeue", state="dead_letter", type=kind)
    status, message = begin(client, fields, typed)
    assert (status, "type the number" in message) == (400, True)
    assert task_batches.states(root, kind) == {"dead_letter": 5}


def test_a_number_may_be_typed_as_it_is_shown(client, root, kind):
    task_batches.kill(root, kind, 2)
    fields = confirmation_fields(client, "resolve", state="dead_letter", type=kind)
    assert begin(client, fields, " 2 ")[0] == 303


def test_a_bulk_operation_continues_without_its_page_and_blocks_no_requests(client, root, kind):
    task_batches.make(root, kind, 2_000)
    fields = confirmation_fields(client, "cancel", state="pending", type=kind)
    _, address = begin(client, fields)
    other = fresh()
    assert root.claim(other).json["status"] == "claimed"  # between two batches
    wait_until(lambda: task_batches.states(root, kind) == {"cancelled": 2_000}, 60)
    assert "2,000 cancelled" in final_text(client, address)


def test_a_second_bulk_operation_with_the_same_filter_is_refused_until_the_first_is_stopped(client, root, kind):
    task_batches.make(root, kind, 4_000)
    fields = confirmation_fields(client, "cancel", state="pending", type=kind)
    _, address = begin(client, fields)
    status, message = begin(client, fields)
    token = {"token": fields["token"]}
    stopped = client.post(address.partition("?")[0], act="stop", **token)[0]
    assert (status, "let it finish, or stop it" in message, stopped) == (409, True, 303)
    text = final_text(client, address)
    assert "stopped" in text
    done = int(re.search(r"([\d,]+) cancelled", text)[1].replace(",", ""))
    assert 0 < done < 4_000
    assert task_batches.states(root, kind) == {"pending": 4_000 - done, "cancelled": done}
    again = confirmation_fields(client, "cancel", state="pending", type=kind)
    assert int(again["count"]) == 4_000 - done
    assert begin(client, again)[0] == 303  # what was stopped can be begun again
    wait_until(lambda: task_batches.states(root, kind) == {"cancelled": 4_000}, 60)


def test_a_bulk_operation_ends_when_its_key_is_revoked(server, root, kind):
    made = root.post("/v1/keys", {"name": "producer", "scopes": ["tasks"]}).json
    client = DashboardClient(server.port).sign_in(made["apiKey"])
    task_batches.make(root, kind, 4_000)
    _, address = begin(client, confirmation_fields(client, "cancel", state="pending", type=kind))
    assert root.delete(f"/v1/keys/{made['keyId']}").status == 200
    assert "may no longer change tasks" in final_text(DashboardClient(server.port).sign_in(), address)
    assert task_batches.states(root, kind)["pending"] > 0


def test_a_bulk_cancel_request_reaches_holders_and_skips_completed_tasks(client, root, kind):
    task_batches.make(root, kind, 3)
    leases = task_batches.claim(root, kind, 3, "busy")
    fields = confirmation_fields(client, "stop", state="claimed", type=kind, worker="busy")
    first, lease = next(iter(leases.items()))
    assert root.post(f"/v1/tasks/{first}/complete", {"lease_id": lease}).status == 200
    for task in list(leases)[1:]:  # a renewal is no change
        assert root.post(f"/v1/tasks/{task}/heartbeat", {"lease_id": leases[task]}).status == 200
    _, address = begin(client, fields)
    assert "2 requested to cancel" in final_text(client, address)
    assert root.get(f"/v1/tasks/{first}").json["status"] == "completed"
    assert all(root.get(f"/v1/tasks/{task}").json["cancelRequested"] for task in list(leases)[1:])


def test_a_refused_task_is_skipped_with_its_reason(client, root, kind):
    make = {"type": kind, "payload": {}, "maxAttempts": 1, "uniqueKey": kind}
    root.post("/v1/tasks", make)
    ((task, lease),) = task_batches.claim(root, kind, 1).items()
    root.post(f"/v1/tasks/{task}/fail", {"lease_id": lease, "reason": "boom"})
    root.post("/v1/tasks", make)  # its key has a new bearer
    _, address = begin(client, confirmation_fields(client, "requeue", state="dead_letter", type=kind))
    text = final_text(client, address)
    assert "0 requeued, 1 skipped" in text
    assert "another live task has the same unique key" in text


@pytest.mark.parametrize("asked", ["", "verb=requeue", "verb=requeue&state=pending", "verb=explode&state=pending"])
def test_an_operation_that_a_state_does_not_allow_is_refused(client, asked):
    assert client.get(f"/ui/bulk?{asked}")[0] == 400


def test_bulk_operations_of_another_account_are_hidden_and_cannot_be_stopped(server, client, root, kind):
    task_batches.make(root, kind, 1)
    _, address = begin(client, confirmation_fields(client, "cancel", state="pending", type=kind))
    final_text(client, address)
    foreign = root.post("/v1/keys/register", {}).json["apiKey"]
    stranger = DashboardClient(server.port).sign_in(foreign)
    assert stranger.get(address)[0] == 404
    assert stranger.post(address.partition("?")[0], act="stop", token=stranger.token())[0] == 404


def test_a_read_only_key_cannot_start_a_bulk_operation(server, client, root, kind):
    task_batches.kill(root, kind, 1)
    fields = confirmation_fields(client, "requeue", state="dead_letter", type=kind)
    key = root.post("/v1/keys", {"name": "reader", "scopes": ["read"]}).json["apiKey"]
    reader = DashboardClient(server.port).sign_in(key)
    assert "Requeue…" not in text_of(reader.get(f"/ui/dead-letters?type={kind}")[2])
    assert reader.get(f"/ui/bulk?verb=requeue&state=dead_letter&type={kind}")[0] == 403
    assert begin(reader, fields | {"token": reader.token()})[0] == 403
    assert begin(client, fields | {"token": "0" * 64})[0] == 403  # the form of another session
    assert task_batches.states(root, kind) == {"dead_letter": 1}
