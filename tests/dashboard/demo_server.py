"""Server with sample data for screenshots: forty minutes of scripted activity."""

import contextlib
import http.client
import json
import random
import socket
import threading
import time

import uvicorn

from holdfast.app import sync_credentials
from holdfast.engine.engine import Engine
from holdfast.engine.rollups.counting import count_log
from holdfast.settings import Settings
from holdfast.store.memory.store import MemoryStore
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from tests.http.job_client import ROOT_KEY, Agent, job_path
from tests.support import wait_until

MINUTES = 40
LAST_MOMENTS = 115
FAR_AHEAD, EVENTS = 2**62, 100_000
"""Whenever an account was counted last, all of its events are counted."""
WORKERS = ("claude-backend", "claude-docs", "codex-api", "gemini-review", "cursor-ui")
QUEUES = ("process_document", "review_pull_request", "render_thumbnail", "summarize_thread")

FILES = (
    ("acme/shop", "claude-backend", ["src/cart/", "tests/test_cart.py"], {"reason": "#1842: rounding of refunds"}),
    ("acme/shop", "codex-api", ["src/api/routes.py", "src/api/schemas/*.py"], {"reason": "add the refund endpoint"}),
    ("acme/shop", "claude-docs", ["docs/**", "README.md"], {"reason": "describe refunds"}),
    ("acme/shop", "gemini-review", ["src/payment/"], {"mode": "shared", "reason": "review of #1839"}),
    ("acme/shop", "cursor-ui", ["src/payment/"], {"mode": "shared"}),
    ("acme/website", "cursor-ui", ["assets/*.css"], {"reason": "dark theme"}),
)


class DemoServer:
    """A server in this process, with a clock that the script can set back."""

    def __init__(self):
        self.shift = -MINUTES * 60_000_000
        self.engine = Engine(MemoryStore(lambda: time.time_ns() // 1000 + self.shift))
        self.engine.start()
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        settings = Settings(port=self.port, root_key=ROOT_KEY)
        sync_credentials(self.engine, settings)
        config = uvicorn.Config(App(HandlerContext(self.engine, settings)), log_config=None, ws="none", lifespan="on")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]}, daemon=True)
        self._thread.start()
        wait_until(lambda: self._server.started, 30)
        self.root = Agent(self.port, {"Authorization": f"Bearer {ROOT_KEY}"}, "root", ROOT_KEY)

    def pass_time(self, seconds):
        """Advance scripted time, at most to the wall clock."""
        self.shift = min(self.shift + int(seconds * 1_000_000), 0)
        self.engine.sweep.wake()

    def count_events(self):
        """Add what happened to the roll-ups, as the thread of a server does once a minute."""
        store = self.engine.store
        for uncounted in store.rollups.uncounted(FAR_AHEAD, 10):
            counted, _ = count_log(store, uncounted, EVENTS, lambda _: False)
            store.rollups.add([counted], {})

    def close(self):
        self.engine.drain()
        self._server.should_exit = True
        self._thread.join(10)
        self.engine.stop()


def play(stage):
    """Fill the server with activity that has not ended yet."""
    rng = random.Random(1842)
    root = stage.root
    sessions = [_session(root, name, rng) for name in WORKERS[:4]]
    root.post("/elections/nightly-report/campaign", {"candidate_id": "claude-backend", "ttl_seconds": 30})
    for minute in range(MINUTES - 2):
        _minute(stage, rng, sessions, minute)
    stage.pass_time(-stage.shift / 1_000_000 - LAST_MOMENTS)
    for session in sessions:
        root.post(f"/v1/sessions/{session['session_id']}/heartbeat", {"lease_id": session["lease_id"]})
    _last_moments(stage, sessions)


def _session(root, name, rng):
    return root.post(
        "/v1/sessions",
        {
            "name": name,
            "ttl_seconds": 3600,
            "turn": rng.randrange(3, 60),
            "last_action": "read the failing test",
            "next_action": "write the fix, then run the suite",
            "memory_ref": f"https://notes.example/{name}",
            "context": {"branch": f"fix/{name}", "files": ["src/cart.py", "tests/test_cart.py"], "budget_left": 41},
        },
    ).json


def _minute(stage, rng, sessions, minute):
    """One minute: tasks are created and completed, and at times a deployment gets a new owner."""
    root = stage.root
    for _ in range(rng.randrange(4, 9) + (8 if 18 < minute < 26 else 0)):
        root.post("/v1/tasks", {"type": rng.choice(QUEUES), "payload": {"page": minute}, "maxAttempts": 2})
    if minute % 9 == 0:
        name = WORKERS[minute // 9 % len(WORKERS)]
        held = root.claim("deploy/staging", name, ttl_seconds=300, metadata={"pull_request": 370 + minute}).json
        stage.pass_time(20)
        if minute % 27 and held["status"] == "claimed":
            root.release_job("deploy/staging", held["lease_id"], note="rolled out")
    for _ in range(rng.randrange(3, 9) + (5 if 22 < minute < 30 else 0)):
        session = rng.choice(sessions)
        taken = root.post("/v1/tasks/claim", {"types": list(QUEUES), "workerId": session["name"]}).json
        if "id" not in taken:
            continue
        stage.pass_time(1)
        outcome = "fail" if rng.random() < 0.08 else "complete"
        body = {
            "leaseId": taken["leaseId"],
            **({"reason": "no such page"} if outcome == "fail" else {"result": {"ok": True}}),
        }
        root.post(f"/v1/tasks/{taken['id']}/{outcome}", body)
    for session in sessions:
        root.post(f"/v1/sessions/{session['session_id']}/heartbeat", {"lease_id": session["lease_id"]})
    stage.pass_time(rng.randrange(38, 56))
    stage.count_events()


def _last_moments(stage, sessions):
    """Leases of every age, a waiting caller, and a lease that is no longer renewed."""
    root = stage.root
    root.claim("github/acme/shop/1842", "codex-api", ttl_seconds=120, metadata={"branch": "fix/cart"})
    stage.pass_time(40)
    root.claim("nightly-report", "gemini-review", ttl_seconds=90)
    root.post("/elections/cache-owners-eu/campaign", {"candidate_id": "claude-backend", "ttl_seconds": 120})
    stage.pass_time(30)
    session = sessions[0]
    about = {"pull_request": 377, "commit": "9f3c2e1", "run": "https://ci.example/runs/377"}
    held = root.claim(
        "deploy/staging", session["name"], ttl_seconds=120, session_id=session["session_id"], metadata=about
    ).json  # fmt: skip
    for session in sessions[1:]:
        root.post(
            "/v1/tasks/claim", {"types": list(QUEUES), "workerId": session["name"], "sessionId": session["session_id"]}
        )
    stage.pass_time(20)
    progress = {"note": "migrations done, rolling out 3 of 8", "progress": {"done": 3, "of": 8}}
    root.heartbeat("deploy/staging", held["lease_id"], **progress, checkpoint={"host": "web-3"})
    root.claim("docs/reference", "claude-docs", ttl_seconds=120)
    root.post("/locks/cache-warmup/acquire", {"ttl_seconds": 60})
    root.post("/elections/nightly-report/campaign", {"candidate_id": "codex-api", "ttl_seconds": 300})
    _reserve_files(stage, sessions)
    for name in ("cursor-ui", "gemini-review"):
        _wait(stage.port, job_path("deploy/staging", "/claim"), {"owner": name})
    wait_until(lambda: stage.engine.name_waiters.size() == 2, 30)
    stage.pass_time(25)
    wanted = {"space": "acme/shop", "paths": ["src/cart/**/*.py"], "reason": "rename Basket to Cart"}
    _wait(stage.port, "/v1/reservations", {"owner": "cursor-ui", **wanted})
    wait_until(lambda: stage.engine.reservation_waiters.size() == 1, 30)
    stage.count_events()


def _reserve_files(stage, sessions):
    """Agents that share a repository."""
    for space, owner, paths, more in FILES:
        body = {"space": space, "owner": owner, "paths": paths, "ttl_seconds": 300, **more}
        if owner == sessions[0]["name"]:
            body["session_id"] = sessions[0]["session_id"]
        assert stage.root.post("/v1/reservations", body).json["status"] == "reserved", paths


def _wait(port, path, body):
    """Wait for something while screenshots are taken."""
    threading.Thread(target=_send, args=(port, path, body | {"wait_seconds": 60}), daemon=True).start()


def _send(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"Authorization": f"Bearer {ROOT_KEY}", "Content-Type": "application/json"}
    with contextlib.suppress(OSError):
        connection.request("POST", path, json.dumps(body), headers)
        connection.getresponse().read()
