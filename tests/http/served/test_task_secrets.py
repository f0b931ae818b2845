"""Lease ids and session secrets are returned once: no list, event, error or later answer contains them."""

import hashlib
from types import SimpleNamespace

import pytest

from tests.compat.orchestrion.states import pending
from tests.http.job_client import fresh, job_path
from tests.http.replies import done, events
from tests.http.session_client import beat, begin, close, path, write

pytest_plugins = ["tests.http.fresh_accounts"]


class Secrets(set):
    """Every secret that the account received, and the hash under which it is stored."""

    def collect(self, body, *names):
        for name in names:
            self.add(body[name])
            self.add(hashlib.sha256(body[name].encode()).hexdigest())
        return body

    def found_in(self, answer):
        text = answer.raw.decode() + str(answer.headers)
        return [secret for secret in self if secret in text]


@pytest.fixture
def used_account(account):
    """An account with tasks, a job and a resumed session, and the secrets that it received."""
    secrets = Secrets()
    secrets.collect({"key": account.token}, "key")
    life = secrets.collect(begin(account, context={"a": 1}), "lease_id", "secret")
    bound = {"session_id": life["session_id"]}
    tasks = [
        secrets.collect(done(account.do("claim", pending(account)["id"], worker_id="w", **fields)), "leaseId")
        for fields in (bound, {}, {})
    ]
    said = [("heartbeat", {"checkpoint": {"at": 1}, "note": "n", "progress": 1}), ("fail", {"reason": "r"})]
    said.append(("complete", {"result": {"n": 1}}))
    for task, (verb, fields) in zip(tasks, said, strict=True):
        done(account.do(verb, task["id"], lease_id=task["leaseId"], **fields))
    job = secrets.collect(done(account.post(job_path(fresh(), "/claim"), {"owner": "me", **bound})), "lease_id")
    again = secrets.collect(begin(account, status=200, secret=life["secret"]), "lease_id")
    secrets.collect(again["tasks"][0], "leaseId")
    secrets.collect(again["jobs"][0], "lease_id")
    return SimpleNamespace(account=account, secrets=secrets, life=life, again=again, tasks=tasks, job=job)


def paths_to_read(used_account):
    paths = ["/v1/tasks", "/v1/tasks?status=claimed", "/v1/tasks/counts", "/v1/sessions", "/v1/jobs", "/locks"]
    paths += ["/v1/events?limit=1000", f"/v1/jobs/{used_account.job['job_id']}", f"/locks/{used_account.job['job_id']}"]
    paths += [f"/v1/sessions/{used_account.life['session_id']}", f"/sessions/{used_account.life['session_id']}"]
    return paths + [
        f"/v1/tasks/{task['id']}{more}" for task in used_account.tasks for more in ("", "/events", "/attempts")
    ]


def test_no_read_contains_a_secret(used_account):
    for address in paths_to_read(used_account):
        answer = used_account.account.get(address)
        assert answer.status == 200, address
        assert not used_account.secrets.found_in(answer), address


def test_the_log_tells_everything_but_the_secrets(used_account):
    told = str(events(used_account.account))
    assert len(used_account.secrets) == 2 * 10
    assert not [secret for secret in used_account.secrets if secret in told]
    for kind in ("task.reissued", "lease.reissued", "session.resumed", "task.completed"):
        assert kind in told


def test_no_refusal_shows_a_secret(used_account):
    account, former = used_account.account, {"lease_id": used_account.life["lease_id"]}
    refusals = [
        *(
            account.do(verb, task["id"], lease_id=task["leaseId"])
            for verb in ("heartbeat", "complete", "release")
            for task in used_account.tasks[:2]
        ),
        account.do("claim", used_account.tasks[0]["id"]),
        account.do("cancel", used_account.tasks[0]["id"]),
        account.post(job_path(used_account.job["job_id"], "/heartbeat"), {"lease_id": used_account.job["lease_id"]}),
        account.post(path(used_account.life, "/heartbeat"), former),
        account.post(path(used_account.life, "/context"), {**former, "turn": 1}),
        account.send_json("DELETE", path(used_account.life), former),
        account.post("/v1/sessions", {"name": "me"}),
        account.post("/v1/sessions", {"name": "me", "secret": "wrong"}),
    ]
    for answer in refusals:
        assert answer.status == 409, str(answer)
        assert not used_account.secrets.found_in(answer), str(answer)


def test_no_success_shows_a_secret_again(used_account):
    """A heartbeat of the session, of a task or of a job shows nothing that its caller did not just send."""
    account = used_account.account
    answers = [
        beat(account, used_account.again),
        write(account, used_account.again, turn=2),
        account.do("heartbeat", used_account.tasks[0]["id"], lease_id=used_account.again["tasks"][0]["leaseId"]),
        account.do("cancel", used_account.tasks[0]["id"], mode="request"),
        account.post(job_path(used_account.job["job_id"], "/claim"), {"owner": "another"}),
        account.post("/v1/recover"),
        close(account, used_account.again),
    ]
    for answer in answers:
        done(answer)
        assert not used_account.secrets.found_in(answer), str(answer)


def test_a_secret_that_was_sent_wrongly_is_not_repeated(account):
    begin(account)
    for secret in ("guess-" + "x" * 20, "guess-" + "x" * 300, ["guess-x"]):
        assert "guess-" not in account.post("/v1/sessions", {"name": "me", "secret": secret}).raw.decode()
    assert "guess-" not in account.do("complete", "tsk_no", lease_id="guess-" + "x" * 300).raw.decode()
