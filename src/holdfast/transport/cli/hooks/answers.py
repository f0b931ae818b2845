"""Answers of hooks, as each host reads them from stdout."""

from __future__ import annotations

from typing import Any

from holdfast.transport.cli.hosts.table import CURSOR_ANSWER, GEMINI_ANSWER

Answer = dict[str, Any]


def refusal(style: str, event: str, reason: str) -> Answer:
    """The tool must not run; the model gets the reason."""
    if style == CURSOR_ANSWER:
        return {"permission": "deny", "user_message": reason, "agent_message": reason}
    if style == GEMINI_ANSWER:
        return {"decision": "deny", "reason": reason}
    decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": event, **decision}}


def warning(style: str, text: str) -> Answer:
    """The tool may run, and the user sees a text."""
    return {"permission": "allow", "user_message": text} if style == CURSOR_ANSWER else {"systemMessage": text}


def context(style: str, event: str, text: str, environment: dict[str, str]) -> Answer:
    """The model gets a text."""
    if style == CURSOR_ANSWER:
        return {"additional_context": text, "env": environment}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
