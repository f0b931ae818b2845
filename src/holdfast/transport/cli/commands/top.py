"""`holdfast top`: how things stand, drawn again and again."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.call import client_for
from holdfast.transport.cli.output import WIDE, document, escape, for_people, is_document, table
from holdfast.transport.cli.overview import Standing, look
from holdfast.transport.cli.verbs.verb import Verb

EVERY = 2.0
SHORTEST = 0.2
_CLEAR = "\x1b[H\x1b[2J"


def run(verb: Verb, arguments: dict[str, Any]) -> int:  # noqa: ARG001 - every room has this shape
    """Draw until interrupted; once where nobody watches."""
    output, every = arguments.pop("output"), arguments.pop("every") or EVERY
    once = arguments.pop("once") or not for_people()
    client = client_for(arguments)
    standing, trouble = look(client), ""
    news = threading.Event()
    if not once:
        threading.Thread(target=_listen, args=(client, news), daemon=True).start()
    while True:
        if not once:
            print(_CLEAR, end="")
        _draw(standing, trouble, output)
        if once:
            return exit_status.OK
        if news.wait(every):  # at once, but not so often that nobody can read it
            time.sleep(SHORTEST)
            news.clear()
        try:
            standing, trouble = look(client), ""
        except HoldfastError as error:
            trouble = f"{time.strftime('%H:%M:%S')} {escape(error.message)}"


def _listen(client: Client, news: threading.Event) -> None:
    """Ring whenever anything happens; a key that may not follow the log sees what is drawn again every so often."""
    with suppress(HoldfastError):
        for _ in client.follow():
            news.set()


def _draw(standing: Standing, trouble: str, output: str) -> None:
    """What was last known stays on the screen; what went wrong since is told below it."""
    if is_document(output):
        document(standing._asdict(), output)
        return
    table(standing.jobs, ("job_id", "owner", "expires_in_seconds", "note"), wide=output == WIDE)
    print()
    table(standing.queues, ("type", "pending", "claimed", "dead"))
    if trouble:
        print(f"\n{trouble}")
