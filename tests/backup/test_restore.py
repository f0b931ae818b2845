"""A restored store has the records of its backup, advanced counters, and is complete or absent."""

import fcntl
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

import holdfast
from holdfast.backup import postgres_target
from holdfast.backup.backup import backup
from holdfast.backup.endpoint import CopyRefused
from holdfast.backup.migrate import migrate
from holdfast.backup.restore import restore
from holdfast.core.browser_session import SESSION, BrowserSession
from holdfast.core.errors import LeaseLost, LeaseSuperseded, NotYetClaimable
from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.log_gap import ACTOR, MIN_JUMP, RESTORED, last_kept_seq
from holdfast.core.principal import Principal
from holdfast.core.rollups.intervals import RESOLUTIONS
from holdfast.core.task import Task
from holdfast.engine.command import Held
from holdfast.engine.rollups import thread
from holdfast.engine.verbs.locks import Delayed
from holdfast.engine.verbs.reservation_claims import Reserved
from holdfast.engine.verbs.reservations import FilesHeld
from holdfast.engine.verify import verify
from holdfast.settings import Settings, sqlite_path
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore
from tests.backup.sample_store import fill, newest_token, no_report, opened
from tests.reservation_commands import extend, release_paths, renew, reserve
from tests.support import (
    ACCOUNT,
    BOB,
    SECOND,
    START,
    DrivenClock,
    acquire,
    claim,
    every,
    heartbeat,
    in_background,
    put,
    release,
    run,
    transact,
    wait_until,
)  # fmt: skip
from tests.task_commands import beat, begin, close_session, complete, create, heartbeat_session, take_this

KINDS = ["sqlite", "postgres"]


@pytest.fixture(scope="module")
def taken_backup(tmp_path_factory):
    """A backup, and the store that it was taken of."""
    folder = tmp_path_factory.mktemp("taken")
    source = fill(Settings(store=f"sqlite:///{folder}/x.db"))
    backup(source, folder / "b", no_report)
    return source, folder / "b"


@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_keeps_rows_and_log_and_advances_the_counters(kind, taken_backup, new_store_settings):
    (source, file), target = taken_backup, new_store_settings(kind)
    outcome = restore(target, file, no_report)
    with opened(source) as before, opened(target) as after:
        assert verify(after).differences == []
        free = [row for row in every(before, Lease) if row.proof is None]
        assert [row for row in every(after, Lease) if row.key in {row.key for row in free}] == free
        old, new = every(before, Event), every(after, Event)
        assert [event for event in new if event.actor != ACTOR] == old
        for mark in (event for event in new if event.kind == RESTORED):
            last = max(event.seq for event in old if event.account == mark.account)
            assert last_kept_seq(mark) == last
            assert mark.seq > last + MIN_JUMP
        granted = run(after, claim("new", "l-new")).lease.token
    assert granted == outcome.token + 1 > newest_token(source) + MIN_JUMP


@pytest.mark.parametrize("kind", KINDS)
def test_counting_for_charts_continues_after_the_gap_in_the_log(kind, taken_backup, new_store_settings, monkeypatch):
    monkeypatch.setattr(thread, "SERVER_TURN", 0)
    (source, file), target = taken_backup, new_store_settings(kind)
    restore(target, file, no_report)
    with opened(source) as before, opened(target) as after:
        counted = created(before)
        assert created(after) == counted > 0
        run(after, create("after-restore"))
        thread.RollupThread(after).run()
        assert created(after) == counted + 1
        assert after.rollups.counted_until(ACCOUNT).seq > MIN_JUMP


def created(store):
    """Tasks that were created, by the roll-ups of the longest interval."""
    found = store.rollups.page(ACCOUNT, RESOLUTIONS[-1].length, 0)
    return sum(counts.created for _, rollup in found for counts in (*rollup.types.values(), rollup.other))


@pytest.mark.parametrize("kind", KINDS)
def test_an_existing_store_is_replaced_only_with_replace(kind, taken_backup, new_store_settings):
    _, file = taken_backup
    target = new_store_settings(kind)
    with opened(target) as store:
        tokens = [run(store, claim(f"mine/{n}", f"m{n}")).lease.token for n in range(3)]
    with pytest.raises(CopyRefused, match="--replace"):
        restore(target, file, no_report)
    with opened(target) as store:
        assert [row.id for row in every(store, Lease)] == ["mine/0", "mine/1", "mine/2"]
    first = restore(target, file, no_report, replace=True)
    second = restore(target, file, no_report, replace=True)
    assert max(tokens) < first.token < second.token - MIN_JUMP, "what the replaced store has used is passed as well"
    with opened(target) as store:
        assert verify(store).differences == []
        assert not [row for row in every(store, Lease) if row.id.startswith("mine")]


@pytest.mark.parametrize("kind", KINDS)
def test_event_numbers_that_the_replaced_store_has_used_are_not_given_again(kind, taken_backup, new_store_settings):
    target, last = new_store_settings(kind), []
    for _ in range(2):
        restore(target, taken_backup[1], no_report, replace=True)
        with opened(target) as store:
            last.append({mark.account: mark.seq for mark in every(store, Event) if mark.kind == RESTORED})
    first, second = last
    assert first.keys() == second.keys() == {ACCOUNT, "acct_ünï"}
    assert all(first[account] + MIN_JUMP < second[account] for account in first)


def test_a_server_that_starts_while_its_store_is_replaced_opens_the_new_one(taken_backup, new_store_settings):
    source, file = taken_backup
    target = new_store_settings("sqlite")
    with opened(target) as store:
        run(store, claim("lost", "l1"))
    path, opening = sqlite_path(target.store), []

    def open_and_read():
        starting = SqliteStore(path)
        starting.wait_seconds = 60.0
        starting.open()
        with closing(starting):
            return {row.id for row in every(starting, Lease)}

    def a_server_starts(*_):
        opening.append(in_background(open_and_read))
        wait_until(lambda: is_locked(path.with_name(path.name + "-turn")), 5)  # it waits in the queue of writers

    restore(target, file, once_only(a_server_starts), replace=True)
    with opened(source) as store:
        assert opening[0].result(10) == {row.id for row in every(store, Lease)}


def is_locked(path):
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_link_to_a_store_leads_to_the_restored_store(taken_backup, tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    for settings in ({}, {"replace": True}):
        restore(Settings(store=f"sqlite:///{tmp_path}/link.db"), taken_backup[1], no_report, **settings)
        assert (tmp_path / "link.db").is_symlink()
        assert (tmp_path / "real.db").stat().st_size > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_is_in_use_is_not_replaced(kind, taken_backup, new_store_settings):
    target = fill(new_store_settings(kind))
    with holdfast.open(target.store) as client:
        client.claim_job("still/mine", "me")  # on PostgreSQL connections are opened when they are needed
        with pytest.raises(CopyRefused, match="in use"):
            restore(target, taken_backup[1], no_report, replace=True)
        assert client.get_job_owner("still/mine")["owner"] == "me"


def test_a_program_that_connects_during_a_restore_keeps_what_it_was_granted(
    taken_backup, new_store_settings, monkeypatch
):
    target, clients = fill(new_store_settings("postgres")), []

    class Migrated(PostgresStore):
        def close(self):
            super().close()
            clients.append(holdfast.open(target.store))
            clients[0].claim_job("still/mine", "me")

    monkeypatch.setattr(postgres_target, "PostgresStore", Migrated)
    with pytest.raises(CopyRefused, match="in use"):
        restore(target, taken_backup[1], no_report, replace=True)
    with clients[0] as client:
        assert client.get_job_owner("still/mine")["owner"] == "me"


def test_a_store_created_during_a_restore_is_not_replaced(taken_backup, new_store_settings):
    """There was no store when the restore began, so no server was stopped: what a server has granted since stays."""
    target = new_store_settings("sqlite")

    def a_server_starts(*_):
        with opened(target) as store:
            run(store, claim("promised", "l1"))

    with pytest.raises(CopyRefused, match="exists"):
        restore(target, taken_backup[1], once_only(a_server_starts), replace=True)
    with opened(target) as store:
        assert [row.id for row in every(store, Lease)] == ["promised"]


def once_only(act):
    """A progress callback that acts the first time."""
    left = [act]
    return lambda *_: left.pop()() if left else None


@pytest.mark.parametrize("kind", KINDS)
def test_keys_and_browser_sessions_ended_after_the_backup_are_not_valid_again(kind, new_store_settings, tmp_path):
    """Browser sessions and sign-in links never; keys if the replaced store had revoked or rotated them."""
    source, file = new_store_settings(kind), tmp_path / "b"
    with opened(source) as store:
        put(store, *(a_key(name) for name in ("kept", "revoked", "rotated")), kind="created")
        store.save_browser_session(
            BrowserSession("a session", SESSION, ACCOUNT, "kept", "kept", made_at=START, seen_at=START)
        )
    backup(source, file, no_report)
    with opened(source) as store:
        for name, how in (("revoked", {"revoked_at": 9}), ("rotated", {"key_hash": "new", "old_key_hash": "rotated"})):
            put(store, replace(key_named(store, name), **how), kind="changed")
        put(store, a_key("made since"), kind="created")
    done = restore(source, file, no_report, replace=True)
    assert (done.keys_ended, done.keys_unknown) == (2, False)
    with opened(source) as store, store.read() as reader:
        assert verify(store).differences == []
        assert reader.browser_session("a session") is None
        works = {name: reader.principal(name) is not None for name in ("kept", "revoked", "rotated", "new")}
        assert works == {"kept": True, "revoked": False, "rotated": False, "new": True}
    elsewhere = new_store_settings(kind)
    assert restore(elsewhere, file, no_report).keys_unknown
    again = restore(elsewhere, file, no_report, replace=True)
    assert again.keys_ended == 0, "a store that is itself older revives nothing"


def a_key(name):
    return Principal(ACCOUNT, name, name=name, key_hash=name, created_at=START)


def key_named(store, name):
    with store.read() as reader:
        return reader.row(Principal, ACCOUNT, name)


def test_restoring_a_backup_twice_grants_no_token_twice(taken_backup, new_store_settings):
    granted = []
    for _ in range(2):
        target = new_store_settings("sqlite")
        restore(target, taken_backup[1], no_report)
        with opened(target) as store:
            granted += [run(store, claim(f"new/{n}", f"n{n}")).lease.token for n in range(50)]
    assert len(set(granted)) == len(granted)


@pytest.mark.parametrize("ended", [False, True], ids=["live", "ended"])
def test_a_generation_that_was_lost_with_the_store_stays_fenced_off(new_store_settings, tmp_path, ended):
    """The restored store counts the generations from the backup on; the secret is the same."""
    source, file = new_store_settings("sqlite"), tmp_path / "b"
    with opened(source) as store:
        first = run(store, begin("agent"))
        if ended:
            run(store, close_session("agent", lease_id=first.lease_id))
    backup(source, file, no_report)
    with opened(source) as store:
        lost = run(store, begin("agent", secret=first.secret))
    restore(source, file, no_report, replace=True)
    with opened(source) as store:
        again = run(store, begin("agent", secret=first.secret))
        assert again.session.generation == lost.session.generation == 2
        with pytest.raises(LeaseLost):
            run(store, heartbeat_session("agent", lease_id=lost.lease_id))
        run(store, heartbeat_session("agent", lease_id=again.lease_id))


@pytest.mark.parametrize("kind", KINDS)
def test_a_lease_that_ended_after_the_backup_is_not_held_again(kind, new_store_settings, tmp_path):
    source, file = new_store_settings(kind), tmp_path / "b"
    with opened(source) as store:
        *_, begun, _ = transact(store, claim("job", "l1"), acquire("lock"), begin("agent"), create("task"))
        transact(store, take_this("task"))
    backup(source, file, no_report)
    with opened(source) as store:
        transact(store, release("job", "l1"), complete("task"), close_session("agent", lease_id=begun.lease_id))
    assert restore(source, file, no_report, replace=True).leases_ended == 3
    with opened(source) as store:
        assert verify(store).differences == []
        for old_id in (
            heartbeat("job", "l1"),
            release("job", "l1"),
            beat("task"),
            complete("task"),
            heartbeat_session("agent", lease_id=begun.lease_id),
        ):
            with pytest.raises((LeaseLost, LeaseSuperseded)) as refused:
                run(store, old_id)
            assert refused.value.facts["reason"] == "restored"
        assert isinstance(run(store, claim("job", "l2")), Held)
        assert isinstance(run(store, acquire("lock", BOB)), Delayed)
        with pytest.raises(NotYetClaimable):
            run(store, take_this("task"))
        (task,) = every(store, Task)
        assert (task.attempt, task.attempt_count, task.scheduled_at > task.changed_at) == (1, 0, True)
        assert run(store, begin("agent", seed="again")).resumed
    clock = DrivenClock(task.scheduled_at)
    with opened(source, clock) as store:
        assert run(store, take_this("task", seed="again")).taken[0].task.attempt_count == 1
        clock.advance(60)
        claimed = run(store, claim("job", "l2"))
        assert claimed.previous.how == "restored"
        assert run(store, acquire("lock", BOB)).lease.principal == BOB.id
        assert verify(store).differences == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_reservation_is_nobodys_and_its_paths_are_not_free_before_its_old_deadline(
    kind, new_store_settings, tmp_path
):
    source, file = new_store_settings(kind), tmp_path / "b"
    with opened(source) as store:
        transact(store, begin("agent", ttl=600 * SECOND), reserve("r1", "src/"))
        transact(store, reserve("r2", "docs/", session="agent"), reserve("w1", "src/a", may_wait=True))
    backup(source, file, no_report)
    with opened(source) as store:
        transact(store, release_paths("r1"), release_paths("r2"))
    restore(source, file, no_report, replace=True)
    with opened(source) as store:
        assert verify(store).differences == []
        for name in ("r1", "r2"):
            for old_id in (renew(name), extend(name, "x"), release_paths(name)):
                with pytest.raises(LeaseLost) as refused:
                    run(store, old_id)
                assert refused.value.facts["reason"] == "restored"
        for path, held in (("src/a", "r1"), ("docs/x", "r2")):
            (conflict,) = run(store, reserve("new", path)).conflicts
            assert conflict.row.id == held
        assert run(store, begin("agent", seed="again", secret="secret-life-1")).reservations == ()
        (conflict,) = run(store, reserve("new", "docs/x")).conflicts
        until = conflict.row.expires_at
    with opened(source, DrivenClock(until - 1)) as store:
        assert isinstance(run(store, reserve("new", "docs/x")), FilesHeld)
    with opened(source, DrivenClock(until)) as store:
        assert isinstance(run(store, reserve("new", "docs/x", "src/a")), Reserved)
        assert verify(store).differences == []


def test_a_lease_keeps_its_holder_when_its_store_is_migrated(new_store_settings):
    source, target = new_store_settings("sqlite"), new_store_settings("sqlite")
    with opened(source) as store:
        run(store, claim("job", "l1"))
    migrate(source, target, no_report)
    with opened(target) as store:
        assert run(store, heartbeat("job", "l1")).lease.version == 2


def test_a_damaged_backup_or_another_file_is_refused(taken_backup, new_store_settings, tmp_path):
    source, file = taken_backup
    path = tmp_path / "damaged"
    whole = file.read_bytes()
    for content, error in [
        (source.store.removeprefix("sqlite:///").encode() * 99, "not an SQLite file"),
        (whole[: len(whole) // 2], "damaged|malformed|does not match"),
    ]:
        path.write_bytes(content)
        target = new_store_settings("sqlite")
        with pytest.raises(CopyRefused, match=error):
            restore(target, path, no_report)
        assert not list(tmp_path.glob(f"*{target.store.rpartition('/')[2]}*")), "nothing is left behind"
    with pytest.raises(CopyRefused, match="is not a backup"):
        restore(new_store_settings("sqlite"), Path(source.store.removeprefix("sqlite:///")), no_report)


@pytest.mark.parametrize(
    "change",
    [
        """CREATE TABLE "x""; ATTACH '{0}' AS made; CREATE TABLE made.t (a); --" (a TEXT PRIMARY KEY)""",
        """ALTER TABLE tasks ADD COLUMN "x"" FROM tasks; ATTACH '{0}' AS made; CREATE TABLE made.t (a); --" TEXT""",
        "CREATE TRIGGER forge AFTER UPDATE ON state BEGIN DELETE FROM principals; END",
        "CREATE VIEW extra AS SELECT * FROM principals",
        "DROP TRIGGER events_stay",
        "UPDATE backup SET header = '{{'",
    ],
)
def test_a_backup_that_another_program_changed_is_refused_before_it_is_used(
    change, taken_backup, new_store_settings, tmp_path
):
    changed, made = tmp_path / "changed", tmp_path / "made.db"
    changed.write_bytes(taken_backup[1].read_bytes())
    with closing(apsw.Connection(str(changed))) as connection:
        connection.execute(change.format(made))
    with pytest.raises(CopyRefused, match=r"is not as `holdfast backup` wrote it|damaged"):
        restore(new_store_settings("sqlite"), changed, no_report)
    assert not made.exists()


def test_a_file_of_another_program_is_not_replaced(taken_backup, new_store_settings):
    target = new_store_settings("sqlite")
    file = apsw.Connection(target.store.removeprefix("sqlite:///"))
    file.execute("CREATE TABLE recipes (name TEXT PRIMARY KEY); INSERT INTO recipes VALUES ('bread')")
    file.close()
    with pytest.raises(CopyRefused, match="another program"):
        restore(target, taken_backup[1], no_report, replace=True)
    file = apsw.Connection(target.store.removeprefix("sqlite:///"))
    assert file.execute("SELECT name FROM recipes").fetchall() == [("bread",)]


def test_the_journal_of_a_former_file_is_not_applied_to_the_new_one(taken_backup, new_store_settings):
    target = new_store_settings("sqlite")
    stale = Path(target.store.removeprefix("sqlite:///") + "-wal")
    stale.write_bytes(b"x")
    with pytest.raises(CopyRefused, match="-wal exists"):
        restore(target, taken_backup[1], no_report)
    restore(target, taken_backup[1], no_report, replace=True)
    assert not stale.exists()


def test_a_full_disk_is_reported_and_leaves_no_file(taken_backup, small_disk):
    (small_disk / "ballast").write_bytes(bytes(900_000))
    with pytest.raises(CopyRefused, match=f"cannot write {small_disk}/x.db: no space left"):
        restore(Settings(store=f"sqlite:///{small_disk}/x.db"), taken_backup[1], no_report)
    assert [path.name for path in small_disk.iterdir()] == ["ballast"]
