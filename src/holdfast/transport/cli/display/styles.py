"""Bold and coloured text: only on a terminal that supports it, and never if NO_COLOR is set."""

from __future__ import annotations

import os

from holdfast.transport.cli.output import is_terminal

_RESET, _BOLD = "\x1b[0m", "\x1b[1m"
_RED, _GREEN, _YELLOW, _BLUE, _DIM = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[34m", "\x1b[2m"
_STATES = {
    _GREEN: "claimed held reserved live active leader opened resumed renewed delivered reissued ok",
    _YELLOW: "pending waiting paused created requeued offered late WARN",
    _RED: "dead dead_letter dead_lettered expired failed forced revoked undelivered session_ended BAD",
    _BLUE: "completed done resolved handed_over",
    _DIM: "cancelled ended released free deleted left vacant",
}
_COLOURS = {state: colour for colour, states in _STATES.items() for state in states.split()}
STATE_FIELDS = ("status", "state", "kind", "outcome")
"""Fields whose values are coloured."""


def is_styled() -> bool:
    """Whether stdout shows bold text and colours."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def bold(text: str) -> str:
    """The text in bold."""
    return f"{_BOLD}{text}{_RESET}" if is_styled() else text


def coloured(text: str, state: str | None = None) -> str:
    """The text in the colour of a state, or of an event kind such as `task.failed`; without `state`, of itself."""
    name = (text if state is None else state).strip()
    colour = _COLOURS.get(name.rpartition(".")[2])
    return text if colour is None or not is_styled() else f"{colour}{text}{_RESET}"
