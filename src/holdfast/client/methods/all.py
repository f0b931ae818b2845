"""All method classes in one."""

from __future__ import annotations

from holdfast.client.methods.accounts import AccountMethods
from holdfast.client.methods.base import R
from holdfast.client.methods.jobs import JobMethods
from holdfast.client.methods.locks import LockMethods
from holdfast.client.methods.questions import QuestionMethods
from holdfast.client.methods.queues import QueueMethods
from holdfast.client.methods.reservations import ReservationMethods
from holdfast.client.methods.sessions import SessionMethods
from holdfast.client.methods.system import SystemMethods
from holdfast.client.methods.tasks import TaskMethods
from holdfast.client.methods.webhooks import WebhookMethods
from holdfast.client.methods.worker_tasks import WorkerTaskMethods


class Methods(
    JobMethods[R],
    ReservationMethods[R],
    TaskMethods[R],
    WorkerTaskMethods[R],
    QuestionMethods[R],
    QueueMethods[R],
    SessionMethods[R],
    AccountMethods[R],
    LockMethods[R],
    WebhookMethods[R],
    SystemMethods[R],
):
    """One method for every operation."""
