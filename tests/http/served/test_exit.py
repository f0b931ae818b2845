"""A server learns at once that it shall exit; it does not look for it all the time."""

from holdfast.transport.http import server
from tests.http.served_app import ServedApp, request


def test_an_exit_does_not_wait_for_the_next_tick(monkeypatch):
    monkeypatch.setattr(server, "TICK_SECONDS", 600.0)
    app = ServedApp()
    with app:
        with app.connect() as connection:
            connection.sendall(request("GET", "/health"))
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        thread = app._thread
    assert not thread.is_alive()
