"""Which operation a raw path means. Matching is on the raw path, so that `%2F` and `/` stay apart."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from holdfast.operations.table import OPERATIONS, Operation
from holdfast.transport.http.request import HttpRefusal

JOBS = b"/v1/jobs/"
V1 = b"/v1/"


class Router:
    """Literal paths, paths with one free segment, and job ids that may have slashes."""

    def __init__(self, operations: tuple[Operation, ...] = OPERATIONS) -> None:
        self._shapes: dict[bytes, dict[str, Operation]] = {}
        self._jobs: dict[str, Operation] = {}
        self._job: Operation | None = None
        for operation in operations:
            self._add(operation)

    def _add(self, operation: Operation) -> None:
        path = operation.path
        if path.startswith("/v1/jobs/{job_id...}/"):
            self._jobs[path.rsplit("/", 1)[1]] = operation
        elif path == "/v1/jobs/{job_id...}":
            self._job = operation
        else:
            parts = ["*" if part.startswith("{") else part for part in path.split("/")]
            self._shapes.setdefault("/".join(parts).encode(), {})[operation.method] = operation

    def find(self, method: str, raw: bytes) -> tuple[Operation, str]:
        """The operation and its path parameter; 404 for no such path, 405 for another method."""
        parameter = b""
        if raw.startswith(JOBS):
            operations, parameter = self._find_job(method, raw[len(JOBS) :])
        else:
            operations = self._shapes.get(raw, {})
            if not operations:
                parts = raw.split(b"/")
                place = 3 if raw.startswith(V1) else 2  # "", "v1", "tasks", id; or "", "locks", name
                # An empty name reaches its verb ("/locks//acquire"), but a path that ends in "/" goes nowhere.
                if len(parts) > place and parts[-1]:
                    parameter, parts[place] = parts[place], b"*"
                    operations = self._shapes.get(b"/".join(parts), {})
        if not operations:
            raise HttpRefusal(404, "there is nothing at this path")
        operation = operations.get("GET" if method == "HEAD" else method)
        if operation is None:
            allowed = ", ".join([*operations, *(["HEAD"] if "GET" in operations else [])])
            raise HttpRefusal(405, f"this path answers {allowed}", headers=((b"allow", allowed.encode()),))
        return operation, decode_segment(parameter)

    def _find_job(self, method: str, rest: bytes) -> tuple[dict[str, Operation], bytes]:
        assert self._job is not None
        if method in {"GET", "HEAD"} or not rest:
            return {"GET": self._job}, rest
        job_id, _, verb = rest.rpartition(b"/")
        operation = self._jobs.get(verb.decode("latin-1"))
        if method == "POST" and (operation is None or not job_id):
            raise HttpRefusal(404, f"after the job id comes one of: {', '.join(self._jobs)}")
        if operation is None or not job_id:
            return {"GET": self._job}, rest
        # For any other method: the path is a job's to look at, and a verb's to ask for.
        return {"GET": self._job, "POST": operation}, job_id


def decode_segment(segment: bytes) -> str:
    """Percent-decode; bytes that are no UTF-8 are refused here, before anybody is asked for a key."""
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise HttpRefusal(400, "the path is not valid UTF-8") from None
