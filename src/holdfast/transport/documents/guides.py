"""What agents read in words: `/llms.txt`, `/AGENTS.md`, `/skill/SKILL.md`. Tables in them come from the code."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.core.principal import SCOPES
from holdfast.operations.table import HOLDFAST_API, OCTOSTORE, OPERATIONS, ORCHESTRION, SYSTEM
from holdfast.settings import Settings
from holdfast.transport.documents.agent_entry import DESCRIPTION
from holdfast.transport.documents.vocabulary import ACTIONS, error_words

_FAMILIES = {
    HOLDFAST_API: "Jobs, sessions, events, keys",
    ORCHESTRION: "Tasks (as Orchestrion V1 has them)",
    OCTOSTORE: "Locks, sessions, elections (as OctoStore has them)",
    SYSTEM: "Probes and documents",
}


def llms_txt(settings: Settings) -> str:
    """A page of links."""
    url = settings.home
    return f"""# Holdfast

> {DESCRIPTION}

## Start here

- [How an agent works with this server]({url}/AGENTS.md): claim, hold, finish, and what loss means
- [The same as a skill]({url}/skill/SKILL.md): for agents that load skills
- [Entry document]({url}/.well-known/agent.json): where everything else is, as JSON

## For programs

- [Capabilities]({url}/v1/capabilities): states, bounds, error codes, action codes, budgets, plans
- [Tools]({url}/v1/tool): every operation with the schema of its input
- [OpenAPI 3.1]({url}/v1/schema): every operation, field and error
- [MCP]({url}/mcp): the same work as tools of the Model Context Protocol
- [Register]({url}/v1/keys/register): POST makes an account and its first key

## Optional

- [Agent card]({url}/.well-known/agent-card.json): the same for A2A
- [OpenAPI as YAML]({url}/openapi.yaml)
- [Health]({url}/health): whether the server answers
"""


def agents_md(settings: Settings) -> str:
    """The guide: how to work, then every operation, action and error."""
    return f"""# Working with Holdfast

{DESCRIPTION}

{_how_to(settings)}
## Every operation

{_operations()}
## What `next_actions` may say

| action | meaning |
| --- | --- |
{_rows((f"`{code}`", ACTIONS[code]) for code in sorted(ACTIONS))}
Codes nobody told you about may appear: take the first recommended one you know.

## Errors

| code | what to do | may the same request succeed later? |
| --- | --- | --- |
{_rows((f"`{word.code}`", word.meaning, "yes" if word.retryable else "no") for word in error_words())}
"""


def skill_md(settings: Settings) -> str:
    """The guide as a skill: when to use it, and the rules, on one page."""
    return f"""---
name: holdfast
description: Coordinate with other agents through Holdfast. Use before starting work that others might also start
  (an issue, a deployment, a migration), when working through a shared queue of tasks, when a claim was refused or
  lost, and when your context must survive a restart.
license: Apache-2.0
---

# Holdfast

{_how_to(settings)}
Everything else (each operation, error and action code) is in {settings.home}/AGENTS.md.
"""


def _how_to(settings: Settings) -> str:
    url = settings.home
    return f"""## Get a key

Send `Authorization: Bearer $HOLDFAST_API_KEY` with every request. No key yet? `POST {url}/v1/keys/register` (no body)
answers `apiKey` once: keep it. A key never belongs in an address, a log or a prompt. Scopes: {", ".join(SCOPES)}.

## The one rule

Every answer has `agent_contract`. Do the first action in `next_actions` with `recommended: true`; where none is, the
first one. `retry_after_seconds` says how long to wait before it. `retryable: false` means that the same request will
not succeed later.

## Own a job before you touch it

1. `POST {url}/v1/jobs/github-issue-1842/claim` with `{{"owner": "your-name"}}`. `status` is `claimed` or `held`.
2. `held` is an ordinary answer: somebody is at it. Take other work, or send `"wait_seconds": 30` to stand in line.
3. While you work: `POST …/heartbeat` with your `lease_id`, at `heartbeat_every_seconds`. Leave `checkpoint` and `note`.
4. When done: `POST …/release` with your `lease_id` and a `note` for the next owner.
5. Read `previous`: what the last owner left for you.

Hand your `token` to whatever you write to; it should refuse smaller ones.

## Work through a queue

1. `POST {url}/v1/tasks/claim` with `{{"type": "…", "worker_id": "your-name", "wait_seconds": 30}}`. `task: null` means
   that there is nothing to do.
2. Keep `leaseId` and send it as `lease_id` with every call about the task. Read `previousAttempt`.
3. While you work: `POST /v1/tasks/{{id}}/heartbeat` at least every third of `leaseDurationSeconds`, with a
   `checkpoint`. `cancelRequested: true` asks you to stop.
4. Then one of `complete` (with `result`), `fail` (with `reason`; `permanent: true` if retrying is pointless), `release`
   (not yours to do; costs no attempt), `snooze` (not now).
5. Make work for others with `POST /v1/tasks`, `{{"type": "…", "payload": {{…}}}}`.

## What loss means

`lease_lost`, `lease_expired` and `lease_superseded` mean: it is not yours any more, perhaps somebody else is at it.
Stop at once, publish nothing, claim again if the work still needs doing.

## Repeat without fear

Send an `Idempotency-Key` of your own with every POST that makes or claims something. If an answer was lost, send the
same request with the same key: it has one effect. Do not repeat without one.

## Survive a restart

`POST {url}/v1/sessions` with a stable `name` answers a `secret`: keep it where your next life finds it. Write what
that one must know with `POST /v1/sessions/{{id}}/context`. Resuming with the secret gives back the context and all that
you held.

"""


def _operations() -> str:
    parts = []
    for family, title in _FAMILIES.items():
        rows = [
            (f"`{operation.name}`", f"`{operation.method} {operation.path.replace('...', '')}`", operation.summary)
            for operation in OPERATIONS
            if operation.family == family
        ]
        parts.append(f"### {title}\n\n| action | request | what it does |\n| --- | --- | --- |\n{_rows(rows)}")
    return "\n".join(parts)


def _rows(rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
