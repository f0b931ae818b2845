"""The connection of a front to the engine: what callers are told when it is lost."""

from __future__ import annotations

import asyncio

from holdfast.core.errors import OutcomeUnknown, StoreUnavailable
from holdfast.engine.ticket import Ticket
from holdfast.transport.fronts.lanes import RemoteLanes
from tests.support import Keep, claim


class Wire(asyncio.Transport):
    """A connection that takes everything."""

    def write(self, data):
        pass

    def get_write_buffer_size(self):
        return 0


def test_only_callers_whose_commands_were_not_sent_are_told_that_nothing_was_applied():
    lanes, replies, turns = RemoteLanes("path"), Keep(), []
    lanes.connection_made(Wire())
    lanes.put(Ticket(claim("sent"), replies), turns.append)
    turns.pop()()
    lanes.put(Ticket(claim("unsent"), replies), turns.append)
    lanes.connection_lost(None)
    outcomes = {ticket.command.name: type(outcome) for ticket, outcome in replies.replies}
    assert outcomes == {"sent": OutcomeUnknown, "unsent": StoreUnavailable}
