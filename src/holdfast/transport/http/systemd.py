"""Tells systemd that the server accepts connections (`Type=notify`)."""

from __future__ import annotations

import logging
import os
import socket

NOTIFY_SOCKET = "NOTIFY_SOCKET"
"""The variable in which systemd gives the address of its socket."""

log = logging.getLogger("holdfast.server")


def report_ready() -> None:
    """Send `READY=1` to the service manager that started this program, if there is one.

    With several workers each of them sends it, and systemd uses the first: the unit needs `NotifyAccess=all`.
    """
    address = os.environ.get(NOTIFY_SOCKET)
    if not address:
        return
    if address.startswith("@"):  # a name that is not in the file system
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect(address)
            sender.sendall(b"READY=1")
    except OSError as error:
        log.warning("systemd was not told that the server is ready: %s", error)
