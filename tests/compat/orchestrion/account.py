"""An account with the verbs of the task API."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.compat.octostore.wire import Answer, Caller

TYPE = "work"
BY_ID = ("claim", "heartbeat", "complete", "fail", "cancel", "requeue")


@dataclass(frozen=True)
class Account(Caller):
    """A caller with its own key and tasks."""

    id: str = ""

    def create(self, **fields: object) -> Answer:
        return self.post("/v1/tasks", {"type": TYPE, "payload": {}, **fields})

    def claim(self, **fields: object) -> Answer:
        """Claim the next task."""
        return self.post("/v1/tasks/claim", {"type": TYPE, **fields})

    def list(self, query: str = "") -> Answer:
        return self.get(f"/v1/tasks{query and '?'}{query}")

    def read_task(self, task_id: str) -> Answer:
        return self.get(f"/v1/tasks/{task_id}")

    def do(self, verb: str, task_id: str, **fields: object) -> Answer:
        """Any of the verbs BY_ID; without fields there is no body at all."""
        path = f"/v1/tasks/{task_id}/{verb}"
        return self.post(path, fields) if fields else self.post(path)

    def complete(self, task_id: str, **fields: object) -> Answer:
        return self.do("complete", task_id, **fields)

    def fail(self, task_id: str, **fields: object) -> Answer:
        return self.do("fail", task_id, **fields)


def register(anyone: Caller) -> Account:
    """A new account and its only key."""
    body = anyone.post("/v1/keys/register").json
    key = body["apiKey"]
    return Account(anyone.port, {"Authorization": f"Bearer {key}"}, token=key, id=body["accountId"])


def all_at_once(count: int, call: Callable[[int], Answer]) -> list[Answer]:
    """Run `count` calls at the same time."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(call, range(count)))
