"""Health checks, metrics and documents of the server."""

from __future__ import annotations

from holdfast.client.methods.base import Caller, R


class SystemMethods(Caller[R]):
    """Health checks, metrics and documents of the server."""

    def index(self) -> R:
        """What this server answers."""
        return self.call("index")

    def health(self) -> R:
        """Whether the server answers."""
        return self.call("health")

    def status(self) -> R:
        """What the server has done so far."""
        return self.call("status")

    def healthz(self) -> R:
        """Whether the process is alive."""
        return self.call("healthz")

    def readyz(self) -> R:
        """Whether the store can be used."""
        return self.call("readyz")

    def version(self) -> R:
        """Which Holdfast this is."""
        return self.call("version")

    def docs(self) -> R:
        """The routes as a page for people."""
        return self.call("docs")

    def admin_status(self) -> R:
        """Who holds what, and who has a key."""
        return self.call("admin_status")

    def metrics(self) -> R:
        """How busy the server is."""
        return self.call("metrics")

    def prometheus(self) -> R:
        """The same for a scraper."""
        return self.call("prometheus")

    def metrics_history(self, *, window: str | None = None) -> R:
        """How busy it was, minute by minute."""
        return self.call("metrics_history", window=window)

    def agent_json(self) -> R:
        """Where an agent that knows only the address begins."""
        return self.call("agent_json")

    def agent_card(self) -> R:
        """The same as an A2A agent card."""
        return self.call("agent_card")

    def capabilities(self) -> R:
        """States, limits, errors, actions and plans, for programs."""
        return self.call("capabilities")

    def tool(self) -> R:
        """Every operation as a tool with its input schema."""
        return self.call("tool")

    def schema(self) -> R:
        """The same as `/openapi.json`, where clients of Orchestrion look."""
        return self.call("schema")

    def openapi_json(self) -> R:
        """Every operation, as OpenAPI 3.1."""
        return self.call("openapi_json")

    def openapi_yaml(self) -> R:
        """The same in YAML."""
        return self.call("openapi_yaml")

    def llms_txt(self) -> R:
        """What there is to read, for language models."""
        return self.call("llms_txt")

    def agents_md(self) -> R:
        """How an agent works with this server."""
        return self.call("agents_md")

    def skill_md(self) -> R:
        """The same as a skill."""
        return self.call("skill_md")
