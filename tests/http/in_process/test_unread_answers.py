"""Answers that are read slowly, or not at all: who is closed, and what is refused."""

import pytest

from holdfast.core.errors import Overloaded
from holdfast.transport.http.overload.unread_answers import LEAST_READ, WRITE_SECONDS, ReadingWatch, UnreadAnswers
from holdfast.transport.http.request import Request


class Connection:
    """A transport whose peer reads as much as the test says, and an event loop whose timers the test runs."""

    def __init__(self, unsent):
        self.unsent, self.is_closed, self.timers = unsent, False, []

    def get_write_buffer_size(self):
        return self.unsent

    def abort(self):
        self.is_closed = True

    def call_later(self, seconds, action):
        assert seconds == WRITE_SECONDS
        self.timers.append(action)


@pytest.mark.parametrize(("read", "is_closed"), [(LEAST_READ, False), (LEAST_READ - 1, True), (0, True)])
def test_a_connection_is_closed_unless_its_peer_reads_enough_in_time(read, is_closed):
    connection = Connection(10 * LEAST_READ)
    ReadingWatch(connection, connection).begin()
    connection.unsent -= read
    connection.timers.pop()()
    assert connection.is_closed == is_closed
    assert len(connection.timers) == (0 if is_closed else 1)  # a reader is watched further


def test_a_connection_whose_peer_has_read_all_is_not_watched_further():
    connection = Connection(1)
    ReadingWatch(connection, connection).begin()
    connection.unsent = 0
    connection.timers.pop()()
    assert not connection.is_closed
    assert not connection.timers


@pytest.mark.parametrize(("method", "is_refused"), [("GET", True), ("POST", False), ("DELETE", False)])
def test_a_write_is_never_refused_for_unread_answers_because_it_was_done(method, is_refused):
    unread = UnreadAnswers(100)
    request = Request({"method": method, "headers": []}, None)
    unread._budget.add("", 100)
    if is_refused:
        with pytest.raises(Overloaded):
            unread.check(request, 1)
    else:
        unread.check(request, 1)
