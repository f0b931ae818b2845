"""Export of an account page by page; a deleted account leaves no data and affects no other."""

import json

import pytest

from tests.compat.orchestrion.states import held, pending
from tests.http.job_client import fresh, job_path
from tests.http.replies import done, refused, refused_as_problem
from tests.http.session_client import begin

pytest_plugins = ["tests.http.fresh_accounts"]


def exported(account, limit=3):
    """All records of all pages."""
    records, cursor = [], ""
    while cursor is not None:
        page = done(account.get(f"/v1/account/export?limit={limit}" + (f"&cursor={cursor}" if cursor else "")))
        assert len(page["records"]) <= limit
        assert page["hasMore"] == (page["nextCursor"] is not None)
        records += page["records"]
        cursor = page["nextCursor"]
    return records


def busy(account):
    """An account with one of everything: (task, lease id, session)."""
    task = held(account)
    pending(account)
    job = fresh()
    lease = done(account.post(f"{job_path(job)}/claim", {"owner": "me"}))
    session = begin(account)
    return task, lease, session


def own_id(account):
    return done(account.get("/v1/account"))["accountId"]


def test_everything_is_there_once_and_the_log_is_whole(account):
    busy(account)
    records = exported(account)
    kinds = [record["record"] for record in records]
    assert {"account", "principal", "task", "lease", "session", "event"} == set(kinds)
    assert kinds.count("task") == 2
    events = [record for record in records if record["record"] == "event"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    keys = [(record["record"], record.get("id"), record.get("seq")) for record in records]
    assert len(keys) == len(set(keys))
    assert {record["account"] for record in records} == {own_id(account)}


def test_payloads_are_whole_and_proofs_are_not_there(account):
    task, lease, session = busy(account)
    text = json.dumps(exported(account, limit=1000))
    for secret in (task["leaseId"], lease["lease_id"], session["secret"]):
        assert secret not in text
    mine = [record for record in exported(account) if record["record"] == "task" and record["id"] == task["id"]]
    assert mine[0]["payload"] == task["payload"]
    assert not {"proof", "secret", "key_hash", "old_key_hash"} & {
        name for record in exported(account) for name in record
    }


@pytest.mark.parametrize("cursor", ["x", "!!!!", "dGFza3M", "ZXZlbnRzCng", "bm90aGluZwo"])
def test_a_cursor_that_was_never_given_is_refused(account, cursor):
    refused(account.get(f"/v1/account/export?cursor={cursor}"), 400, "invalid_request")


def test_deleting_an_account_removes_its_data_and_affects_no_other(account, stranger, root):
    busy(account)
    busy(stranger)
    before = exported(stranger)
    name = own_id(account)
    gone = done(account.send_json("DELETE", "/v1/account", {"confirm": name}))
    assert gone["deleted"] is True
    refused_as_problem(account.get("/v1/account"), 401, "invalid_api_key")
    assert [record for record in exported(stranger) if record["record"] != "principal"] == [
        record for record in before if record["record"] != "principal"
    ]
    told = done(root.get(f"/v1/events?subject=account:{name}"))["events"]
    assert [event["kind"] for event in told] == ["account.deleted"]


def test_nobody_deletes_an_account_by_mistake(account, stranger):
    for confirm in ({}, {"confirm": ""}, {"confirm": own_id(stranger)}):
        refused(account.send_json("DELETE", "/v1/account", confirm), 400, "invalid_request")
    assert own_id(account)


def test_the_servers_own_account_stays(root):
    refused(root.send_json("DELETE", "/v1/account", {"confirm": "default"}), 403, "forbidden")
