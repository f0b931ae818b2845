"""All rooms of methods together."""

from __future__ import annotations

from holdfast.client.methods.accounts import AccountMethods
from holdfast.client.methods.base import R
from holdfast.client.methods.jobs import JobMethods
from holdfast.client.methods.locks import LockMethods
from holdfast.client.methods.sessions import LifeMethods
from holdfast.client.methods.system import SystemMethods
from holdfast.client.methods.tasks import TaskMethods
from holdfast.client.methods.webhooks import WebhookMethods
from holdfast.client.methods.worker_tasks import WorkMethods


class Methods(
    JobMethods[R],
    TaskMethods[R],
    WorkMethods[R],
    LifeMethods[R],
    AccountMethods[R],
    LockMethods[R],
    WebhookMethods[R],
    SystemMethods[R],
):
    """Every operation."""
