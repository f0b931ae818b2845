"""Watchers for commits of other processes: no change is missed while a caller waits, also if a notice is lost."""

from __future__ import annotations

import time

import psycopg
import pytest

from holdfast.store.postgres import queries
from holdfast.store.postgres import watcher as watchers
from holdfast.store.postgres.connection import Connector
from holdfast.store.postgres.watcher import ListeningWatcher
from holdfast.store.sqlite.watcher import PollingWatcher
from tests.support import wait_until


class Reports:
    """Counts what a watcher reports."""

    def __init__(self):
        self.count = 0
        self.last_at = 0.0

    def __call__(self):
        self.count += 1
        self.last_at = time.monotonic()

    def wait_for(self, count):
        wait_until(lambda: self.count >= count, 10)


@pytest.fixture
def watch(database):
    """Factory of watchers on one database, each of which listens already."""
    started = []

    def watch(connect=None, url=database):
        reports = Reports()
        connect = connect or Connector(database, pooled=False).connect
        started.append(ListeningWatcher(url, connect, reports))
        reports.wait_for(1 if url else 0)
        return started[-1], reports

    yield watch
    for each in started:
        each.close()


def test_a_notice_is_reported_by_every_other_server_and_not_by_its_own(watch):
    (here, own), (_, others) = watch(), watch()
    here.notify()
    others.wait_for(2)
    assert own.count == 1


def test_many_notices_are_reported_as_few_and_the_last_is_not_missed(database, watch):
    _, reports = watch()
    began = time.monotonic()
    with psycopg.connect(database, autocommit=True) as other:
        for _ in range(300):
            sent = time.monotonic()
            other.execute("NOTIFY holdfast")
    wait_until(lambda: reports.last_at >= sent, 10)
    assert reports.count <= 3 + (time.monotonic() - began) / watchers.REACT_SECONDS


def test_a_notice_that_is_wanted_while_another_is_sent_is_sent_too(database, watch):
    sent = []

    def connect():
        connection = Connector(database, pooled=False).connect()
        execute = connection.execute

        def notify_once_more(statement):
            result = execute(statement)
            sent.append(statement)
            if len(sent) == 1:
                here.notify()
            return result

        connection.execute = notify_once_more
        return connection

    here, _ = watch(connect)
    here.notify()
    wait_until(lambda: len(sent) == 2, 10)


def test_a_notice_whose_connection_broke_is_sent_on_the_next_one(database, watch):
    sent = []

    def connect():
        connection = Connector(database, pooled=False).connect()
        execute = connection.execute

        def break_first(statement):
            sent.append(statement)
            if len(sent) == 1:
                raise psycopg.OperationalError("the connection broke")
            return execute(statement)

        connection.execute = break_first
        return connection

    (here, _), (_, others) = watch(connect), watch()
    here.notify()
    others.wait_for(2)
    assert sent == [queries.NOTIFY] * 2


def test_a_change_is_assumed_while_a_caller_waits_because_its_notice_may_be_lost(watch, monkeypatch):
    """A server that is killed between COMMIT and NOTIFY sends no notice."""
    monkeypatch.setattr(watchers, "LOST_SECONDS", 0.05)
    here, reports = watch()
    here.set_waiting(waiting=True)
    reports.wait_for(3)
    here.set_waiting(waiting=False)


def test_a_listener_that_was_disconnected_assumes_a_change(database, watch):
    _, reports = watch()
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN holdfast'")
    reports.wait_for(2)


def test_behind_a_pooler_a_change_is_assumed_again_and_again_while_a_caller_waits(watch):
    here, reports = watch(url=None)
    assert reports.count == 0
    here.set_waiting(waiting=True)
    reports.wait_for(3)


def test_a_caller_that_begins_to_wait_on_a_file_is_told_of_commits_before_the_first_poll():
    """The commit may have come between the caller's own attempt and the first poll."""
    reports, version = Reports(), [1]
    here = PollingWatcher(lambda: version[0], reports)
    try:
        here.set_waiting(waiting=True)
        reports.wait_for(1)
        version[0] += 1
        reports.wait_for(2)
        here.set_waiting(waiting=False)
        version[0] += 1
        here.set_waiting(waiting=True)
        reports.wait_for(3)
    finally:
        here.close()


def test_a_commit_that_comes_while_another_is_reported_is_reported_too():
    reports, version = Reports(), [1]

    def commit_meanwhile():
        reports()
        if reports.count == 1:
            version[0] += 1

    here = PollingWatcher(lambda: version[0], commit_meanwhile)
    try:
        here.set_waiting(waiting=True)
        reports.wait_for(2)
    finally:
        here.close()
