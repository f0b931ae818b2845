"""The hosts that `init` configures and whose hooks `hook` answers, by their documentation."""

from __future__ import annotations

from typing import Any

from holdfast.transport.cli.hosts.host import AFTER_TOOL, BEFORE_TOOL, END, START, STOP, HookEvent, Hooks, Host, McpFile

CLAUDE_ANSWER, GEMINI_ANSWER, CURSOR_ANSWER = "claude", "gemini", "cursor"
SECONDS = 10
"""Time limit of a hook."""


def _stdio(owner: str, **more: Any) -> dict[str, Any]:
    """The entry that most hosts share. The key is not in it: hosts pass their environment on to the server."""
    environment = {"HOLDFAST_URL": "{url}", "HOLDFAST_OWNER": owner}
    return {**more, "command": "{program}", "args": "{arguments}", "env": environment}


def _events(names: tuple[str, str, str, str, str], matcher: str | None) -> tuple[HookEvent, ...]:
    """The five events under a host's names, in the order start, before and after a tool, stop, end."""
    start, before, after, stop, end = names
    events = (
        HookEvent(start, START),
        HookEvent(before, BEFORE_TOOL, matcher),
        HookEvent(after, AFTER_TOOL),
        HookEvent(stop, STOP),
        HookEvent(end, END),
    )
    return tuple(event for event in events if event.name)


_CLAUDE_EVENTS = ("SessionStart", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
_PLUGIN = """\
// Written by `holdfast init`. Asks `holdfast hook` before a tool changes a file, and renews what the session holds.
import { spawn } from "node:child_process"

const hook = (event, payload) =>
  new Promise((resolve) => {
    const child = spawn("{program}", ["hook", "opencode", event{flags}], { stdio: ["pipe", "pipe", "ignore"] })
    let answer = ""
    child.on("error", () => resolve({}))
    child.stdout.on("data", (data) => (answer += data))
    child.on("close", () => {
      try {
        resolve(JSON.parse(answer))
      } catch {
        resolve({})
      }
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
  })

export const Holdfast = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    const call = { session_id: input.sessionID, cwd: directory, tool_name: input.tool, tool_input: output.args }
    const { decision, reason } = await hook("tool.execute.before", call)
    if (decision === "deny") throw new Error(reason)
  },
  "tool.execute.after": async (input, output) => {
    const call = { session_id: input.sessionID, cwd: directory, tool_name: input.tool, tool_response: output.output }
    await hook("tool.execute.after", call)
  },
  event: async ({ event }) => {
    const { sessionID, info } = event.properties ?? {}
    if (event.type === "session.idle" || event.type === "session.deleted")
      await hook(event.type, { session_id: sessionID ?? info?.id, cwd: directory })
  },
})
"""

HOSTS = (
    Host(
        "claude-code",
        "Claude Code",
        (".claude", "CLAUDE.md", ".mcp.json"),
        # An unset ${NAME} would be passed on as it is written, ${NAME:-} is empty.
        McpFile(
            ".mcp.json",
            "mcpServers",
            {
                "command": "{program}",
                "args": "{arguments}",
                "env": {
                    "HOLDFAST_URL": "{url}",
                    "HOLDFAST_OWNER": "claude-code",
                    "HOLDFAST_API_KEY": "${HOLDFAST_API_KEY:-}",
                },
            },
        ),
        Hooks(
            ".claude/settings.json",
            _events(_CLAUDE_EVENTS, "Edit|MultiEdit|NotebookEdit|Write"),
            CLAUDE_ANSWER,
            extra={"timeout": SECONDS},
        ),
        ("CLAUDE.md",),
        ".claude/skills/holdfast/SKILL.md",
    ),
    Host(
        "codex",
        "Codex",
        (".codex",),
        McpFile(".codex/config.toml", "mcp_servers", {"env_vars": ["HOLDFAST_API_KEY"], **_stdio("codex")}),
        Hooks(
            ".codex/hooks.json",
            _events(_CLAUDE_EVENTS, "apply_patch|Edit|Write"),
            CLAUDE_ANSWER,
            extra={"timeout": SECONDS},
        ),
    ),
    Host(
        "cursor",
        "Cursor",
        (".cursor", ".cursorrules"),
        McpFile(".cursor/mcp.json", "mcpServers", _stdio("cursor")),
        Hooks(
            ".cursor/hooks.json",
            _events(
                ("sessionStart", "preToolUse", "postToolUse", "stop", "sessionEnd"), "Write|Edit|StrReplace|Delete"
            ),
            CURSOR_ANSWER,
            grouped=False,
            extra={"timeout": SECONDS},
            base={"version": 1},
        ),
    ),
    Host(
        "vscode",
        "VS Code with Copilot",
        (".vscode", ".github/copilot-instructions.md"),
        McpFile(".vscode/mcp.json", "servers", _stdio("vscode", type="stdio")),
        # It runs hooks for all tools, whatever a matcher says, and has no event for the end of a session.
        Hooks(
            ".github/hooks/holdfast.json",
            _events(("SessionStart", "PreToolUse", "PostToolUse", "Stop", ""), None),
            CLAUDE_ANSWER,
            grouped=False,
            extra={"timeout": SECONDS},
        ),
    ),
    Host(
        "gemini",
        "Gemini CLI",
        (".gemini", "GEMINI.md"),
        McpFile(".gemini/settings.json", "mcpServers", _stdio("gemini")),
        Hooks(
            ".gemini/settings.json",
            _events(("SessionStart", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"), "write_file|replace|edit"),
            GEMINI_ANSWER,
            extra={"timeout": SECONDS * 1000},
        ),
        ("GEMINI.md",),
    ),
    Host(
        "opencode",
        "opencode",
        (".opencode", "opencode.json", "opencode.jsonc"),
        McpFile(
            "opencode.json",
            "mcp",
            {
                "type": "local",
                "command": "{words}",
                "environment": {"HOLDFAST_URL": "{url}", "HOLDFAST_OWNER": "opencode"},
                "enabled": True,
            },
        ),
        Hooks(
            ".opencode/plugins/holdfast.js",
            _events(("", "tool.execute.before", "tool.execute.after", "session.idle", "session.deleted"), None),
            GEMINI_ANSWER,
            plugin=_PLUGIN,
        ),
    ),
)
BY_NAME = {host.name: host for host in HOSTS}
