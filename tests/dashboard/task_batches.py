"""Creates many tasks in every state with batch requests, without checks against the OpenAPI document."""

import http.client
import json

AT_ONCE = 1_000
CLAIMED_AT_ONCE = 100


def make(root, kind, many, **fields):
    """Create tasks; their ids."""
    made = []
    while len(made) < many:
        items = [
            {"op": "create", "type": kind, "payload": {"n": n}, **fields}
            for n in range(len(made), min(len(made) + AT_ONCE, many))
        ]
        made += [each["task"]["id"] for each in post(root, "/v1/tasks/batch", {"items": items})["results"]]
    return made


def claim(root, kind, many, worker="worker"):
    """Claim tasks; their lease ids by task."""
    leases = {}
    while len(leases) < many:
        limit = min(CLAIMED_AT_ONCE, many - len(leases))
        for task in post(root, "/v1/tasks/claim", {"type": kind, "limit": limit, "worker_id": worker})["tasks"]:
            leases[task["id"]] = task["leaseId"]
    return leases


def kill(root, kind, many, reason="boom", **fields):
    """Create dead letters; their ids."""
    make(root, kind, many, maxAttempts=1)
    leases = list(claim(root, kind, many).items())
    for first in range(0, many, AT_ONCE):
        items = [
            {"op": "fail", "id": task, "lease_id": lease, "reason": reason, **fields}
            for task, lease in leases[first : first + AT_ONCE]
        ]
        post(root, "/v1/tasks/batch", {"items": items})
    return [task for task, _ in leases]


def states(root, kind):
    """Number of tasks of a type by state."""
    counted = root.get("/v1/tasks/counts").json["types"].get(kind, {})
    return {state: many for state, many in counted.items() if many}


def post(root, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", root.port, timeout=60)
    try:
        connection.request("POST", path, json.dumps(body), {**root.headers, "Content-Type": "application/json"})
        answer = connection.getresponse()
        document = json.loads(answer.read())
        assert answer.status == 200, document
        return document
    finally:
        connection.close()
