"""Traces from the creation of a task to its completion, with a real server and a real collector."""

import os
import subprocess
import sys
import threading
import time

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from holdfast import Client, Worker
from tests.compat.octostore.server import Server
from tests.faults.program import environment, run
from tests.http.job_client import ROOT_KEY, fresh
from tests.mcp.raw_requests import headers_of, new, post
from tests.support import wait_until
from tests.telemetry.receiver import Receiver

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
SERVER_KIND, PRODUCER_KIND, CONSUMER_KIND = 2, 4, 5


@pytest.fixture(scope="module")
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def traced(request, receiver, tmp_path_factory, new_postgres_database):
    """A server that sends its spans to the receiver at once."""
    url = new_postgres_database() if request.param == "postgres" else f"sqlite:///{tmp_path_factory.mktemp('t')}/x.db"
    server = Server(url, ROOT_KEY=ROOT_KEY, OTLP_ENDPOINT=receiver.url, ACCESS_LOG="all")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        server.start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def tracer(receiver):
    """Tracer of a client program."""
    provider = TracerProvider(resource=Resource.create({"service.name": "agent"}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{receiver.url}/v1/traces")))
    trace.set_tracer_provider(provider)
    yield trace.get_tracer("tests")
    provider.shutdown()


def found(receiver, name, **told):
    wait_until(lambda: receiver.named(name, **told), 20)
    return receiver.named(name, **told)[0]


def first(receiver, name, is_it):
    """The first span of this name that is it. Spans that end together may be exported one after another."""
    wait_until(lambda: any(map(is_it, receiver.named(name))), 20)
    return next(filter(is_it, receiver.named(name)))


def test_a_trace_links_the_creation_of_a_task_to_its_completion(traced, receiver, tracer):
    kind, done = fresh("kind"), threading.Event()
    with Client(f"http://127.0.0.1:{traced.port}", ROOT_KEY) as client:
        with tracer.start_as_current_span("plan the work") as planning:
            planned = f"{planning.get_span_context().trace_id:032x}"
            task = client.create_task(type=kind, payload={})
        worker = Worker(client, 1)

        @worker.task(kind)
        def do(context):
            done.set()
            worker.stop()

        worker.run()
        assert done.is_set()
        events = client.task_events(task["id"])["events"]
    sent = found(receiver, f"send {kind}")
    assert (sent.trace, sent.kind, sent.service) == (planned, PRODUCER_KIND, "holdfast")
    assert (sent.told["messaging.system"], sent.told["messaging.operation.type"]) == ("holdfast", "send")
    assert (sent.told["messaging.destination.name"], sent.told["messaging.message.id"]) == (kind, task["id"])
    creating = first(receiver, "POST /v1/tasks", lambda span: span.span == sent.parent)
    assert (creating.trace, creating.kind) == (planned, SERVER_KIND)
    source = (planned, creating.span)
    received = found(receiver, f"receive {kind}")
    assert (received.kind, received.links) == (CONSUMER_KIND, [source])
    processed = found(receiver, f"process {kind}")
    assert (processed.links, processed.service) == ([source], "agent")
    settled = found(receiver, f"settle {kind}")
    assert (settled.trace, settled.links) == (processed.trace, [source]), "completed within the work's own trace"
    assert [event["traceparent"].split("-")[1] for event in events if event["kind"] == "task.created"] == [planned]
    assert [event["traceparent"].split("-")[1] for event in events if event["kind"] == "task.completed"] == [
        processed.trace
    ]
    batch = first(receiver, "holdfast.batch", lambda span: source in span.links)
    assert batch.told["holdfast.batch.commands"] >= 1


def test_a_request_continues_its_callers_trace_and_names_its_route(traced, receiver):
    root = traced.anyone.with_headers(Authorization=f"Bearer {ROOT_KEY}", traceparent=PARENT)
    job = fresh()
    answer = root.post(f"/v1/jobs/{job}/claim", {"owner": "me"})
    span = found(receiver, "POST /v1/jobs/{job_id...}/claim", holdfast__request_id=answer.header("X-Request-Id"))
    assert (span.trace, span.parent, span.kind) == (TRACE, SPAN, SERVER_KIND)
    assert span.told["http.response.status_code"] == 200
    assert span.told["http.route"] == "/v1/jobs/{job_id...}/claim"
    assert span.told["holdfast.account"] == "default"
    (event,) = root.get(f"/v1/events?subject=lease:{job}").json["events"]
    assert event["traceparent"] == f"00-{TRACE}-{span.span}-01"
    assert receiver.paths == {"/v1/traces"}


def test_no_secret_and_no_payload_is_ever_in_a_trace(traced, receiver):
    root, canary, kind = traced.anyone.with_headers(Authorization=f"Bearer {ROOT_KEY}"), fresh("canary"), fresh("kind")
    root.post("/v1/tasks", {"type": kind, "payload": {"x": canary}})
    lease = root.post("/v1/tasks/claim", {"type": kind}).json["task"]["leaseId"]
    life = root.post("/v1/sessions", {"name": fresh("life"), "context": {"x": canary}}).json
    root.get(f"/v1/events?kind={canary}")
    found(receiver, f"receive {kind}")
    last = root.get("/v1/account").header("X-Request-Id")
    found(receiver, "GET /v1/account", holdfast__request_id=last)
    for secret in (ROOT_KEY, lease, canary, life["lease_id"], life.get("secret", life["lease_id"])):
        assert secret.encode() not in receiver.raw


def test_a_server_without_tracing_still_stores_and_returns_traceparents(server):
    account = server.anyone.post("/v1/keys/register").json
    caller = server.anyone.with_headers(Authorization=f"Bearer {account['apiKey']}")
    made = caller.with_headers(traceparent=PARENT).post("/v1/tasks", {"type": "x", "payload": {}}).json
    plain = caller.with_headers(traceparent="00-not-a-trace-01").post("/v1/tasks", {"type": "y", "payload": {}}).json
    assert caller.post("/v1/tasks/claim", {"type": "x"}).json["task"]["traceparent"] == PARENT
    assert "traceparent" not in caller.post("/v1/tasks/claim", {"type": "y"}).json["task"]
    assert [event.get("traceparent") for event in caller.get(f"/v1/tasks/{made['id']}/events").json["events"]] == [
        PARENT, None,
    ]  # fmt: skip
    assert "traceparent" not in caller.get(f"/v1/tasks/{plain['id']}/events").json["events"][0]


def test_opentelemetry_is_not_imported_unless_configured():
    loaded = (
        "holdfast, holdfast.transport.http.server, holdfast.transport.cli.commands.serve, holdfast.client.worker.worker"
    )
    script = f"import sys, {loaded}\n"
    script += "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    subprocess.run([sys.executable, "-c", script], check=True, env=environment({}))


def test_a_server_without_opentelemetry_does_not_start_if_tracing_is_configured(tmp_path):
    (tmp_path / "opentelemetry").mkdir()
    (tmp_path / "opentelemetry" / "__init__.py").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
        ended = run("--store", "memory:", "--port", "0", OTLP_ENDPOINT="http://127.0.0.1:4318")
    assert ended.status == 2
    assert "OpenTelemetry is not installed: pip install 'holdfast[otel]'" in ended.lines[-1]


def test_an_unreachable_collector_delays_no_request():
    server = Server("memory:", OTLP_ENDPOINT="http://127.0.0.1:9").start()
    try:
        began = time.monotonic()
        assert server.anyone.get("/status").status == 200
        server.process.terminate()
        assert server.process.wait(15) == 0
        assert time.monotonic() - began < 8, "the SDK alone would try for ten seconds"
    finally:
        server.close()


def test_the_request_of_a_tool_call_is_in_the_trace_of_the_call(traced, receiver):
    job = fresh()
    message = new("tools/call", name="claim_job", arguments={"job_id": job, "owner": "me"})
    said = post(traced, message, key=ROOT_KEY, traceparent=PARENT, **headers_of(message))
    assert said.json["result"]["structuredContent"]["status"] == "claimed"
    root = traced.anyone.with_headers(Authorization=f"Bearer {ROOT_KEY}")
    (event,) = root.get(f"/v1/events?subject=lease:{job}").json["events"]
    _, belongs_to, caused_by, _ = event["traceparent"].split("-")
    assert belongs_to == TRACE
    wait_until(lambda: [span for span in receiver.spans if span.span == caused_by], 20)
    (inner,) = [span for span in receiver.spans if span.span == caused_by]
    wait_until(lambda: [span for span in receiver.spans if span.span == inner.parent], 20)
    (outer,) = [span for span in receiver.spans if span.span == inner.parent]
    assert (outer.parent, inner.told["holdfast.operation"]) == (SPAN, "claim_job")
