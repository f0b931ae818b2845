"""A server under systemd says when it accepts connections, over the socket that `NOTIFY_SOCKET` names."""

import socket

import pytest

from holdfast.transport.http.systemd import report_ready
from tests.faults.program import Program


@pytest.fixture
def systemd(tmp_path, monkeypatch):
    """The socket of a service manager."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield receiver


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_reports_when_it_accepts_connections(systemd, tmp_path, workers):
    server = Program(f"sqlite:///{tmp_path}/x.db", WORKERS=workers, MACHINE_KEY="false")
    server.launch()
    try:
        assert systemd.recv(100) == b"READY=1"
        assert server.is_healthy()
    finally:
        server.close()
    systemd.setblocking(False)
    with pytest.raises(BlockingIOError):
        systemd.recv(100)


def test_a_name_outside_the_file_system_is_reached(monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(b"")  # the kernel chooses one
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + receiver.getsockname()[1:].decode())
        report_ready()
        assert receiver.recv(100) == b"READY=1"


def test_a_service_manager_that_is_gone_stops_nothing(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    report_ready()
    assert "systemd was not told" in caplog.text
