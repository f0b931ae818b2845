"""The examples of all operations: recorded from calls, in the order of the table of operations."""

from __future__ import annotations

import json
from typing import Any

from holdfast.operations.table import OPERATIONS
from tests.openapi.examples import access, system, work
from tests.openapi.examples.recorder import Recorder, replace_random_values


def record() -> dict[str, Any]:
    """Make every call and return the example of each operation."""
    api = Recorder()
    opened = [api]
    try:
        for calls in (work.jobs, work.files, work.tasks, work.questions, work.sessions, work.log):
            calls(api)
        for calls in (
            access.accounts,
            access.webhooks,
            access.octostore,
            access.elections,
            system.system,
            system.documents,
        ):
            calls(api)
        opened.append(access.plans())
    finally:
        for each in opened:
            each.close()
    found = {name: example for each in opened for name, example in each.recorded.items()}
    missing = {operation.name for operation in OPERATIONS} - found.keys()
    assert not missing, f"no example call of {sorted(missing)}"
    examples: dict[str, Any] = json.loads(replace_random_values(json.dumps(found, ensure_ascii=False)))
    return {operation.name: examples[operation.name] for operation in OPERATIONS}


def file_text(examples: dict[str, Any]) -> str:
    """The file: one line for each operation."""
    lines = (f"{json.dumps(name)}: {json.dumps(example, ensure_ascii=False)}" for name, example in examples.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"
