"""Log lines: one per record, shortened, escaped and without secrets."""

import io
import json
import logging

import pytest

from holdfast.telemetry import logs
from tests.compat.octostore.expect import success
from tests.compat.orchestrion.account import register
from tests.http.job_client import agent, claimed, fresh
from tests.support import wait_until

KEY = "hf_live_" + "a" * 32 + "_Zz9y8x"
UUID = "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"


@pytest.fixture
def heard():
    """Configure logging in a format; returns the output."""
    names = ("", "holdfast")
    before = [(logging.getLogger(name).level, logging.getLogger(name).handlers[:]) for name in names]

    def hear(form, say):
        stream = io.StringIO()
        logs.set_up(form, "info", stream)
        say(logging.getLogger("holdfast.test"))
        return stream.getvalue()

    yield hear
    for name, (level, handlers) in zip(names, before, strict=True):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.handlers[:] = handlers


def test_a_record_is_one_line_of_json_with_its_fields(heard):
    fields = {"request_id": "req_1", "account": "default", "status": 503, "duration_seconds": 0.25, "body": "secret"}
    line = heard("json", lambda log: log.warning("%d of them\nfailed", 3, extra=fields))
    assert line.count("\n") == 1
    told = json.loads(line)
    assert told.pop("time").endswith("Z")
    assert told == {
        "level": "warning", "logger": "holdfast.test", "message": "3 of them\\u000afailed", "request_id": "req_1",
        "account": "default", "status": 503, "duration_seconds": 0.25,
    }  # fmt: skip


def test_without_a_terminal_it_is_json_and_text_when_asked_for(heard):
    assert json.loads(heard(None, lambda log: log.error("x")))["message"] == "x"
    assert heard("text", lambda log: log.error("x", extra={"status": 500})) == "ERROR holdfast.test: x status=500\n"


def test_a_traceback_has_locations_but_no_source_lines(heard):
    def fail(log):
        try:
            int(f"a payload of {KEY}")
        except ValueError:
            log.exception("it failed")

    told = json.loads(heard("json", fail))
    assert told["error"] == "ValueError: invalid literal for int() with base 10: 'a payload of hf_live_...9y8x'"
    assert told["traceback"][-1].endswith(" fail")
    assert "int(f" not in json.dumps(told)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (KEY, "hf_live_...9y8x"),
        (f"lease {UUID} is lost", "lease 1b9d...4bed is lost"),
        ("Authorization: Bearer some-static-token-of-mine", "Authorization: Bearer ...mine"),
        ("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "whsec_...b7oD"),
        ("postgresql://me:pass@db.example/x is away", "postgresql://...@db.example/x is away"),
        ("\x1b[31mred\x07\u202eback\u0085", "\\u001b[31mred\\u0007\\u202eback\\u0085"),
        ("x" * 300, "x" * 255 + "…"),
        ("lease_id and token are words", "lease_id and token are words"),
    ],
)
def test_secrets_are_reduced_to_their_ends_and_control_characters_escaped(said, kept):
    assert logs.redact(said) == kept


def test_no_secret_and_no_payload_is_ever_in_the_log_of_a_server(server):
    alice, account, canary = agent(server), register(server.anyone), fresh("canary")
    job = fresh()
    lease = claimed(alice.claim(job, metadata={"x": canary}))
    held = account.create(type="x", payload={"x": canary})
    assert held.status == 201
    taken = account.claim(type="x").json["task"]
    account.complete(taken["id"], lease_id=taken["leaseId"], result={"x": canary})
    life = success(alice.post("/v1/sessions", {"name": fresh("life"), "context": {"x": canary}}), 201)
    secrets = {alice.token, account.token, lease["lease_id"], taken["leaseId"], life["lease_id"], canary}
    secrets |= {life[name] for name in ("secret",) if name in life}
    assert len(secrets) >= 6
    alice.with_headers(Authorization=f"Bearer {canary}").get("/locks?prefix=" + canary)
    wait_until(lambda: taken["id"] in everything(server))
    log = everything(server)
    for secret in secrets:
        assert secret not in log
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    claim = next(line for line in lines if line.get("subject") == job)
    assert (claim["operation"], claim["status"], claim["account"]) == ("claim_job", 200, "default")
    assert 0 < claim["duration_seconds"] < 30
    assert claim["request_id"].startswith("req_")


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize("secret", [KEY, UUID, UUID.upper(), "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"])
def test_keys_and_lease_ids_in_a_path_are_not_logged(heard, form, secret):
    told = heard(form, lambda log: log.warning("GET /v1/jobs", extra={"subject": f"deploy/{secret}/x"}))
    assert secret not in told
    assert "deploy/" in told
    assert "deploy/staging-2026" in heard(form, lambda log: log.warning("x", extra={"subject": "deploy/staging-2026"}))


def everything(server):
    server.output.seek(0)
    return server.output.read().decode(errors="replace")


def test_by_default_only_errors_and_slow_requests_are_logged(server):
    from holdfast.transport.http.access import access_log
    from holdfast.transport.http.request import Request

    told = []
    handler = logging.Handler()
    handler.emit = told.append
    access_log.log.addHandler(handler)
    try:
        request = Request({"headers": [], "method": "GET", "path": "/x"}, None)
        for choice, status, seconds in [
            ("errors", 200, 0.1), ("errors", 404, 0.1), ("errors", 500, 0.1), ("errors", 200, 5.0),
            ("off", 500, 5.0), ("all", 200, 0.1),
        ]:  # fmt: skip
            access_log.log_request(choice, request, status, seconds)
        request.is_waiting = True
        access_log.log_request("errors", request, 200, 20.0)
        link = Request({"headers": [], "method": "GET", "path": "/ui/enter/the-secret"}, None)
        access_log.log_request("errors", link, 500, 0.1)
    finally:
        access_log.log.removeHandler(handler)
    assert [record.status for record in told if record.levelno >= logging.WARNING] == [500, 200, 500]
    assert [record.getMessage() for record in told][-2:] == ["GET no route", "GET /ui"]
