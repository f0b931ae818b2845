"""Errors of each operation, for OpenAPI: every status with its codes."""

from __future__ import annotations

from types import ModuleType

from holdfast.core import errors
from holdfast.operations.operation import HOLDFAST_API, OCTOSTORE, ORCHESTRION, Operation
from holdfast.transport.http.api import errors as api_errors
from holdfast.transport.http.octostore import errors as octostore_errors
from holdfast.transport.http.orchestrion import errors as orchestrion_errors
from holdfast.transport.http.schemas.errors import Problem, Refusal, TaskRefusal
from holdfast.transport.http.schemas.operation_schema import JSON, OperationSchema

ERROR_MODULES: dict[str, ModuleType] = {
    HOLDFAST_API: api_errors,
    ORCHESTRION: orchestrion_errors,
    OCTOSTORE: octostore_errors,
}
ENVELOPES = {
    HOLDFAST_API: (Problem, "application/problem+json", "error"),
    ORCHESTRION: (TaskRefusal, JSON, "error"),
    OCTOSTORE: (Refusal, JSON, "code"),
}
"""For each family: the type of an error body, its media type, and the field that holds the code."""

_AUTHENTICATION = (errors.Unauthenticated, errors.UnknownKey, errors.Forbidden)
_STORE_ERRORS = (errors.StoreUnavailable, errors.ServerOutdated, errors.Overloaded)
_WRITE_ERRORS = (errors.Draining, errors.ValueRefused, errors.OutcomeUnknown, errors.StoreFull)


def refusals_of(operation: Operation, schema: OperationSchema) -> dict[int, list[str]]:
    """Error codes by status, both sorted."""
    found: set[tuple[int, str]] = {_internal_error(operation)}
    for refusal in (*schema.refusals, *_common(operation, schema)):
        found.add(ERROR_MODULES[operation.error_family].status_and_code(refusal))
    return {status: sorted(code for other, code in found if other == status) for status in sorted(dict(found))}


def _common(operation: Operation, schema: OperationSchema) -> list[type[Exception] | int]:
    kinds: list[type[Exception] | int] = [errors.InsecureTransport]
    has_field_errors = operation.error_family in {HOLDFAST_API, ORCHESTRION}
    if operation.scope is not None:
        kinds += _AUTHENTICATION
    if operation.limit is not None or operation.scope is not None:
        kinds.append(errors.RateLimited)
    if operation.scope is not None and has_field_errors:
        kinds.append(errors.Invalid)  # at least for a key in the URL
    if "{" in operation.path:
        kinds.append(400)  # a path that is not UTF-8
    if schema.body is not None:
        kinds += [errors.Invalid, errors.TooLarge, 413, 415] if has_field_errors else [400, 413, 415, 422]
    if schema.takes_idempotency_key:
        kinds += [errors.IdempotencyConflict, *([errors.InFlight] if operation.error_family == ORCHESTRION else [])]
    if schema.uses_store:
        kinds += _STORE_ERRORS
    if schema.uses_store and operation.method != "GET":
        kinds += _WRITE_ERRORS
    return kinds


def _internal_error(operation: Operation) -> tuple[int, str]:
    """Status and code of an unexpected failure."""
    return 500, "server_error" if operation.error_family in {HOLDFAST_API, ORCHESTRION} else "internal_error"
