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
    """Everything that the account was shown once, also as it is kept: by its hash."""

    def heard(self, body, *names):
        for name in names:
            self.add(body[name])
            self.add(hashlib.sha256(body[name].encode()).hexdigest())
        return body

    def in_(self, answer):
        text = answer.raw.decode() + str(answer.headers)
        return [secret for secret in self if secret in text]


@pytest.fixture
def day(account):
    """An account that has used everything, what it was shown, and the ids of it all."""
    secrets = Secrets()
    secrets.heard({"key": account.token}, "key")
    life = secrets.heard(begin(account, context={"a": 1}), "lease_id", "secret")
    bound = {"session_id": life["session_id"]}
    tasks = [
        secrets.heard(done(account.do("claim", pending(account)["id"], worker_id="w", **fields)), "leaseId")
        for fields in (bound, {}, {})
    ]
    said = [("heartbeat", {"checkpoint": {"at": 1}, "note": "n", "progress": 1}), ("fail", {"reason": "r"})]
    said.append(("complete", {"result": {"n": 1}}))
    for task, (verb, fields) in zip(tasks, said, strict=True):
        done(account.do(verb, task["id"], lease_id=task["leaseId"], **fields))
    job = secrets.heard(done(account.post(job_path(fresh(), "/claim"), {"owner": "me", **bound})), "lease_id")
    again = secrets.heard(begin(account, status=200, secret=life["secret"]), "lease_id")
    secrets.heard(again["tasks"][0], "leaseId")
    secrets.heard(again["jobs"][0], "lease_id")
    return SimpleNamespace(account=account, secrets=secrets, life=life, again=again, tasks=tasks, job=job)


def looks(day):
    paths = ["/v1/tasks", "/v1/tasks?status=claimed", "/v1/tasks/counts", "/v1/sessions", "/v1/jobs", "/locks"]
    paths += ["/v1/events?limit=1000", f"/v1/jobs/{day.job['job_id']}", f"/locks/{day.job['job_id']}"]
    paths += [f"/v1/sessions/{day.life['session_id']}", f"/sessions/{day.life['session_id']}"]
    return paths + [f"/v1/tasks/{task['id']}{more}" for task in day.tasks for more in ("", "/events", "/attempts")]


def test_no_read_contains_a_secret(day):
    for address in looks(day):
        answer = day.account.get(address)
        assert answer.status == 200, address
        assert not day.secrets.in_(answer), address


def test_the_log_tells_everything_but_the_secrets(day):
    told = str(events(day.account))
    assert len(day.secrets) == 2 * 10
    assert not [secret for secret in day.secrets if secret in told]
    for kind in ("task.reissued", "lease.reissued", "session.resumed", "task.completed"):
        assert kind in told


def test_no_refusal_shows_a_secret(day):
    account, former = day.account, {"lease_id": day.life["lease_id"]}
    refusals = [
        *(
            account.do(verb, task["id"], lease_id=task["leaseId"])
            for verb in ("heartbeat", "complete", "release")
            for task in day.tasks[:2]
        ),
        account.do("claim", day.tasks[0]["id"]),
        account.do("cancel", day.tasks[0]["id"]),
        account.post(job_path(day.job["job_id"], "/heartbeat"), {"lease_id": day.job["lease_id"]}),
        account.post(path(day.life, "/heartbeat"), former),
        account.post(path(day.life, "/context"), {**former, "turn": 1}),
        account.send_json("DELETE", path(day.life), former),
        account.post("/v1/sessions", {"name": "me"}),
        account.post("/v1/sessions", {"name": "me", "secret": "wrong"}),
    ]
    for answer in refusals:
        assert answer.status == 409, str(answer)
        assert not day.secrets.in_(answer), str(answer)


def test_no_success_shows_a_secret_again(day):
    """A heartbeat of the session, of a task or of a job shows nothing that its caller did not just send."""
    account = day.account
    answers = [
        beat(account, day.again),
        write(account, day.again, turn=2),
        account.do("heartbeat", day.tasks[0]["id"], lease_id=day.again["tasks"][0]["leaseId"]),
        account.do("cancel", day.tasks[0]["id"], mode="request"),
        account.post(job_path(day.job["job_id"], "/claim"), {"owner": "another"}),
        account.post("/v1/recover"),
        close(account, day.again),
    ]
    for answer in answers:
        done(answer)
        assert not day.secrets.in_(answer), str(answer)


def test_a_secret_that_was_sent_wrongly_is_not_repeated(account):
    begin(account)
    for secret in ("guess-" + "x" * 20, "guess-" + "x" * 300, ["guess-x"]):
        assert "guess-" not in account.post("/v1/sessions", {"name": "me", "secret": secret}).raw.decode()
    assert "guess-" not in account.do("complete", "tsk_no", lease_id="guess-" + "x" * 300).raw.decode()
