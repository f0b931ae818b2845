"""Differences from the original server that were found side by side, and are closed.

What needs no connection runs on the application in this process.
"""

import pytest

from holdfast.core.names.alphanumeric import is_alphanumeric
from holdfast.core.webhooks.webhook import OCTOSTORE, STANDARD, Webhook, retry_schedule
from holdfast.settings import BadSettings, load
from holdfast.settings.loading import default_streams
from holdfast.transport.http.octostore import watches
from holdfast.transport.http.streams.limits import StreamLimits, account_share
from tests.compat.octostore.expect import acquired, error_envelope, exact, malformed, refused, success
from tests.compat.octostore.server import ADMIN_KEY, ALLOWED_ORIGIN, TOKENS, bearer
from tests.faults.raw_socket import connect, read_answer, talk
from tests.http.in_process_app import VARIABLES, InProcessServer
from tests.http.job_client import ROOT_KEY

GIBIBYTE = 1024**3
PAGE = "http://localhost:3000"


@pytest.fixture(scope="module")
def local():
    """A server in this process that allows one origin."""
    server = InProcessServer(variables=VARIABLES | {"HOLDFAST_ALLOWED_ORIGINS": f"{PAGE}, https://octostore.io"})
    yield server
    server.close()


@pytest.fixture
def local_alice(local):
    return bearer(local.port, TOKENS["alice-1"], "alice-1")


# -- optional fields -----------------------------------------------------------------------------------------------

OPTIONAL = ("ttl_seconds", "metadata", "session_id", "ephemeral", "lock_delay_seconds", "acl")


def test_every_optional_field_of_acquire_may_be_null(local_alice, lock):
    for field in OPTIONAL:
        acquired(local_alice.acquire(f"{lock}-{field}", **{field: None}))
    acquired(local_alice.acquire(lock, **dict.fromkeys(OPTIONAL)))


def test_null_is_no_reason_to_answer_before_authentication(local):
    refused(local.anyone.acquire("name", ephemeral=None), 401, "authentication_required")
    malformed(local.anyone.acquire("name", ephemeral=1), 422)


def test_optional_fields_of_other_bodies_may_be_null(local_alice, lock, election):
    lease = acquired(local_alice.acquire(lock))
    success(local_alice.renew(lock, lease["lease_id"], ttl_seconds=None))
    success(local_alice.open_session(ttl_seconds=None), 201)
    success(local_alice.campaign(election, ttl_seconds=None, metadata=None))
    hook = {"url": "https://example.com/", "secret": None, "events": None, "lock_pattern": None}
    success(local_alice.post("/webhooks", hook), 201)


# -- origins -------------------------------------------------------------------------------------------------------

READS = {
    "success": ("GET", "/health"),
    "refusal": ("GET", "/locks"),
    "route miss": ("GET", "/nowhere"),
    "our own API": ("GET", "/v1/jobs"),
    "preflight": ("OPTIONS", "/locks/name/acquire"),
}


@pytest.mark.parametrize("call", READS.values(), ids=READS)
def test_a_configured_origin_is_allowed_on_every_route(local, call):
    for origin in (PAGE, "https://octostore.io"):
        answer = local.anyone.with_headers(Origin=origin).send(*call)
        assert answer.header("Access-Control-Allow-Origin") == origin
        assert answer.header("Access-Control-Allow-Credentials") is None
    for origin in ("https://evil.example", "null", f"{PAGE}0", "http://localhost"):
        answer = local.anyone.with_headers(Origin=origin).send(*call)
        assert answer.header("Access-Control-Allow-Origin") is None
    assert local.anyone.send(*call).header("Access-Control-Allow-Origin") is None


def test_a_configured_origin_is_allowed_over_a_connection(alice):
    answer = alice.with_headers(Origin=ALLOWED_ORIGIN).get("/locks")
    assert (answer.status, answer.header("Access-Control-Allow-Origin")) == (200, ALLOWED_ORIGIN)
    assert alice.get("/locks").header("Access-Control-Allow-Origin") is None


def test_pages_of_a_configured_origin_cannot_use_the_forms_of_the_dashboard(local):
    form = {"Origin": PAGE, "Content-Type": "application/x-www-form-urlencoded"}
    assert local.answer("POST", "/ui/sign-in", b"key=x", form).status == 403


# -- exact bodies --------------------------------------------------------------------------------------------------

BODIES = {
    "/admin/status": {
        "active_locks", "healthy", "locks", "total_acquires", "total_releases", "total_users",
        "uptime_seconds", "users",
    },
    "/metrics": {
        "active_locks", "endpoints", "lock_store", "memory_bytes", "requests_per_second", "total_requests",
        "total_users", "uptime_seconds",
    },
    "/admin/metrics/timeseries": {
        "acquire_rates", "active_locks", "release_rates", "request_volume", "timestamps", "window",
    },
}  # fmt: skip


@pytest.mark.parametrize("path", BODIES)
def test_admin_bodies_have_exactly_the_fields_of_the_original(local, path):
    body = exact(local.anyone.with_headers(X_Admin_Key=ADMIN_KEY).get(path))
    assert body.keys() == BODIES[path]
    assert [*body] == sorted(body)


def test_only_users_are_counted_as_users():
    tokens = "alice:alice-secret-for-this-test-only,bob:bob-secret-for-this-test-only"
    variables = {"HOLDFAST_STATIC_TOKENS": tokens, "HOLDFAST_ADMIN_KEY": ADMIN_KEY, "HOLDFAST_ROOT_KEY": ROOT_KEY}
    server = InProcessServer(variables=variables)
    try:
        admin = server.anyone.with_headers(X_Admin_Key=ADMIN_KEY)
        status = exact(admin.get("/admin/status"))
        assert {user["github_username"] for user in status["users"]} == {"alice", "bob"}
        assert status["total_users"] == 2
        assert exact(admin.get("/metrics"))["total_users"] == 2
        assert success(server.anyone.get("/status"))["total_users"] == 2
    finally:
        server.close()


# -- limits and settings -------------------------------------------------------------------------------------------


def test_the_limit_of_streams_follows_the_memory():
    assert account_share(default_streams(2 * GIBIBYTE)) > 2_300
    assert default_streams(64 * GIBIBYTE) > 10 * default_streams(4 * GIBIBYTE)
    assert default_streams(0) == 2_000
    assert load({}, {"HOLDFAST_MAX_STREAMS": "77"})[0].max_streams == 77


def test_one_user_watches_as_many_locks_as_half_of_the_streams():
    limits = StreamLimits(load({}, {"HOLDFAST_MAX_STREAMS": "6000"})[0])
    watches_of_alice = [limits.per_account.acquire("alice") for _ in range(3_000)]
    for watch in watches_of_alice:
        watch.__enter__()
    assert watches.MAX_BUFFERED == 100
    for watch in watches_of_alice:
        watch.__exit__(None, None, None)


def test_short_tokens_are_refused_unless_a_setting_accepts_them():
    short = {"HOLDFAST_STATIC_TOKENS": "alice:a,bob:short", "HOLDFAST_ADMIN_KEY": "adm"}
    with pytest.raises(BadSettings, match="at least 24") as refusal:
        load({"store": "memory:"}, short)
    assert len(refusal.value.problems) == 3
    assert all("HOLDFAST_ALLOW_SHORT_TOKENS" in problem for problem in refusal.value.problems)
    settings, warnings = load({"store": "memory:"}, short | {"HOLDFAST_ALLOW_SHORT_TOKENS": "true"})
    assert settings.static_tokens == (("alice", "a"), ("bob", "short"))
    assert len(warnings) == 3
    assert not any("short" in warning or " a " in warning for warning in warnings), "a warning repeats a token"
    with pytest.raises(BadSettings, match="ROOT_KEY"):
        load({"store": "memory:"}, {"HOLDFAST_ROOT_KEY": "short", "HOLDFAST_ALLOW_SHORT_TOKENS": "true"})


# -- registration --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sign_up():
    server = InProcessServer(variables={"HOLDFAST_LOCAL_REGISTRATION": "true", "HOLDFAST_ROOT_KEY": ROOT_KEY})
    yield lambda username, **fields: server.anyone.post("/auth/register", {"username": username, **fields})
    server.close()


NAMESPACES = {"": None, "/": None, "///": None, "/team-a/": "team-a", "a.b": "a.b", "team_1": "team_1"}


@pytest.mark.parametrize("sent", NAMESPACES)
def test_slashes_around_a_namespace_are_stripped(sign_up, lock, sent):
    assert success(sign_up(lock[:60], namespace=sent))["namespace"] == NAMESPACES[sent]


@pytest.mark.parametrize("namespace", ["a/b", "a b", "é", "x" * 65])
def test_other_namespaces_are_refused(sign_up, lock, namespace):
    malformed(sign_up(lock[:60], namespace=namespace), 400)


@pytest.mark.parametrize("username", ["a b", "a.b", "é", " sp ", "x" * 65, ""])
def test_a_username_has_letters_digits_and_hyphens(sign_up, username):
    malformed(sign_up(username), 400)


@pytest.mark.parametrize("username", ["admin", "root", "Root"])
def test_names_of_the_operator_are_taken(sign_up, username):
    refused(sign_up(username), 409, "conflict")


# -- webhooks ------------------------------------------------------------------------------------------------------


def test_an_octostore_webhook_is_retried_within_a_tenth_of_a_second_and_then_by_the_schedule():
    schedule = retry_schedule(Webhook("default", "w", family=OCTOSTORE), (5, 300))
    assert schedule[0] * 1.2 + 0.05 < 0.1
    assert schedule[1:] == (5, 300)
    assert retry_schedule(Webhook("default", "w", family=STANDARD), (5, 300)) == (5, 300)


# -- lock names ----------------------------------------------------------------------------------------------------

ALPHANUMERIC = ["ครู", "ລຸ", "\u0345", "\u0363", "\u24b6", "\u2160", "\U00016d40", "\U000323b0", "\u00bd", "é"]
OTHERS = ["\u0301", "\u200d", "\ufe0f", "\u0e47", "\u20dd", "\u0558", "😀", "\u3000"]


@pytest.mark.parametrize("name", ALPHANUMERIC)
def test_lock_names_have_every_alphanumeric_character_of_unicode(local_alice, name):
    acquired(local_alice.acquire(name))


@pytest.mark.parametrize("name", OTHERS)
def test_lock_names_have_no_other_characters(local_alice, name):
    refused(local_alice.acquire(f"a{name}"), 400, "invalid_lock_name")


def test_the_table_of_alphanumeric_characters_is_complete():
    """The number of characters with the property in Unicode 17.0.0, counted with another implementation."""
    assert sum(is_alphanumeric(chr(point)) for point in range(0x33480)) == 149_106
    assert not any(is_alphanumeric(chr(point)) for point in range(0x33480, 0x110000, 97))


# -- requests on a connection --------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["Authorization", "X-Admin-Key", "X-OctoStore-Admin-Key"])
@pytest.mark.parametrize("path", ["/locks", "/metrics", "/v1/jobs", "/mcp", "/nowhere"])
def test_a_credential_that_is_sent_twice_is_refused(server, header, path):
    value = f"Bearer {TOKENS['alice-1']}" if header == "Authorization" else ADMIN_KEY
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    for second in (value, "Bearer other"):
        answer = talk(server.port, f"{head}{header}: {value}\r\n{header.lower()}: {second}\r\n\r\n".encode())
        assert answer is not None
        assert answer.status == 400
        assert "twice" in answer.raw.decode()


def test_other_headers_may_be_repeated(server):
    head = f"GET /locks HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {TOKENS['alice-1']}\r\n"
    answer = talk(server.port, f"{head}Accept: a/b\r\nAccept: c/d\r\n\r\n".encode())
    assert answer is not None
    assert answer.status == 200


def test_an_http_1_0_connection_is_kept_for_a_client_that_asks(server):
    kept = b"GET /health HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"
    with connect(server.port) as connection:
        for _ in range(3):
            connection.sendall(kept)
            answer = read_answer(connection)
            assert (answer.status, answer.header("Connection")) == (200, "keep-alive")
        connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        answer = read_answer(connection)
        assert (answer.status, answer.header("Connection")) == (200, "close")
        assert connection.recv(1) == b""


@pytest.mark.parametrize("method", ["BREW", "x-check", "GETS"])
def test_an_unknown_method_is_not_allowed(server, method):
    answer = talk(server.port, f"{method} /locks HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert answer is not None
    error_envelope(answer, 405, "invalid_input")


@pytest.mark.parametrize("line", ["GET", "(x) /locks HTTP/1.1", "BREW /locks HTTP/9"])
def test_what_is_no_request_line_is_a_bad_request(server, line):
    answer = talk(server.port, f"{line}\r\nHost: x\r\n\r\n".encode())
    assert answer is not None
    error_envelope(answer, 400, "invalid_input")


METHODS = {
    "/locks": {"GET", "HEAD"},
    "/locks/name": {"GET", "HEAD"},
    "/locks/name/acquire": {"POST"},
    "/webhooks": {"GET", "HEAD", "POST"},
    "/nowhere": set(),
}


@pytest.mark.parametrize("path", METHODS)
def test_options_has_the_methods_of_the_path(local, path):
    answer = local.anyone.send("OPTIONS", path)
    assert answer.status == 200
    assert {word.upper() for word in answer.words("Allow")} == METHODS[path]
