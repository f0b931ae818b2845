"""Entry documents for agents: `/.well-known/agent.json` and the A2A agent card."""

from __future__ import annotations

from typing import Any

from holdfast import __version__
from holdfast.settings import Settings
from holdfast.settings.fields import CLOSED, OPEN
from holdfast.transport.advice.contract import WITHOUT_KEY

DESCRIPTION = (
    "Gives every piece of agent work one live owner, a visible history and automatic recovery: named jobs with fencing"
    " tokens, reservations of files, leader elections, a task queue, sessions whose context survives restarts, and an"
    " append-only event log."
)
_SKILLS = (
    (
        "own-a-job",
        "Own a named job",
        "Hold a named piece of work exclusively for as long as you renew it; leave a note for the next owner.",
        ["lock", "lease", "fencing", "coordination"],
        ["Claim github-issue-1842 before you touch it."],
    ),
    (
        "reserve-files",
        "Reserve files of a repository",
        "Reserve files before you change them; other agents wait until you release them.",
        ["files", "reservation", "coordination"],
        ["Reserve src/auth/ before you edit it."],
    ),
    (
        "work-a-queue",
        "Work through a queue of tasks",
        "Create tasks, claim the next one, renew it while you work, complete or fail it; failed tasks are retried.",
        ["queue", "tasks", "retries", "dead letters"],
        ["Take the next task of type process_document."],
    ),
    (
        "survive-a-restart",
        "Survive a restart",
        "Keep your context and what you hold in a session that you resume by its name after a restart.",
        ["session", "context", "recovery"],
        ["Resume my session and go on where I was."],
    ),
    (
        "lead-a-group",
        "Lead a group",
        "Be elected leader of a group until you resign or stop renewing.",
        ["election", "leader"],
        ["Campaign for the nightly report."],
    ),
)


def agent_json(settings: Settings) -> dict[str, Any]:
    """The entry document. URLs are relative to this server."""
    return {
        "name": "Holdfast",
        "description": DESCRIPTION,
        "version": __version__,
        "url": settings.home,
        "capabilities_url": "/v1/capabilities",
        "tool_manifest_url": "/v1/tool",
        "openapi_schema_url": "/v1/schema",
        "mcp_url": "/mcp",
        "registration_url": "/v1/keys/register",
        "registration": OPEN if settings.is_registration_open else CLOSED,
        "without_key": WITHOUT_KEY,
        "documentation_url": "/AGENTS.md",
        "skill_url": "/skill/SKILL.md",
        "llms_url": "/llms.txt",
        "agent_card_url": "/.well-known/agent-card.json",
        "events_url": "/v1/events",
        "account_url": "/v1/account",
    }


def agent_card(settings: Settings) -> dict[str, Any]:
    """An A2A 1.0 agent card. It lists no A2A interface, for the server has none; the skills describe the HTTP API."""
    return {
        "name": "Holdfast",
        "description": DESCRIPTION,
        "version": __version__,
        "supportedInterfaces": [],
        "capabilities": {"streaming": False, "pushNotifications": False, "extendedAgentCard": False, "extensions": []},
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["application/json"],
        "skills": [
            {"id": skill_id, "name": name, "description": text, "tags": tags, "examples": examples}
            for skill_id, name, text, tags, examples in _SKILLS
        ],
        "securitySchemes": {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
        "provider": {"organization": "Holdfast", "url": settings.home},
        "documentationUrl": f"{settings.home}/AGENTS.md",
    }
