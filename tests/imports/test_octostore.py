"""The database of an OctoStore server is taken over: its clients go on as if nothing had happened."""

import os
import shutil
import sqlite3
from datetime import datetime
from pathlib import Path

import pytest

from holdfast.app import sync_credentials
from holdfast.core.acl import hash_token
from holdfast.core.imports.octostore_records import Records
from holdfast.core.lease import Lease
from holdfast.core.principal import Principal
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.core.webhooks.webhook import Webhook, octostore_event, wants_lock_event
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.importing import ImportOctostore
from holdfast.imports.octostore_file import UnreadableFile, read_octostore
from holdfast.settings import load
from holdfast.transport.http.octostore.bodies import pseudonym
from holdfast.transport.http.octostore.elections import leader_token
from holdfast.transport.webhooks.messages import grant_of
from tests.compat.octostore.expect import acquired, delayed, held, leads, refused, released, success
from tests.compat.octostore.server import bearer
from tests.imports.conftest import ALICE, BOB
from tests.imports.octostore_database import Database
from tests.support import ACCOUNT, CAUSE, acquire, check_log, every, make_store, run

REAL_FILE = os.environ.get("OCTOSTORE_FILE", "")
"""A file that a real OctoStore server wrote."""
COUNTS = {
    "users": 2, "sessions": 1, "locks": 4, "elections": 1, "delays": 2, "access_lists": 2, "webhooks": 2,
    "sessions_expired": 1, "locks_expired": 2,
}  # fmt: skip


def take(store, file: Path | Records, **options):
    records = read_octostore(file) if isinstance(file, Path) else file
    with store.read() as reader:
        existing = tuple(row.id for row in reader.principals(ACCOUNT))
    return run(store, ImportOctostore(account=ACCOUNT, cause=CAUSE, records=records, existing=existing, **options))


def contents(store):
    """Everything that an import could change."""
    with store.read() as reader:
        return [every(store, kind) for kind in (Principal, Session, Lease, Webhook)], reader.next_token()


# -- what goes on ----------------------------------------------------------------------------------------------------


def test_everything_is_taken_over(store, full):
    outcome = take(store, full.path)
    assert (outcome.applied, outcome.refused) == (True, ())
    assert outcome.counts == COUNTS
    check_log(store)
    with store.read() as reader:
        assert reader.next_token() == 1_001


def test_holders_go_on_with_their_token_and_lease(store, full, serve):
    take(store, full.path)
    server = serve(store)
    alice, bob = bearer(server.port, ALICE), bearer(server.port, BOB)
    status = success(bearer(server.port, ALICE).read_lock("deploy/web"))
    assert (status["status"], status["fencing_token"]) == ("held", 7)
    assert (status["metadata"], status["holder_id"]) == ('{"branch":"fix"}', pseudonym(full.alice))
    assert acquired(bob.acquire("team.new"))["fencing_token"] > 1_000
    refused(bob.acquire("deploy/web"), 403, "forbidden")
    held(server.anyone.with_headers(X_Admin_Key="the-admin-key-of-the-wire-tests").acquire("deploy/web"))
    assert success(alice.renew("deploy/web", full.deploy, ttl_seconds=90))["lease_id"] == full.deploy
    refused(bob.renew("team.delayed", full.deploy), 400, "lease_not_current")
    released(alice.release("deploy/web", full.deploy))
    assert acquired(alice.acquire("deploy/web"))["fencing_token"] > 1_000
    released(bob.release("team.delayed", full.delayed))
    assert delayed(bob.acquire("team.delayed"))["lock_delay_seconds"] == 15


def test_acquiring_an_imported_lock_again_keeps_its_token(memory, full, serve):
    take(memory, full.path)
    alice = bearer(serve(memory).port, ALICE)
    lease = acquired(alice.acquire("deploy/web"))
    assert lease["fencing_token"] == 7
    success(alice.renew("deploy/web", lease["lease_id"]))


def test_sessions_end_with_what_they_hold(memory, full, serve):
    take(memory, full.path)
    alice = bearer(serve(memory).port, ALICE)
    assert success(alice.get(f"/sessions/{full.session}"))["user_id"] == full.alice
    success(alice.keep_alive(full.session))
    success(alice.renew("by-session", full.held_by_session))
    assert alice.delete(f"/sessions/{full.session}").status == 204
    assert success(alice.read_lock("by-session"))["status"] == "free"
    assert success(alice.read_lock("deploy/web"))["status"] == "held"


def test_a_leader_goes_on(memory, full, serve):
    take(memory, full.path)
    anyone = serve(memory).anyone
    leader = success(anyone.get("/elections/some-room"))["leader"]
    assert {name: leader[name] for name in ("candidate_id", "metadata", "term")} == {
        "candidate_id": "n1", "metadata": "x", "term": 11,
    }  # fmt: skip
    leads(anyone.renew_leadership("some-room", leader_token(full.leader, full.election)))
    success(anyone.resign("some-room", leader_token(full.leader, full.election)))


def test_delays_and_access_lists_hold(memory, full, clock, serve):
    take(memory, full.path)
    port = serve(memory).port
    alice, bob = bearer(port, ALICE), bearer(port, BOB)
    with memory.read() as reader:
        rows = {name: reader.row(Lease, ACCOUNT, name) for name in ("cooling", "just-over", "over")}
    assert rows["cooling"].available_at == clock.now + 20 * SECOND
    assert rows["just-over"].available_at == clock.now + 20 * SECOND
    assert rows["over"] is None
    assert alice.acquire("cooling").json["lock_delay_seconds"] == 25
    assert alice.acquire("just-over").json["lock_delay_seconds"] == 30
    clock.advance(20)
    assert alice.acquire("cooling").json["status"] == "acquired"
    refused(alice.acquire("reserved"), 403, "forbidden")
    assert success(alice.read_lock("guarded"))["acl"] == {"acquire": ["token:[redacted]", "user:alice"]}
    refused(bob.acquire("guarded"), 403, "forbidden")


def test_webhooks_report_what_happens_after_the_import(memory, full, serve):
    take(memory, full.path)
    alice = bearer(serve(memory).port, ALICE)
    (hook,) = alice.get("/webhooks").json
    assert (hook["id"], hook["secret"], hook["lock_pattern"]) == (full.webhook, "****", "deploy*")
    released(alice.release("deploy/web", full.deploy))
    with memory.read() as reader:
        row = reader.row(Webhook, ACCOUNT, full.webhook)
        events = reader.events(ACCOUNT, 0, 1_000)
        created = next(event.seq for event in events if event.subject == f"webhook:{full.webhook}")
        wanted = [
            event for event in events
            if event.seq > created and octostore_event(event) and wants_lock_event(row, event, grant_of(event, reader))
        ]  # fmt: skip
    assert row.secret == "webhook-secret"
    assert [event.kind for event in wanted] == ["lease.released"]


def test_tokens_and_lease_ids_are_stored_only_as_hashes(full, tmp_path, clock):
    folder = tmp_path / "store"
    folder.mkdir()
    store = make_store("sqlite", folder, str, clock)
    take(store, full.path)
    store.close()
    stored = b"".join(path.read_bytes() for path in folder.iterdir())
    assert b"webhook-secret" in stored
    for secret in (ALICE, full.deploy, full.held_by_session, full.election):
        assert secret.encode() not in stored


def test_a_bare_token_is_not_the_name_of_its_user(memory, octostore, serve):
    octostore.user("first", ALICE)
    user = octostore.user("only-a-token-0123456789", "only-a-token-0123456789")
    octostore.acl("reserved", "user:Only-A-Token-0123456789")
    octostore.lock("held", user, 3)
    take(memory, octostore.close())
    names = {row.name for row in every(memory, Principal)}
    assert names == {"first", "token-2"}
    port = serve(memory).port
    acquired(bearer(port, "only-a-token-0123456789").acquire("reserved"))
    refused(bearer(port, ALICE).acquire("reserved"), 403, "forbidden")


# -- beside settings -------------------------------------------------------------------------------------------------


def sync(store, **variables):
    settings, _ = load({"store": "memory:"}, {f"HOLDFAST_{name}": value for name, value in variables.items()})
    engine = Engine(store)
    engine.start()
    try:
        sync_credentials(engine, settings)
    finally:
        engine.stop()


def find_user(store, token):
    with store.read() as reader:
        return reader.principal(hash_token(token))


def test_a_static_token_of_an_imported_user_is_that_user(store, full):
    take(store, full.path)
    sync(store, STATIC_TOKENS=f"Alice:{ALICE}")
    assert find_user(store, ALICE).id == full.alice
    sync(store, STATIC_TOKENS="ALICE:another-token-0123456789ab")
    assert find_user(store, ALICE) is None
    assert find_user(store, "another-token-0123456789ab").id == full.alice
    sync(store, STATIC_TOKENS="carol:carols-token-0123456789ab")
    assert find_user(store, "another-token-0123456789ab") is None
    assert find_user(store, BOB).id == full.bob
    sync(store, STATIC_TOKENS=f"alice:{ALICE}")
    assert find_user(store, ALICE).id == full.alice
    check_log(store)


def test_a_user_that_the_settings_made_before_keeps_its_identity(memory, full, serve):
    sync(memory, STATIC_TOKENS=f"alice:{ALICE}")
    known = find_user(memory, ALICE).id
    assert known != full.alice
    outcome = take(memory, full.path)
    assert (outcome.counts["users"], outcome.counts["users_known"]) == (1, 1)
    server = serve(memory, STATIC_TOKENS=f"alice:{ALICE}")
    success(bearer(server.port, ALICE).renew("deploy/web", full.deploy))
    success(bearer(server.port, ALICE).keep_alive(full.session))


# -- what is refused -------------------------------------------------------------------------------------------------


def test_a_dry_run_changes_nothing(store, full):
    before = contents(store)
    outcome = take(store, full.path, dry_run=True)
    assert (outcome.applied, outcome.counts) == (False, COUNTS)
    assert contents(store) == before


def test_a_record_that_cannot_be_taken_stops_the_whole_import(store, full):
    connection = sqlite3.connect(full.path)
    connection.execute("UPDATE locks SET expires_at = 'soon' WHERE name = 'guarded'")
    connection.execute("UPDATE webhooks SET url = 'https://10.0.0.1/' WHERE id = ?", (full.webhook,))
    connection.commit()
    connection.close()
    before = contents(store)
    outcome = take(store, full.path)
    assert not outcome.applied
    assert [line.partition(":")[0] for line in outcome.refused] == ["locks guarded", f"webhook {full.webhook}"]
    assert contents(store) == before
    outcome = take(store, full.path, skip_refused=True)
    assert outcome.applied
    assert outcome.counts == COUNTS | {"locks": 3, "webhooks": 1}
    check_log(store)


def test_a_second_import_changes_nothing(store, full):
    take(store, full.path)
    before = contents(store)
    outcome = take(store, full.path)
    assert (outcome.applied, outcome.counts["users_known"]) == (False, 2)
    assert contents(store) == before


def test_names_that_the_store_uses_are_not_overwritten(memory, full):
    run(memory, acquire("deploy/web"))
    outcome = take(memory, full.path)
    assert outcome.refused == ("lock deploy/web: the store has this name already",)
    with memory.read() as reader:
        assert reader.row(Lease, ACCOUNT, "deploy/web").owner == "alice"


def test_a_user_with_a_name_of_the_store_and_another_token_is_refused(memory, full):
    sync(memory, STATIC_TOKENS="ALICE:another-token-0123456789ab")
    outcome = take(memory, full.path)
    assert outcome.refused[0] == "user alice: the store has a user with this name and another token"
    assert "lock deploy/web: its holder is not imported" in outcome.refused


def test_tokens_of_the_store_never_fall(store, octostore):
    for number in range(3):
        run(store, acquire(f"own-{number}"))
    with store.read() as reader:
        before = reader.next_token()
    octostore.connection.execute("UPDATE fencing_counter SET counter = 2")
    assert take(store, octostore.close()).applied
    with store.read() as reader:
        assert reader.next_token() == before


def test_a_file_without_records_still_raises_the_tokens(store, octostore):
    assert take(store, octostore.close()).applied
    with store.read() as reader:
        assert reader.next_token() == 1_001


# -- the file --------------------------------------------------------------------------------------------------------


def test_what_is_only_in_the_write_ahead_log_is_read(octostore):
    octostore.user("alice", ALICE)
    assert octostore.path.with_name("octostore.db-wal").stat().st_size
    assert [user.name for user in read_octostore(octostore.path).users] == ["alice"]


def test_the_file_is_left_unchanged(full, tmp_path):
    before = full.path.read_bytes()
    read_octostore(full.path)
    assert full.path.read_bytes() == before
    assert [path.name for path in tmp_path.glob("octostore.db*")] == ["octostore.db"]


def test_other_files_are_refused(tmp_path, clock):
    text = tmp_path / "text.db"
    text.write_text("no database")
    other = Database(tmp_path / "other.db", clock.now)
    other.connection.execute("ALTER TABLE locks DROP COLUMN lease_id")
    for path, problem in (
        (tmp_path / "absent.db", "there is no file"),
        (text, "not a database"),
        (other.close(), "its table locks has no lease_id"),
    ):
        with pytest.raises(UnreadableFile, match=problem):
            read_octostore(path)


@pytest.mark.skipif(not Path(REAL_FILE).is_file(), reason="OCTOSTORE_FILE names no file of a real OctoStore server")
def test_the_file_of_a_real_server(memory, tmp_path, clock, serve):
    """Its times are shifted as if it had just been stopped."""
    path = tmp_path / "real.db"
    shutil.copyfile(REAL_FILE, path)
    connection = sqlite3.connect(path)
    newest = max(text for (text,) in connection.execute("SELECT acquired_at FROM locks"))
    shift = clock.now / SECOND - datetime.fromisoformat(newest).timestamp()
    for table, columns in {"locks": ("acquired_at", "expires_at"), "sessions": ("created_at", "expires_at")}.items():
        for column in columns:
            for row, text in connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
                moved = datetime.fromtimestamp(datetime.fromisoformat(text).timestamp() + shift).astimezone()
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (moved.isoformat(), row))
    connection.commit()
    locks = connection.execute("SELECT name, lease_id, fencing_token, holder_id FROM locks").fetchall()
    users = {row[0]: row[1] for row in connection.execute("SELECT id, token FROM users")}
    (counter,) = connection.execute("SELECT counter FROM fencing_counter").fetchone()
    connection.close()
    outcome = take(memory, path)
    assert (outcome.applied, outcome.refused) == (True, ())
    assert outcome.counts["locks"] == len(locks)
    port = serve(memory).port
    for name, lease_id, token, holder in locks:
        caller = bearer(port, users.get(holder) or next(iter(users.values())))
        assert success(caller.read_lock(name))["fencing_token"] == token
        success(caller.renew(name, lease_id))
    assert acquired(caller.acquire("new"))["fencing_token"] > counter
    check_log(memory)
