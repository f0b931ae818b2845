"""What an operation may refuse: every status with the codes that come with it, as its wire tells them."""

from __future__ import annotations

from types import ModuleType

from holdfast.core import errors
from holdfast.operations.table import HOLDFAST_API, OCTOSTORE, ORCHESTRION, SYSTEM, Operation
from holdfast.transport.http.api import errors as api_errors
from holdfast.transport.http.octostore import errors as octostore_errors
from holdfast.transport.http.orchestrion import errors as orchestrion_errors
from holdfast.transport.http.schemas.errors import Problem, Refusal, TaskRefusal
from holdfast.transport.http.schemas.operation_schema import JSON, Shape

ERROR_MODULES: dict[str, ModuleType] = {
    HOLDFAST_API: api_errors,
    ORCHESTRION: orchestrion_errors,
    OCTOSTORE: octostore_errors,
    SYSTEM: octostore_errors,
}
ENVELOPES = {
    HOLDFAST_API: (Problem, "application/problem+json", "error"),
    ORCHESTRION: (TaskRefusal, JSON, "error"),
    OCTOSTORE: (Refusal, JSON, "code"),
    SYSTEM: (Refusal, JSON, "code"),
}
"""For each family: the form of a refusal, its media type, and the field that holds the code."""

_CALLER = (errors.Unauthenticated, errors.UnknownKey, errors.Forbidden)
_READING = (errors.StoreUnavailable, errors.Overloaded)
_WRITING = (errors.Draining, errors.ValueRefused, errors.OutcomeUnknown, errors.StoreFull)


def refusals_of(operation: Operation, shape: Shape) -> dict[int, list[str]]:
    """Codes by status, both in order."""
    found: set[tuple[int, str]] = {_surprise(operation)}
    for refusal in (*shape.refusals, *_common(operation, shape)):
        found.add(ERROR_MODULES[operation.family].status_and_code(refusal))
    return {status: sorted(code for other, code in found if other == status) for status in sorted(dict(found))}


def _common(operation: Operation, shape: Shape) -> list[type[Exception] | int]:
    kinds: list[type[Exception] | int] = [errors.InsecureTransport]
    ours = operation.family in {HOLDFAST_API, ORCHESTRION}
    if operation.scope is not None:
        kinds += _CALLER
    if operation.limit is not None or operation.scope is not None:
        kinds.append(errors.RateLimited)
    if operation.scope is not None and ours:
        kinds.append(errors.Invalid)  # a key in the address, if nothing else
    if "{" in operation.path:
        kinds.append(400)  # bytes that are no UTF-8
    if shape.body is not None:
        kinds += [errors.Invalid, errors.TooLarge, 413, 415] if ours else [400, 413, 415, 422]
    if shape.once:
        kinds += [errors.IdempotencyConflict, *([errors.InFlight] if operation.family == ORCHESTRION else [])]
    if shape.store:
        kinds += _READING
    if shape.store and operation.method != "GET":
        kinds += _WRITING
    return kinds


def _surprise(operation: Operation) -> tuple[int, str]:
    """What is said when something went wrong on our side."""
    return 500, "server_error" if operation.family in {HOLDFAST_API, ORCHESTRION} else "internal_error"
