"""How long a visit lasts, which way its secrets may travel, and how many pages of it may live."""

from holdfast.transport.dashboard.live_updates import MOST_FOR_ONE
from tests.dashboard.visitor import Visitor
from tests.streams.reading import Stream


def test_signing_in_again_gives_a_key_no_more_live_pages(server):
    first, second = Visitor(server.port).sign_in().cookie, Visitor(server.port).sign_in().cookie
    assert first != second
    streams = [Stream(server.port, "/ui/live", Host="localhost", Cookie=first) for _ in range(MOST_FOR_ONE)]
    try:
        assert {stream.status for stream in streams} == {200}
        with Stream(server.port, "/ui/live", Host="localhost", Cookie=second) as refused:
            assert (refused.status, refused.headers["retry-after"]) == (429, "5")
    finally:
        for stream in streams:
            stream.close()


def test_a_look_keeps_a_visit_going_but_a_page_that_refreshes_itself_does_not(house):
    """By a clock that is driven: half an hour without a person is the end of a visit."""
    cookie = house.sign_in()
    for _ in range(3):
        house.later(25 * 60)
        assert house.let_in(cookie)
    for _ in range(3):
        house.later(9 * 60)
        assert house.let_in(cookie, fragments=True)
    house.later(4 * 60)
    assert not house.let_in(cookie, fragments=True)


def test_a_visit_is_over_after_twelve_hours_whatever_its_visitor_does(house):
    cookie = house.sign_in()
    for _ in range(12 * 3 - 1):
        house.later(20 * 60)
        assert house.let_in(cookie)
    house.later(20 * 60)
    assert not house.let_in(cookie)


def test_over_https_the_cookie_is_bound_to_the_host(house):
    assert house.cookie(scheme="https").startswith("__Host-holdfast=")
    told = house.cookie(scheme="https").split("; ")[1:]
    assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} < set(told)
    assert not any(word.startswith("Domain") for word in told)


def test_a_key_in_a_form_does_not_travel_over_plain_http_either(house):
    assert house.send_key(peer="198.51.100.7").status == 403
    assert house.send_key(peer="198.51.100.7", scheme="https").status == 303
    assert house.send_key(peer="127.0.0.1").status == 303


def test_guessing_is_slowed_and_a_good_key_is_not(house):
    far = {"peer": "198.51.100.9", "scheme": "https"}
    assert [house.send_key("guess", **far).status for _ in range(21)] == [401] * 20 + [429]
    assert house.send_key(**far).status == 303
