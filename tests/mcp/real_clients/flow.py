"""What every client does: list the tools, own a job to its end, and complete a task.

Imports nothing of ours or of a client: it runs in the virtual environment of each of them.
"""

import asyncio
import json


def use(name, tools, call):
    """Run the steps one after the other; `call` takes a tool and its arguments and returns its result as a document.

    Returns what the runner checks.
    """
    job, kind = f"clients/{name}", f"clients-{name}"
    mine = call("claim_job", {"jobId": job, "owner": name, "ttlMs": 60000, "metadata": {"client": name}})
    kept = call("heartbeat_job", {"jobId": job, "leaseId": mine["lease_id"], "checkpoint": {"step": 1}})
    released = call(
        "release_job", {"jobId": job, "leaseId": mine["lease_id"], "outcome": "done", "result": {"by": name}}
    )
    made = call("create_task", {"type": kind, "payload": {"n": 1}})
    taken = call("claim_task", {"type": kind, "workerId": name, "waitMs": 1000})
    done = call("complete_task", {"id": taken["id"], "leaseId": taken["leaseId"], "result": {"by": name}})
    return {
        "tools": sorted(tools),
        "job": [mine["status"], kept["status"], released["status"]],
        "task": [made["status"], taken["status"], done["status"]],
    }


async def use_async(name, tools, call):
    """The same with an asynchronous `call`."""
    # The steps are written once: they run in a thread, which hands each call to this event loop.
    loop = asyncio.get_running_loop()

    def call_from_thread(tool, arguments):
        return asyncio.run_coroutine_threadsafe(call(tool, arguments), loop).result(60)

    return await asyncio.to_thread(use, name, tools, call_from_thread)


def document(answer):
    """The JSON document in what a client returns: a document already, its text, or a list of content blocks."""
    if isinstance(answer, dict):
        return json.loads(answer["text"]) if answer.get("type") == "text" else answer
    if isinstance(answer, list | tuple):
        return document(answer[0])
    if isinstance(answer, str):
        return json.loads(answer)
    return document(answer.text)
