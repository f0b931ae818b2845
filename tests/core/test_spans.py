"""Spans: who held what, and when, from events and from what is held now."""

import msgspec
from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core.event import Cause, difference, make_event
from holdfast.core.holdings.spans import held_spans, session_names
from holdfast.core.lease import Lease
from holdfast.core.reservation import lifecycle as reservations
from holdfast.core.reservation.row import Request, Reservation
from holdfast.core.row import SECOND
from holdfast.core.task import Task
from tests.support import ACCOUNT, START, a_lease, a_session

CAUSE = Cause("p", "r")


class Log:
    """Events of rows, as the engine writes them."""

    def __init__(self):
        self.events, self.rows = [], {}

    def put(self, row, kind, seconds):
        before = self.rows.get(row.key, type(row)(row.account, row.id))
        row = replace(row, version=before.version + 1)
        self.rows[row.key] = row
        at = START + seconds * SECOND
        self.events.append(make_event(difference(before, row), row, kind, CAUSE, at))
        return row

    def spans(self, *rows, seconds=100):
        found = held_spans(self.events, rows, START + seconds * SECOND)
        return [(each.owner, each.id, _seconds(each.since), _seconds(each.until), each.how) for each in found]


def _seconds(instant):
    return None if instant is None else (instant - START) // SECOND


def held(name="job", at=0, **more):
    return a_lease(name, ends=START + (at + 60) * SECOND, **more)


def test_a_claim_and_its_end_are_one_span():
    log = Log()
    lease = log.put(held(owner="ada"), "claimed", 0)
    lease = log.put(replace(lease, expires_at=START + 90 * SECOND), "renewed", 30)
    log.put(leases.end(lease, "released", now=START + 40 * SECOND), "released", 40)
    assert log.spans() == [("ada", "job", 0, 40, "released")]


def test_what_is_held_lasts_until_now_and_each_owner_has_a_span():
    log = Log()
    lease = log.put(held(owner="ada"), "claimed", 0)
    lease = log.put(leases.end(lease, "expired", now=START + 60 * SECOND), "expired", 60)
    lease = log.put(replace(held(owner="bob", at=70), version=lease.version), "claimed", 70)
    assert log.spans(lease) == [("ada", "job", 0, 60, "expired"), ("bob", "job", 70, 100, "held")]


def test_an_end_without_its_claim_is_described_by_the_event():
    log = Log()
    lease = log.put(held(owner="ada"), "claimed", 0)
    log.put(leases.end(lease, "forced", now=START + 20 * SECOND, by="root", reason="stuck"), "forced", 20)
    log.events = log.events[1:]
    found = held_spans(log.events, [], START + 100 * SECOND)[0]
    assert (found.owner, found.since, found.by, found.reason) == ("ada", START, "root", "stuck")


def test_what_was_claimed_before_the_first_event_comes_from_its_row():
    assert Log().spans(held(owner="ada")) == []  # expired: the sweep has not met it yet
    assert Log().spans(held(owner="ada"), seconds=50) == [("ada", "job", 0, 50, "held")]


def test_what_has_expired_is_not_held_even_if_the_sweep_has_not_met_it():
    log = Log()
    lease = log.put(held(owner="ada"), "claimed", 0)
    assert log.spans(lease, seconds=59) == [("ada", "job", 0, 59, "held")]
    assert log.spans(lease, seconds=70) == [("ada", "job", 0, 60, "expired")]


def test_events_know_more_than_a_row_that_was_read_before_them():
    log = Log()
    lease = log.put(held(owner="ada"), "claimed", 0)
    log.put(leases.end(lease, "released", now=START + 10 * SECOND), "released", 10)
    assert log.spans(lease, seconds=20) == [("ada", "job", 0, 10, "released")]


def test_an_undelivered_claim_was_held_by_nobody():
    log = Log()
    lease = log.put(held(owner="ada"), "claimed", 0)
    log.put(leases.end(lease, "undelivered", now=START + SECOND), "undelivered", 1)
    assert log.spans() == []


def test_a_task_has_one_span_for_each_attempt():
    log = Log()
    task = log.put(Task(ACCOUNT, "t", type="x", created_at=START), "created", 0)
    claimed = {"state": "claimed", "worker": "ada", "proof": "p", "claimed_at": START, "attempt": 1}
    task = log.put(replace(task, **claimed), "claimed", 5)
    ended = '{"worker":"ada","outcome":"failed","at":9,"attempt":1,"proof":"p","reason":"boom"}'
    task = log.put(replace(task, state="pending", worker=None, proof=None, ended=ended), "failed", 9)
    task = log.put(replace(task, **claimed | {"attempt": 2, "session": "s1"}), "claimed", 20)
    assert log.spans() == [("ada", "t", 5, 9, "failed"), ("ada", "t", 20, 100, "held")]
    assert held_spans(log.events, [], START + 100 * SECOND)[-1].session == "s1"
    log.events = log.events[2:]
    assert log.spans()[0] == ("ada", "t", None, 9, "failed"), "its claim is older than the first event"


def a_request(owner="ada"):
    return Request("acme/shop", "exclusive", ("src/",), owner, "p", 60 * SECOND)


def test_a_reservation_that_waited_is_held_from_its_grant_on():
    log = Log()
    row = log.put(reservations.wait(ACCOUNT, "r", a_request(), [], START), "waiting", 0)
    row = log.put(reservations.grant(row, a_request(), proof="x", token=1, now=START + 30 * SECOND), "reserved", 30)
    assert log.spans() == [("ada", "r", 30, 100, "held")]
    row = log.put(reservations.end(row, "released", now=START + 50 * SECOND), "released", 50)
    assert log.spans() == [("ada", "r", 30, 50, "released")]
    log.events = log.events[-1:]
    assert log.spans() == []
    assert log.spans(row) == [("ada", "r", 30, 50, "released")], "its row names the owner"


def test_a_reservation_that_is_granted_again_goes_on():
    log = Log()
    row = Reservation(ACCOUNT, "r")
    row = log.put(reservations.grant(row, a_request(), proof="x", token=1, now=START), "reserved", 0)
    log.put(reservations.grant(row, a_request(), proof="y", token=2, now=START + 30 * SECOND), "reserved", 30)
    assert log.spans() == [("ada", "r", 0, 100, "held")]


def test_a_claim_after_an_end_that_was_damaged_is_a_new_span():
    log = Log()
    lease = log.put(held(owner="ada"), "claimed", 0)
    lease = log.put(leases.end(lease, "released", now=START + SECOND), "released", 1)
    log.put(held(owner="bob"), "claimed", 40)
    del log.events[1]
    assert log.spans() == [("bob", "job", 40, 100, "held")]


def test_a_wait_that_ends_was_never_held():
    log = Log()
    row = log.put(reservations.wait(ACCOUNT, "r", a_request(), [], START), "waiting", 0)
    row = log.put(reservations.end(row, "left", now=START + SECOND), "left", 1)
    assert log.spans(row) == []


def test_a_reservation_that_is_handed_over_has_two_holders():
    log = Log()
    row = log.put(
        reservations.grant(Reservation(ACCOUNT, "r"), a_request(), proof="x", token=1, now=START), "reserved", 0
    )
    taken = reservations.hand_over(
        row, owner="bob", principal="p", session=None, ttl=60 * SECOND, proof="y", token=2, now=START + 9 * SECOND
    )
    taken = log.put(taken, "handed_over", 9)
    assert log.spans(taken, seconds=60) == [("ada", "r", 0, 9, "handed_over"), ("bob", "r", 9, 60, "held")]


def test_a_holder_before_a_handover_is_not_named_after_the_one_in_the_row():
    log = Log()
    row = log.put(reservations.wait(ACCOUNT, "r", a_request(), [], START), "waiting", 0)
    row = log.put(reservations.grant(row, a_request(), proof="x", token=1, now=START + 3 * SECOND), "reserved", 3)
    taken = reservations.hand_over(
        row, owner="bob", principal="p", session=None, ttl=60 * SECOND, proof="y", token=2, now=START + 9 * SECOND
    )
    taken = log.put(taken, "handed_over", 9)
    del log.events[0]  # only this one names the first holder
    assert log.spans(taken, seconds=60) == [(None, "r", 3, 9, "handed_over"), ("bob", "r", 9, 60, "held")]


def test_a_snapshot_shows_what_was_claimed_before_it():
    log = Log()
    lease = held(owner="ada")
    log.events.append(make_event({}, replace(lease, version=7), "snapshot", CAUSE, START + 30 * SECOND, whole=True))
    assert log.spans() == [("ada", "job", 0, 100, "held")]


def test_a_snapshot_of_what_is_free_ends_nothing():
    log = Log()
    free = leases.end(held(owner="ada"), "released", now=START + SECOND)
    log.events.append(make_event({}, replace(free, version=7), "snapshot", CAUSE, START + 30 * SECOND, whole=True))
    assert log.spans() == [], "when the snapshot was written is not when the lease ended"


def test_a_restore_ends_what_was_held():
    log = Log()
    lease = log.put(held(owner="ada"), "claimed", 0)
    log.put(leases.end_by_restore(lease, START + 20 * SECOND), "restored", 20)
    assert log.spans() == [("ada", "job", 0, 20, "restored")]


def test_a_restore_ends_reservations_and_waits_that_were_never_held():
    log = Log()
    row = log.put(
        reservations.grant(Reservation(ACCOUNT, "r"), a_request(), proof="x", token=1, now=START), "reserved", 0
    )
    row = log.put(reservations.end_by_restore(row, START + 20 * SECOND), "restored", 20)
    waiting = log.put(reservations.wait(ACCOUNT, "w", a_request("bob"), [], START), "waiting", 0)
    waiting = log.put(reservations.end_by_restore(waiting, START + 20 * SECOND), "restored", 20)
    assert log.spans(row, waiting, seconds=30) == [("ada", "r", 0, 20, "restored")]
    log.events = log.events[-1:]
    assert log.spans(waiting, seconds=30) == []


def test_an_election_and_a_lock_keep_their_kinds():
    log = Log()
    log.put(held("l", kind="lock", owner=None), "claimed", 0)
    log.put(held("__election/room", kind="election", owner="ada"), "claimed", 1)
    assert [each.kind for each in held_spans(log.events, [], START)] == ["election", "lock"]


def test_events_of_other_nouns_and_damaged_ones_are_left_out():
    log = Log()
    log.put(a_session(name="ada"), "opened", 0)
    log.events.append(replace(log.events[0], subject="log:7", kind="log.damaged", data='{"damage":"x"}'))
    assert log.spans() == []
    assert session_names(log.events) == {"s1": "ada"}


def test_the_data_of_a_released_lease_is_read_once():
    """A free row that is made again does not repeat the end of its last holder."""
    log = Log()
    lease = log.put(held(owner="ada"), "claimed", 0)
    free = log.put(leases.end(lease, "released", now=START + SECOND), "released", 1)
    log.events.append(make_event({}, replace(free, version=3), "snapshot", CAUSE, START + 5 * SECOND, whole=True))
    assert len(log.spans(Lease(ACCOUNT, "job"))) == 1
    assert msgspec.json.decode(log.events[-1].data)["ended"]["owner"] == "ada"
