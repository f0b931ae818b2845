"""Client addresses behind proxies, keys over plain HTTP, and the limit on guessing keys."""

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from holdfast.settings import Settings
from holdfast.transport.http.access import rate_window
from holdfast.transport.http.request import Request
from tests.http.in_process_app import REMOTE, InProcessApp

KEY = "a-key-for-the-network-tests-1"
ADMIN_KEY = "the-admin-key-of-the-network"
BEARER = {"Authorization": f"Bearer {KEY}"}
WRONG = {"Authorization": "Bearer nobody-knows-this-token-at-all"}
SETTINGS = Settings(root_key=KEY, admin_key=ADMIN_KEY, public_election_requests_per_minute=2)

HERE, PROXY = "127.0.0.1", "10.0.0.9"


@pytest.fixture
def build():
    built = []

    def new(**more):
        built.append(InProcessApp(replace(SETTINGS, **more)))
        return built[-1]

    yield new
    for app in built:
        app.close()


# -- keys over plain HTTP ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Authorization", "X-Admin-Key", "X-OctoStore-Admin-Key"])
def test_a_key_over_plain_http_from_another_machine_is_refused(build, name):
    app = build()
    for value in (BEARER["Authorization"], ADMIN_KEY, "nonsense"):
        assert app.ask(headers={name: value}).status == 403


def test_a_key_over_plain_http_is_refused_in_the_format_of_each_api_with_the_same_advice(build):
    app = build()
    bodies = {path: app.ask(path, BEARER).json for path in ("/locks", "/v1/jobs", "/v1/tasks", "/metrics")}
    for body in bodies.values():
        (step,) = body["agent_contract"]["next_actions"]
        assert (step["action"], step["recommended"]) == ("fix_request", True)
        assert "https" in step["description"]
        assert body["agent_contract"]["retryable"] is False
        assert body["request_id"]
    assert bodies["/v1/jobs"]["type"] == "urn:holdfast:problem:insecure_transport"
    assert bodies["/v1/tasks"]["error"] == "insecure_transport"
    assert bodies["/locks"]["code"] == bodies["/metrics"]["code"] == "insecure_transport"
    assert bodies["/locks"]["error"] == "Insecure transport"


def test_a_key_over_plain_http_is_refused_without_a_look_up(build):
    """The context is closed, so any look-up of a key would fail."""
    app = build()
    app.ctx.close()
    good, bad = (app.ask("/v1/jobs", headers).json for headers in (BEARER, WRONG))
    for body in (good, bad):
        del body["request_id"], body["instance"]
    assert good == bad
    assert good["status"] == 403
    assert KEY not in str(good)
    assert app.ask("/v1/jobs", BEARER, scheme="https").status == 500, "there is nobody to ask"


def test_routes_that_need_no_key_refuse_one_too_and_answer_without(build):
    app = build()
    assert app.ask("/elections/some-room", BEARER).status == 403
    assert app.ask("/elections/some-room").status == 200
    assert app.ask("/health").status == 200
    assert app.ask().status == 401


@pytest.mark.parametrize("peer", [HERE, "127.8.9.1", "::1", "::ffff:127.0.0.1", None])
def test_a_key_from_the_loopback_address_is_accepted(build, peer):
    assert build().ask(headers=BEARER, peer=peer).status == 200


@pytest.mark.parametrize("peer", [REMOTE, "10.0.0.1", "192.168.1.5", "fe80::1", "::ffff:10.0.0.1", "0.0.0.0"])
def test_a_private_network_is_another_machine_too(build, peer):
    assert build().ask(headers=BEARER, peer=peer).status == 403


def test_a_key_over_https_or_with_allow_insecure_http_is_accepted(build):
    assert build().ask(headers=BEARER, scheme="https").status == 200
    assert build(allow_insecure_http=True).ask(headers=BEARER).status == 200


PROTOS = {"https": 200, "HTTPS": 200, "https, https": 200, "http": 403, "": 403, "https, http": 403, "wss": 403}


@pytest.mark.parametrize("said", PROTOS)
def test_x_forwarded_proto_of_a_trusted_proxy_is_used(build, said):
    headers = BEARER | {"X-Forwarded-Proto": said}
    assert build(trusted_proxies=("10.0.0.0/8",)).ask(headers=headers, peer=PROXY).status == PROTOS[said]


@pytest.mark.parametrize("said", PROTOS)
@pytest.mark.parametrize("trusted", [(), ("127.0.0.1",)])
def test_x_forwarded_proto_of_a_proxy_on_this_machine_can_refuse_a_key(build, trusted, said):
    headers = BEARER | {"X-Forwarded-Proto": said}
    status = build(trusted_proxies=trusted).ask(headers=headers, peer=HERE).status
    assert status == (PROTOS[said] if said else 200)  # an empty header says nothing


def test_a_trusted_proxy_on_this_machine_that_does_not_say_https_is_refused_for_a_client_elsewhere(build):
    app = build(trusted_proxies=("127.0.0.1",))
    assert app.ask(headers=BEARER | {"X-Forwarded-For": REMOTE}, peer=HERE).status == 403
    assert app.ask(headers=BEARER | {"CF-Connecting-IP": REMOTE}, peer=HERE).status == 403
    assert app.ask(headers=BEARER | {"X-Forwarded-For": "127.0.0.1"}, peer=HERE).status == 200
    assert app.ask(headers=BEARER | {"X-Forwarded-For": REMOTE, "X-Forwarded-Proto": "https"}, peer=HERE).status == 200
    assert app.ask(headers=BEARER, peer=HERE).status == 200


def test_x_forwarded_proto_of_an_untrusted_peer_is_ignored(build):
    headers = BEARER | {"X-Forwarded-Proto": "https"}
    assert build(trusted_proxies=("10.0.0.0/8",)).ask(headers=headers, peer=REMOTE).status == 403
    assert build().ask(headers=headers, peer=PROXY).status == 403


# -- security headers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/health", "/v1/jobs", "/v1/tasks", "/locks", "/docs", "/ui", "/ui/static/x.js", "/mcp"]
)
def test_every_answer_has_the_nosniff_header(build, path):
    answer = build().ask(path, peer=HERE)
    assert answer.header("X-Content-Type-Options") == "nosniff"
    assert answer.header("Strict-Transport-Security") is None


def test_strict_transport_security_is_sent_only_over_https(build):
    app = build(trusted_proxies=("10.0.0.0/8",))
    forwarded = {"X-Forwarded-Proto": "https"}
    for answer in (app.ask("/health", scheme="https"), app.ask("/ui", forwarded, PROXY)):
        assert answer.header("Strict-Transport-Security") == "max-age=31536000"
    assert app.ask("/health", forwarded, REMOTE).header("Strict-Transport-Security") is None


# -- client address ----------------------------------------------------------------------------------------------


def client_of(app, peer, *lines):
    headers = [(name.lower().encode(), value.encode()) for name, value in lines]
    return app.ctx.network.client(Request({"headers": headers, "client": peer and (peer, 50_000)}, None))


FORWARDED = [
    (REMOTE, ["203.0.113.5"], REMOTE),
    (PROXY, ["203.0.113.5"], "203.0.113.5"),
    (PROXY, ["198.51.100.1, 203.0.113.5"], "203.0.113.5"),
    (PROXY, ["198.51.100.1, 203.0.113.5, 10.1.1.1"], "203.0.113.5"),
    (PROXY, ["198.51.100.1", "203.0.113.5", "10.1.1.1"], "203.0.113.5"),
    (PROXY, ["10.1.1.1, 10.2.2.2"], "10.1.1.1"),
    (PROXY, ["203.0.113.5:4711"], "203.0.113.5"),
    (PROXY, ["[2001:db8::5]:4711"], "2001:db8::5"),
    (PROXY, ["2001:DB8::5"], "2001:db8::5"),
    (PROXY, ["::ffff:203.0.113.5"], "203.0.113.5"),
    (PROXY, ["203.0.113.5, unknown"], PROXY),
    (PROXY, ["203.0.113.5, <script>, 10.1.1.1"], "10.1.1.1"),
    (PROXY, [""], PROXY),
    (PROXY, [], PROXY),
    ("::ffff:10.0.0.9", ["203.0.113.5"], "203.0.113.5"),
    (None, ["203.0.113.5"], "unknown"),
]


@pytest.mark.parametrize(("peer", "lines", "client"), FORWARDED)
def test_the_client_is_the_last_untrusted_address_in_x_forwarded_for(build, peer, lines, client):
    app = build(trusted_proxies=("10.0.0.0/8",))
    assert client_of(app, peer, *(("X-Forwarded-For", line) for line in lines)) == client


@pytest.mark.parametrize("name", ["X-Forwarded-For", "CF-Connecting-IP"])
def test_client_address_headers_are_used_only_from_trusted_proxies(build, name):
    app = build(trusted_proxies=("10.0.0.0/8",))
    for peer in (REMOTE, HERE, "::1"):
        assert client_of(app, peer, (name, "203.0.113.5")) == peer
    assert client_of(app, PROXY, (name, "203.0.113.5")) == "203.0.113.5"
    assert client_of(app, PROXY, (name, "nobody")) == PROXY


def test_a_made_up_client_does_not_escape_the_limits(build):
    app = build()
    found = [app.ask("/elections", {"CF-Connecting-IP": f"203.0.113.{number}"}, HERE, method="POST").status
             for number in range(3)]  # fmt: skip
    assert found == [201, 201, 429]


def test_x_forwarded_for_takes_precedence_over_cf_connecting_ip(build):
    app = build(trusted_proxies=("127.0.0.1/32",))
    lines = ("CF-Connecting-IP", "198.51.100.99"), ("X-Forwarded-For", "203.0.113.5")
    assert client_of(app, HERE, *lines) == "203.0.113.5"
    assert client_of(app, HERE, lines[0]) == "198.51.100.99"


def test_election_requests_are_counted_by_forwarded_client(build):
    app = build(trusted_proxies=("10.0.0.0/8",))

    def create(client):
        return app.ask("/elections", {"X-Forwarded-For": client}, PROXY, method="POST").status

    assert [create("203.0.113.5") for _ in range(3)] == [201, 201, 429]
    assert create("203.0.113.6") == 201


def test_one_address_registers_sixty_users_a_minute(build):
    app = build(local_registration=True)

    def register(number, peer=REMOTE):
        body = b'{"username": "user-%d"}' % number
        lines = [(b"content-type", b"application/json")]
        return app.send("/auth/register", lines, peer, "https", "POST", body=body)

    app.runner.run(open_context(app))
    found = [register(number, HERE).status for number in range(62)]
    assert found == [200] * 60 + [429] * 2
    refused = register(62, HERE)
    assert (refused.json["code"], 1 <= int(refused.header("Retry-After")) <= 60) == ("rate_limited", True)
    assert register(63).status == 200


async def open_context(app):
    app.ctx.open()


# -- limit on wrong keys -----------------------------------------------------------------------------------------


def guesses(app, count, peer=REMOTE, path="/locks", **headers):
    return [app.ask(path, WRONG | headers, peer, "https").status for _ in range(count)]


def test_after_twenty_failures_a_minute_more_of_them_are_limited(build):
    app = build()
    assert guesses(app, 22) == [401] * 20 + [429] * 2
    answer = app.ask(headers=WRONG, scheme="https")
    assert answer.json["code"] == "rate_limited"
    assert 1 <= int(answer.header("Retry-After")) <= 60
    assert answer.json["retry_after_ms"] == int(answer.header("Retry-After")) * 1000


def test_a_valid_key_always_gets_through(build):
    app = build()
    guesses(app, 30)
    assert app.ask(headers=BEARER, scheme="https").status == 200
    assert app.ask(headers={"X-Admin-Key": ADMIN_KEY}, scheme="https").status == 200
    assert app.ask(scheme="https").status == 401, "whoever sends no key has not guessed one"
    assert app.ask(headers=WRONG, scheme="https").status == 429


@pytest.mark.parametrize("path", ["/locks", "/v1/jobs", "/v1/tasks", "/metrics"])
def test_wrong_keys_are_limited_on_the_routes_of_every_api(build, path):
    app = build()
    guesses(app, 20, path="/locks")
    answer = app.ask(path, WRONG, scheme="https")
    assert answer.status == 429
    assert "rate_limited" in {answer.json.get("error"), answer.json.get("code")}
    (step,) = answer.json["agent_contract"]["next_actions"]
    assert (step["action"], step["retry_after_seconds"]) == ("retry_after_wait", int(answer.header("Retry-After")))


def test_guesses_at_the_admin_key_count_as_well(build):
    app = build()
    wrong = [{"X-Admin-Key": "x"}, {"X-OctoStore-Admin-Key": "x"}, {"Authorization": "Basic x"}]
    found = [app.ask("/metrics", wrong[number % 3], scheme="https").status for number in range(21)]
    assert found == [401] * 20 + [429]


def test_addresses_are_counted_apart_but_a_network_of_ipv6_together(build):
    app = build()
    assert guesses(app, 21)[-1] == 429
    assert guesses(app, 1, "198.51.100.8") == [401]
    for number in range(20):
        assert guesses(app, 1, f"2001:db8:1:2::{number:x}") == [401]
    assert guesses(app, 1, "2001:db8:1:2:ffff::1") == [429]
    assert guesses(app, 1, "2001:db8:1:3::1") == [401]


def test_wrong_keys_from_the_loopback_address_are_not_limited(build):
    app = build(trusted_proxies=("127.0.0.1",))
    for peer in (HERE, "::1", "::ffff:127.0.0.1"):
        assert guesses(app, 25, peer) == [401] * 25
    assert guesses(app, 25, HERE, **{"X-Forwarded-For": "127.0.0.5"}) == [401] * 25


def test_a_proxy_on_this_machine_does_not_hide_who_fails(build):
    app = build(trusted_proxies=("127.0.0.1",))
    assert guesses(app, 21, HERE, **{"X-Forwarded-For": REMOTE}) == [401] * 20 + [429]
    assert guesses(app, 1, REMOTE) == [429]
    assert guesses(app, 1, HERE) == [401]


def test_wrong_keys_are_answered_401_again_after_a_minute(build, monkeypatch):
    now = 1_000.0
    monkeypatch.setattr(rate_window, "time", SimpleNamespace(monotonic=lambda: now))
    app = build()
    assert guesses(app, 21)[-1] == 429
    now += 59.9
    assert guesses(app, 1) == [429]
    now += 0.2
    assert guesses(app, 1) == [401]
