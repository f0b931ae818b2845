"""Routing: the operation of a method and a raw path. The raw path keeps `%2F` and `/` apart."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from holdfast.core.names import normal_job_id
from holdfast.operations.operation import Operation
from holdfast.operations.table import OPERATIONS
from holdfast.transport.http.request import Header, HttpRefusal

JOBS = b"/v1/jobs/"
V1 = b"/v1/"


class Router:
    """Matches literal paths, paths with one parameter, and job ids, which may contain slashes."""

    def __init__(self, operations: tuple[Operation, ...] = OPERATIONS) -> None:
        self._patterns: dict[bytes, dict[str, Operation]] = {}
        self._job_verbs: dict[str, Operation] = {}
        self._read_job: Operation | None = None
        for operation in operations:
            self._add(operation)

    def _add(self, operation: Operation) -> None:
        path = operation.path
        if path.startswith("/v1/jobs/{job_id...}/"):
            self._job_verbs[path.rsplit("/", 1)[1]] = operation
        elif path == "/v1/jobs/{job_id...}":
            self._read_job = operation
        else:
            parts = ["*" if part.startswith("{") else part for part in path.split("/")]
            self._patterns.setdefault("/".join(parts).encode(), {})[operation.method] = operation

    def find(self, method: str, raw: bytes) -> tuple[Operation, str]:
        """The operation and its path parameter. Raises 404 for an unknown path and 405 for a wrong method."""
        parameter = b""
        is_job = raw.startswith(JOBS)
        if is_job:
            operations, parameter = self._find_job(method, raw[len(JOBS) :])
        else:
            operations = self._patterns.get(raw, {})
            if not operations:
                parts = raw.split(b"/")
                index = 3 if raw.startswith(V1) else 2  # "", "v1", "tasks", id; or "", "locks", name
                # An empty name is routed to its verb ("/locks//acquire"), but a path that ends in "/" is unknown.
                if len(parts) > index and parts[-1]:
                    parameter, parts[index] = parts[index], b"*"
                    operations = self._patterns.get(b"/".join(parts), {})
        if not operations:
            raise HttpRefusal(404, "no operation has this path")
        operation = operations.get("GET" if method == "HEAD" else method)
        if operation is None:
            allowed = ", ".join([*operations, *(["HEAD"] if "GET" in operations else [])])
            raise HttpRefusal(405, f"this path accepts {allowed}", headers=((b"allow", allowed.encode()),))
        decoded = decode_segment(parameter)
        return operation, normal_job_id(decoded) if is_job else decoded

    def allow(self, raw: bytes) -> tuple[Header, ...]:
        """The Allow header of a path; none for a path that has no operation."""
        try:
            self.find("OPTIONS", raw)
        except HttpRefusal as refusal:  # no operation has this method
            return refusal.headers
        return ()  # pragma: no cover - unreachable

    def _find_job(self, method: str, rest: bytes) -> tuple[dict[str, Operation], bytes]:
        assert self._read_job is not None
        if method in {"GET", "HEAD"} or not rest:
            return {"GET": self._read_job}, rest
        literal = self._patterns.get(JOBS + rest)
        if literal is not None:
            return {"GET": self._read_job, **literal}, b""
        job_id, _, verb = rest.rpartition(b"/")
        operation = self._job_verbs.get(verb.decode("latin-1"))
        if method == "POST" and (operation is None or not job_id):
            raise HttpRefusal(404, f"a job id must be followed by one of: {', '.join(self._job_verbs)}")
        if operation is None or not job_id:
            return {"GET": self._read_job}, rest
        # For any other method both readings are possible: a job with this id (GET), or a verb (POST).
        return {"GET": self._read_job, "POST": operation}, job_id


def decode_segment(segment: bytes) -> str:
    """Percent-decode a path segment. Invalid UTF-8 is refused before authentication."""
    try:
        return (unquote_to_bytes(segment) if b"%" in segment else segment).decode()
    except UnicodeDecodeError:
        raise HttpRefusal(400, "the path is not valid UTF-8") from None
