"""The schemas of all operations, merged from the modules of this package."""

from __future__ import annotations

from types import ModuleType

from holdfast.transport.http.schemas import (
    accounts,
    billing,
    events,
    jobs,
    keys,
    questions,
    queues,
    reservations,
    sessions,
    system,
    task_operations,
    webhooks,
)
from holdfast.transport.http.schemas.octostore import admin, elections, locks
from holdfast.transport.http.schemas.octostore import sessions as octostore_sessions
from holdfast.transport.http.schemas.operation_schema import OperationSchema

_MODULES: tuple[ModuleType, ...] = (
    jobs,
    reservations,
    task_operations,
    questions,
    queues,
    accounts,
    billing,
    keys,
    sessions,
    events,
    locks,
    octostore_sessions,
    elections,
    system,
    admin,
    webhooks,
)


def _merge() -> dict[str, OperationSchema]:
    merged: dict[str, OperationSchema] = {}
    for module in _MODULES:
        repeated = merged.keys() & module.OPERATION_SCHEMAS.keys()
        assert not repeated, f"{module.__name__} describes {repeated} again"
        merged |= module.OPERATION_SCHEMAS
    return merged


OPERATION_SCHEMAS = _merge()
