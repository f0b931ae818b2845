"""Operations about the server itself and its documents for agents: rows of the table of operations."""

from __future__ import annotations

SYSTEM_ROWS = (
    ("index", "GET", "/", "Read the index of the server's routes.", None),
    ("health", "GET", "/health", "Read the health document.", None),
    ("status", "GET", "/status", "Read counters of the server.", None),
    ("healthz", "GET", "/healthz", "Liveness check.", None),
    ("readyz", "GET", "/readyz", "Readiness check.", None),
    ("version", "GET", "/version", "Read the version of the server.", None),
    ("docs", "GET", "/docs", "Read the API reference as an HTML page.", None),
    ("admin_status", "GET", "/admin/status", "Read held locks and registered users.", "admin"),
    ("metrics", "GET", "/metrics", "Read the metrics as JSON.", "admin"),
    ("prometheus", "GET", "/metrics/prometheus", "Read the metrics in the Prometheus text format.", "admin"),
    ("metrics_history", "GET", "/admin/metrics/timeseries", "Read the metrics of past minutes.", "admin"),
)
DOCUMENT_ROWS = (
    ("agent_json", "/.well-known/agent.json", "Read the entry document for agents, `/.well-known/agent.json`."),
    ("agent_card", "/.well-known/agent-card.json", "Read the A2A agent card."),
    ("capabilities", "/v1/capabilities", "Read states, limits, error codes, actions and plans as data."),
    ("tool", "/v1/tool", "Read every operation as a tool with its input schema."),
    ("schema", "/v1/schema", "Read the OpenAPI document at the path that Orchestrion clients use."),
    ("openapi_json", "/openapi.json", "Read the OpenAPI 3.1 document as JSON."),
    ("openapi_yaml", "/openapi.yaml", "Read the OpenAPI 3.1 document as YAML."),
    ("llms_txt", "/llms.txt", "Read the list of documents for language models (`llms.txt`)."),
    ("agents_md", "/AGENTS.md", "Read the guide for agents."),
    ("skill_md", "/skill/SKILL.md", "Read the guide for agents as a skill file."),
)
