"""Every operation's shape, gathered from the rooms."""

from __future__ import annotations

from types import ModuleType

from holdfast.transport.http.schemas import (
    accounts,
    admin,
    billing,
    elections,
    events,
    jobs,
    keys,
    locks,
    octostore_sessions,
    sessions,
    system,
    task_operations,
    webhooks,
)
from holdfast.transport.http.schemas.operation_schema import Shape

_ROOMS: tuple[ModuleType, ...] = (
    jobs,
    task_operations,
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


def _gathered() -> dict[str, Shape]:
    shapes: dict[str, Shape] = {}
    for room in _ROOMS:
        assert not shapes.keys() & room.SHAPES.keys(), f"{room.__name__} describes what another room describes"
        shapes |= room.SHAPES
    return shapes


SHAPES = _gathered()
