"""Every route that returns a secret: it is shown once, not logged, and stored only as a hash."""

import hashlib
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.core.event import Event
from tests.compat.octostore.server import ADMIN_KEY, OPEN_TO_TESTS
from tests.compat.orchestrion.account import Account
from tests.faults.program import Program
from tests.faults.test_first_key import everything
from tests.http.job_client import ROOT_KEY, fresh, job_path
from tests.store_inspection import opened
from tests.support import every

LISTED = {"carol": "carol-s-listed-token-of-the-secrets", "dave": "dave-s-listed-token-of-the-secrets"}
ON_A_LIST = "a-token-on-the-access-list-of-a-lock"
KEYS = {"apiKey", "token"}
PROOFS = {"leaseId", "lease_id", "secret", "leader_token"}


@dataclass(frozen=True)
class RecordingCaller(Account):
    """A caller that records every answer."""

    exchanges: list[Any] = field(default_factory=list, repr=False)

    def send(self, method, path, body=None, **headers):
        answer = super().send(method, path, body, **headers)
        self.exchanges.append((method, path, answer))
        return answer

    def by(self, token):
        return RecordingCaller(self.port, {"Authorization": f"Bearer {token}"}, token=token, exchanges=self.exchanges)


def values_of(document, names):
    """The strings under these field names, at any depth."""
    if isinstance(document, list):
        return {found for entry in document for found in values_of(entry, names)}
    if not isinstance(document, dict):
        return set()
    here = {value for name, value in document.items() if name in names and isinstance(value, str)}
    return here | {found for value in document.values() for found in values_of(value, names)}


@pytest.fixture(scope="module")
def recordings(request, tmp_path_factory):
    """Record a run of all operations on each store. The server has stopped afterwards, so all data is written."""
    recorded = {}

    def recording(store):
        if store not in recorded:
            url = f"sqlite:///{tmp_path_factory.mktemp('secrets')}/x.db"
            if store == "postgres":
                url = request.getfixturevalue("new_postgres_database")()
            recorded[store] = record(url)
        return recorded[store]

    return recording


@pytest.fixture
def recording(recordings, store):
    return recordings(store)


def record(url):
    listed = ",".join(f"{name}:{token}" for name, token in LISTED.items())
    configured = {"STATIC_TOKENS": listed, "ROOT_KEY": ROOT_KEY, "ADMIN_KEY": ADMIN_KEY}
    server = Program(url, **configured, **OPEN_TO_TESTS).start()
    anyone = RecordingCaller(server.port)
    try:
        use_account(anyone)
        use_server_account(anyone)
        use_locks_and_elections(anyone)
        use_invalid_keys(anyone)
        read_system_routes(anyone)
        server.stop()
        server.output.seek(0)
        log = server.output.read().decode()
    finally:
        server.close()
    good = [answer.json for _, _, answer in anyone.exchanges if answer.status < 300 and answer.raw]
    keys = {found for document in good for found in values_of(document, KEYS)} | {*LISTED.values(), ROOT_KEY, ADMIN_KEY}
    proofs = {found for document in good for found in values_of(document, PROOFS)} | {ON_A_LIST}
    return SimpleNamespace(url=url, exchanges=anyone.exchanges, log=log, keys=keys, proofs=proofs)


def use_account(anyone):
    """Create, rotate, expire and revoke keys of an account, and use them."""
    boss = anyone.by(anyone.post("/v1/keys/register").json["apiKey"])
    made = [
        boss.post("/v1/keys", {"name": "ci", "scopes": scopes, **more}).json
        for scopes, more in ((["jobs", "tasks"], {}), (["admin"], {"test": True}), (["read"], {"expiresInSeconds": 1}))
    ]
    worker, tester, reader = (boss.by(key["apiKey"]) for key in made)
    tester.post("/v1/keys/rotate", {"graceSeconds": 60})
    worker = boss.by(worker.post("/v1/keys/rotate", {"graceSeconds": 0}).json["apiKey"])
    worker = boss.by(boss.post(f"/v1/keys/{made[0]['keyId']}/rotate").json["apiKey"])
    use_leases(worker)
    worker.post("/v1/keys", {"name": worker.token, "scopes": ["admin"]})
    boss.delete(f"/v1/keys/{made[1]['keyId']}")
    for late in (tester, boss.by(made[0]["apiKey"])):
        late.get("/v1/tasks")
    for path in ("/v1/keys", f"/v1/keys/{made[0]['keyId']}", "/v1/account", "/v1/events?limit=1000", "/v1/sessions"):
        boss.get(path)
    export_account(boss)
    boss.post("/v1/keys", {"name": "x", "scopes": [boss.token], "prefix": boss.token * 9})
    boss.post("/v1/keys", {"name": boss.token, "scopes": ["jobs"], "expiresInSeconds": "soon"})
    boss.post("/v1/keys/rotate", {"graceSeconds": -1})
    boss.get(f"/v1/keys/{worker.token}")
    boss.get(f"/v1/tasks?api_key={boss.token}")
    boss.get(f"/v1/tasks?cursor={boss.token}")
    time.sleep(1.05)
    reader.get("/v1/tasks")


def export_account(caller):
    """Read all pages of the export of an account."""
    cursor = ""
    while cursor is not None:
        cursor = caller.get(f"/v1/account/export?limit=1000{cursor and '&cursor='}{cursor}").json["nextCursor"]


def use_leases(worker):
    """Claim, renew and end leases of tasks, jobs and sessions."""
    life = worker.post("/v1/sessions", {"name": "me"}).json
    bound = {"session_id": life["session_id"]}
    tasks = [worker.create().json["id"] for _ in range(3)]
    first = worker.do("claim", tasks[0], **bound).json
    second = worker.claim().json
    job = fresh()
    lease = worker.post(job_path(job, "/claim"), {"owner": "me", **bound}).json["lease_id"]
    worker.do("heartbeat", tasks[0], lease_id=first["leaseId"])
    worker.do("complete", tasks[0], lease_id=second["leaseId"])
    worker.post(job_path(job, "/heartbeat"), {"lease_id": first["leaseId"]})
    worker.post(job_path(job, "/release"), {"lease_id": lease})
    worker.post(job_path(job, "/heartbeat"), {"lease_id": lease})
    worker.post("/v1/sessions", {"name": "me", "secret": lease})
    worker.post("/v1/sessions", {"name": "me", "secret": life["secret"]})
    worker.post(f"/v1/sessions/{life['session_id']}/heartbeat", {"lease_id": life["lease_id"]})
    items = [{"op": "complete", "id": task, "lease_id": life["lease_id"]} for task in tasks]
    worker.post("/v1/tasks/batch", {"items": items})
    for task in tasks:
        for more in ("", "/events", "/attempts"):
            worker.get(f"/v1/tasks/{task}{more}")


def use_server_account(anyone):
    """Use the server's own account, whose keys are configured."""
    root, admin = anyone.by(ROOT_KEY), anyone.with_headers(X_Admin_Key=ADMIN_KEY)
    for caller in (root, admin):
        caller.post("/v1/keys/rotate")
        caller.post("/v1/keys", {"name": "made", "scopes": ["jobs"]})
        for path in ("/v1/keys", "/v1/account", "/v1/events?limit=1000", "/locks", "/status"):
            caller.get(path)
    export_account(admin)
    carol = anyone.by(LISTED["carol"])
    carol = anyone.by(carol.post("/auth/token/rotate").json["token"])
    anyone.by(carol.post("/auth/token/rotate").json["token"]).get("/locks")
    anyone.by(LISTED["carol"]).post("/auth/token/rotate")
    export_account(root)
    admin.post("/auth/token/rotate")
    anyone.by(ADMIN_KEY).get("/locks")
    anyone.with_headers(X_Admin_Key=ROOT_KEY).get("/locks")


def use_locks_and_elections(anyone):
    """Use locks and elections."""
    dave, lock = anyone.by(LISTED["dave"]), fresh("lock")
    lease = dave.acquire(lock, metadata="mine", acl={"acquire": ["user:dave", f"token:{ON_A_LIST}"]}).json["lease_id"]
    dave.acquire(lock)
    anyone.by(ROOT_KEY).acquire(lock)
    anyone.by(ROOT_KEY).renew(lock, lease)
    dave.read_lock(lock)
    dave.renew(lock, lease)
    export_account(anyone.by(ROOT_KEY))
    dave.release(lock, lease)
    dave.release(lock, lease)
    room = fresh("room")
    leads = anyone.campaign(room).json
    anyone.campaign(room, "another")
    anyone.get(f"/elections/{room}")
    anyone.renew_leadership(room, leads["leader_token"])
    anyone.resign(room, "0" * len(leads["leader_token"]))


def use_invalid_keys(anyone):
    """Send invalid keys, also in paths, queries and bodies."""
    guess = "hf_live_" + "0" * 39
    for token in (guess, LISTED["dave"] + "x", "canary-of-a-stranger " * 3):
        caller = anyone.by(token)
        for path in ("/v1/tasks", "/v1/keys", "/locks", "/sessions/" + token):
            caller.get(path.replace(" ", "%20"))
        caller.post("/v1/keys", {"name": token, "scopes": ["jobs"]})
    anyone.get(f"/v1/tasks?access_token={LISTED['dave']}")
    anyone.get(f"/v1/jobs?prefix={guess}")
    anyone.post("/auth/register", {"username": "eve"})
    anyone.send("POST", "/v1/keys/register", b"{" + LISTED["dave"].encode())


def read_system_routes(anyone):
    for path in ("/", "/health", "/status", "/version", "/readyz"):
        anyone.get(path)


# -- tests of the recording --------------------------------------------------------------------------------------


def hashes(secrets):
    return {hashlib.sha256(secret.encode()).hexdigest() for secret in secrets}


def test_the_recording_has_enough_secrets_and_every_status(recording):
    assert len(recording.keys) >= 14
    assert len(recording.proofs) >= 8
    statuses = [answer.status for _, _, answer in recording.exchanges]
    for status in (200, 201, 400, 401, 403, 404, 409):
        assert status in statuses, status
    assert 500 not in statuses


def test_a_key_is_shown_once(recording):
    given = recording.keys - {*LISTED.values(), ROOT_KEY, ADMIN_KEY}
    for key in given:
        shown = [path for _, path, answer in recording.exchanges if key.encode() in answer.raw]
        assert len(shown) == 1, shown
    configured = [secret for secret in (*LISTED.values(), ROOT_KEY, ADMIN_KEY) if any(
        secret.encode() in answer.raw for _, _, answer in recording.exchanges)]  # fmt: skip
    assert configured == []


def test_no_read_and_no_refusal_contains_a_secret(recording):
    for method, path, answer in recording.exchanges:
        if method == "GET" or answer.status >= 400:
            told = answer.raw.decode() + str(answer.headers)
            assert not [secret for secret in recording.keys | recording.proofs if secret in told], (
                method,
                path,
                str(answer),
            )


def test_no_answer_contains_the_hash_of_a_secret(recording):
    kept = hashes(recording.keys | recording.proofs)
    for method, path, answer in recording.exchanges:
        assert not [digest for digest in kept if digest in answer.raw.decode()], (method, path)


def test_an_invalid_key_is_not_repeated_in_any_answer(recording):
    for _, path, answer in recording.exchanges:
        assert b"canary-of-a-stranger" not in answer.raw, path


def test_no_event_tells_a_secret(recording):
    with opened(recording.url) as store:
        told = "".join(str(event) for event in every(store, Event))
    for kind in ("principal.created", "principal.rotated", "principal.revoked", "task.claimed", "session.resumed"):
        assert kind in told
    assert not [secret for secret in recording.keys | recording.proofs | hashes(recording.keys) if secret in told]


def test_the_server_s_own_log_tells_no_secret(recording):
    assert "Holdfast is listening" in recording.log
    assert "traceback" not in recording.log.lower()
    assert not [secret for secret in recording.keys | recording.proofs if secret in recording.log]
    assert "canary-of-a-stranger" not in recording.log


def test_secrets_are_stored_only_as_hashes(recording):
    kept = everything(recording.url)
    digests = hashes(recording.keys)
    assert [digest for digest in digests if digest.encode() in kept]
    assert not [secret for secret in recording.keys | recording.proofs if secret.encode() in kept]
