"""`agent_contract` of the settings of queues."""

from __future__ import annotations

from holdfast.transport.advice.contract import Contract, action, continue_work


def shown(task_type: str) -> Contract:
    """A queue was read or changed."""
    return continue_work("The queue is as shown.", action("read_queue", task_type), action("count_tasks"))


def listed() -> Contract:
    """The queues with settings were listed."""
    return continue_work("These are the queues with settings; all others have no limits.", action("count_tasks"))
