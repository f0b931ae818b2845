"""Holdfast: one live owner, a visible history and automatic recovery for every piece of agent work.

Names are imported on first use, so that `import holdfast` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.client.async_client import AsyncClient
    from holdfast.client.async_embedded import open_async
    from holdfast.client.client import Client
    from holdfast.client.default_client import claim_job, get_job_owner, heartbeat_job, list_claimed_jobs, release_job
    from holdfast.client.embedded import open_store as open  # noqa: A004 - holdfast.open reads well
    from holdfast.client.errors import Done, Held, HoldfastError, LeaseLost
    from holdfast.client.worker.context import AsyncTaskContext, TaskContext
    from holdfast.client.worker.errors import Permanent, Retry
    from holdfast.client.worker.worker import Worker

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "AsyncTaskContext",
    "Client",
    "Done",
    "Held",
    "HoldfastError",
    "LeaseLost",
    "Permanent",
    "Retry",
    "TaskContext",
    "Worker",
    "__version__",
    "claim_job",
    "get_job_owner",
    "heartbeat_job",
    "list_claimed_jobs",
    "open",
    "open_async",
    "release_job",
]

_MODULES = {
    "async_client": ("AsyncClient",),
    "async_embedded": ("open_async",),
    "client": ("Client",),
    "default_client": ("claim_job", "get_job_owner", "heartbeat_job", "list_claimed_jobs", "release_job"),
    "embedded": ("open",),
    "errors": ("Done", "Held", "HoldfastError", "LeaseLost"),
    "worker.context": ("AsyncTaskContext", "TaskContext"),
    "worker.errors": ("Permanent", "Retry"),
    "worker.worker": ("Worker",),
}
"""Which module of `holdfast.client` defines each name; the other errors are in `holdfast.client.errors`."""


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            value = getattr(import_module(f"holdfast.client.{module}"), "open_store" if name == "open" else name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
