"""Requests of the load generators.

A script is what one caller does again and again, step by step: claim and release, or create, claim and complete. In a
request `NUMBER` stands for a number of 8 digits that every run of the script draws anew, `FIRST` and `SECOND` for the
text that followed the first and the second marker in an earlier answer of the same run.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence

import msgspec

KEY = "bench-root-key-0123456789abcdef"
NUMBER, FIRST, SECOND = "\x01", "\x02", "\x03"
PAYLOAD = '{"document":"doc-1842","pages":[1,2,3]}'
CLAIM = '{"owner":"bench","ttl_seconds":3600}'
"""Claims that nobody releases outlive the measurement."""
LEASE_ID, TASK_LEASE_ID, TASK_ID = '"lease_id":"', '"leaseId":"', '"id":"'


class Step(msgspec.Struct, frozen=True):
    """One request, and what its answer must look like."""

    head: str
    body: str = ""
    expected: str = "HTTP/1.1 2"
    """How the answer must begin."""
    lines: int = 0
    """Lines of the answer; 0 is an HTTP answer. A request that is not HTTP has no body."""


class Load(msgspec.Struct, frozen=True):
    """Scripts that callers take in turn, and the markers of the texts that later steps need."""

    scripts: Sequence[tuple[Step, ...]]
    markers: tuple[str, ...] = ()
    is_once: bool = False
    keeps_captures: bool = False


def post(path: str, body: str, key: str = KEY) -> Step:
    """A POST request. The load generator adds the length of the body."""
    head = f"POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\nauthorization: Bearer {key}\r\n"
    return Step(head, body)


def get(path: str, key: str = KEY) -> Step:
    """A GET request."""
    return Step(f"GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n")


def request_bytes(path: str, body: bytes, key: str = KEY) -> bytes:
    """A whole POST request, for programs that send it themselves."""
    return f"{post(path, '', key).head}content-length: {len(body)}\r\n\r\n".encode() + body


def echo() -> Load:
    """A request of the size of a claim, for the echo server."""
    return Load([(post("/echo", '{"owner":"bench"}'),)])


def claims(keys: Sequence[str] = (KEY,), prefix: str = "") -> Load:
    """Claims of new jobs, by one key after the other. The captures are what `releases` needs."""
    prefix = prefix or _new_prefix()
    steps = [post(f"/v1/jobs/{prefix}/{NUMBER}/claim", CLAIM, key) for key in keys]
    return Load([(step,) for step in steps], markers=(LEASE_ID,), keeps_captures=True)


def heartbeats(prefix: str, captures: Sequence[tuple[str, str]]) -> Load:
    """Renewals of claimed jobs, one after the other, again and again."""
    return Load([(_held("heartbeat", prefix, number, lease),) for number, lease in captures])


def releases(prefix: str, captures: Sequence[tuple[str, str]]) -> Load:
    """One release of each claimed job."""
    return Load([(_held("release", prefix, number, lease),) for number, lease in captures], is_once=True)


def _held(verb: str, prefix: str, number: str, lease: str) -> Step:
    return post(f"/v1/jobs/{prefix}/{number}/{verb}", json.dumps({"lease_id": lease}, separators=(",", ":")))


def job_cycles() -> Load:
    """Claim and release of new jobs."""
    path = f"/v1/jobs/{_new_prefix()}/{NUMBER}"
    claim = post(f"{path}/claim", '{"owner":"bench"}')
    return Load([(claim, post(f"{path}/release", f'{{"lease_id":"{FIRST}"}}'))], markers=(LEASE_ID,))


def lock_cycles() -> Load:
    """Acquire and release of new locks, on OctoStore's routes."""
    path = f"/locks/{_new_prefix()}-{NUMBER}"
    acquire = post(f"{path}/acquire", '{"ttl_seconds":60}')
    return Load([(acquire, post(f"{path}/release", f'{{"lease_id":"{FIRST}"}}'))], markers=(LEASE_ID,))


def task_cycles() -> Load:
    """Create, claim and complete, one task per request."""
    create = post("/v1/tasks", f'{{"type":"bench","payload":{PAYLOAD}}}')
    claim = post("/v1/tasks/claim", '{"type":"bench","worker_id":"w"}')
    complete = post(f"/v1/tasks/{SECOND}/complete", f'{{"lease_id":"{FIRST}","result":{{"ok":true}}}}')
    return Load([(create, claim, complete)], markers=(TASK_LEASE_ID, TASK_ID))


def _new_prefix() -> str:
    """Names that begin with it are new."""
    return uuid.uuid4().hex[:8]
