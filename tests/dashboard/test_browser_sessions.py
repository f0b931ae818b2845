"""Browser sessions: their lifetime, how their secrets are sent, and how many streams a key may open."""

import pytest

from holdfast.transport.dashboard.live_updates import MAX_STREAMS_PER_KEY
from tests.dashboard.client import DashboardClient
from tests.streams.reading import Stream


def test_signing_in_again_gives_a_key_no_more_streams(server):
    first, second = DashboardClient(server.port).sign_in().cookie, DashboardClient(server.port).sign_in().cookie
    assert first != second
    streams = [Stream(server.port, "/ui/live", Host="localhost", Cookie=first) for _ in range(MAX_STREAMS_PER_KEY)]
    try:
        assert {stream.status for stream in streams} == {200}
        with Stream(server.port, "/ui/live", Host="localhost", Cookie=second) as refused:
            assert (refused.status, refused.headers["retry-after"]) == (429, "5")
    finally:
        for stream in streams:
            stream.close()


def test_activity_extends_a_browser_session_but_refreshes_do_not(dashboard):
    """With a driven clock: half an hour without activity ends the session."""
    cookie = dashboard.sign_in()
    for _ in range(3):
        dashboard.later(25 * 60)
        assert dashboard.is_signed_in(cookie)
    for _ in range(3):
        dashboard.later(9 * 60)
        assert dashboard.is_signed_in(cookie, fragments=True)
    dashboard.later(4 * 60)
    assert not dashboard.is_signed_in(cookie, fragments=True)


def test_a_browser_session_ends_after_twelve_hours_despite_activity(dashboard):
    cookie = dashboard.sign_in()
    for _ in range(12 * 3 - 1):
        dashboard.later(20 * 60)
        assert dashboard.is_signed_in(cookie)
    dashboard.later(20 * 60)
    assert not dashboard.is_signed_in(cookie)


def test_over_https_the_cookie_is_bound_to_the_host(dashboard):
    assert dashboard.cookie(scheme="https").startswith("__Host-holdfast=")
    attributes = dashboard.cookie(scheme="https").split("; ")[1:]
    assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} < set(attributes)
    assert not any(word.startswith("Domain") for word in attributes)


def test_a_key_in_a_form_is_refused_over_plain_http(dashboard):
    assert dashboard.send_key(peer="198.51.100.7").status == 403
    assert dashboard.send_key(peer="198.51.100.7", scheme="https").status == 303
    assert dashboard.send_key(peer="127.0.0.1").status == 303


def test_a_proxy_here_that_received_plain_http_gets_no_session(dashboard):
    assert dashboard.send_key(x_forwarded_proto="http").status == 403
    assert "set-cookie" not in dashboard.send_key(x_forwarded_proto="http").headers
    assert "; Secure" in dashboard.send_key(x_forwarded_proto="https").headers["set-cookie"]


@pytest.mark.parametrize("host", ["[", "[::1", "]", "a]b", "[zz]"])
def test_a_malformed_host_or_origin_is_a_bad_request(dashboard, host):
    assert dashboard.send("GET", "/ui", host=host).status in {400, 421}
    assert dashboard.send("GET", "/ui", host="[").status == 400
    sent = dashboard.send_key(origin=f"http://{host}")
    assert sent.status in {400, 403}
    assert dashboard.send_key(origin="http://[").status == 400


def test_wrong_keys_are_delayed_and_valid_ones_are_not(dashboard):
    far = {"peer": "198.51.100.9", "scheme": "https"}
    assert [dashboard.send_key("guess", **far).status for _ in range(21)] == [401] * 20 + [429]
    assert dashboard.send_key(**far).status == 303
