"""Health checks, metrics and documents of the server."""

from __future__ import annotations

from holdfast.client.methods.base import Caller, R


class SystemMethods(Caller[R]):
    """Health checks, metrics and documents of the server."""

    def index(self) -> R:
        """Read the index of the server's routes."""
        return self.call("index")

    def health(self) -> R:
        """Read the health document: whether the server works, and its background jobs."""
        return self.call("health")

    def status(self) -> R:
        """Read counters of the server."""
        return self.call("status")

    def healthz(self) -> R:
        """Liveness check: whether the process responds."""
        return self.call("healthz")

    def readyz(self) -> R:
        """Readiness check: whether the store can be used."""
        return self.call("readyz")

    def version(self) -> R:
        """Read the version of the server."""
        return self.call("version")

    def docs(self) -> R:
        """Read the API reference as an HTML page."""
        return self.call("docs")

    def admin_status(self) -> R:
        """Read held locks and registered users; needs the admin key."""
        return self.call("admin_status")

    def metrics(self) -> R:
        """Read the metrics as JSON."""
        return self.call("metrics")

    def prometheus(self) -> R:
        """Read the metrics in the Prometheus text format."""
        return self.call("prometheus")

    def metrics_history(self, *, window: str | None = None) -> R:
        """Read the metrics of past minutes."""
        return self.call("metrics_history", window=window)

    def agent_json(self) -> R:
        """Read the entry document for agents, `/.well-known/agent.json`."""
        return self.call("agent_json")

    def agent_card(self) -> R:
        """Read the A2A agent card."""
        return self.call("agent_card")

    def capabilities(self) -> R:
        """Read states, limits, error codes, actions and plans as data."""
        return self.call("capabilities")

    def tool(self) -> R:
        """Read every operation as a tool with its input schema."""
        return self.call("tool")

    def schema(self) -> R:
        """Read the OpenAPI document at the path that Orchestrion clients use."""
        return self.call("schema")

    def openapi_json(self) -> R:
        """Read the OpenAPI 3.1 document as JSON."""
        return self.call("openapi_json")

    def openapi_yaml(self) -> R:
        """Read the OpenAPI 3.1 document as YAML."""
        return self.call("openapi_yaml")

    def llms_txt(self) -> R:
        """Read the list of documents for language models (`llms.txt`)."""
        return self.call("llms_txt")

    def agents_md(self) -> R:
        """Read the guide for agents."""
        return self.call("agents_md")

    def skill_md(self) -> R:
        """Read the guide for agents as a skill file."""
        return self.call("skill_md")
