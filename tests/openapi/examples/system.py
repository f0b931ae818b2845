"""Example calls of probes, metrics and documents, whose long answers are shortened."""

from __future__ import annotations

from typing import Any

from tests.openapi.examples.access import ADMIN
from tests.openapi.examples.recorder import Recorder

LINES = 12
MEASUREMENTS = {"health", "status", "readyz", "metrics", "prometheus", "metrics_history", "admin_status"}
"""Operations that answer with measurements: of a new recording only the form is compared."""


def system(api: Recorder) -> None:
    api.call("index", headers={}, shorten=lambda answer: {**answer, "operations": answer["operations"][:2]})
    for name in ("health", "status", "healthz", "readyz", "version"):
        api.call(name, headers={})
    api.call("docs", headers={}, shorten=lambda text: first_lines(text, 5))
    api.call("metrics", headers=ADMIN, shorten=lambda answer: {**answer, "endpoints": first(answer["endpoints"], 1)})
    api.call("prometheus", headers=ADMIN, shorten=first_lines)
    api.call("metrics_history", query={"window": "1h"}, headers=ADMIN)


def documents(api: Recorder) -> None:
    api.call("agent_json", headers={}, shorten=in_short)
    api.call("agent_card", headers={}, shorten=in_short)
    api.call("capabilities", headers={}, shorten=in_short)
    api.call("tool", headers={}, shorten=in_short)
    api.call("schema", headers={}, shorten=head)
    api.call("openapi_json", headers={}, shorten=head)
    api.call("openapi_yaml", headers={}, shorten=lambda _: api.recorded["openapi_json"]["answer"])
    for name in ("llms_txt", "agents_md", "skill_md"):
        api.call(name, headers={}, shorten=first_lines)


def first_lines(text: str, count: int = LINES) -> str:
    """The beginning of a long text."""
    lines = text.splitlines()
    return "\n".join([*lines[:count], *(["…"] if len(lines) > count else [])])


def head(answer: dict[str, Any]) -> dict[str, Any]:
    """The beginning of the OpenAPI document."""
    return {name: answer[name] for name in ("openapi", "info", "servers")}


def first(values: dict[str, Any], count: int) -> dict[str, Any]:
    return dict(list(values.items())[:count])


def in_short(value: Any, depth: int = 0) -> Any:
    """A document with the first entry of each list, and the first of each mapping below the top."""
    if isinstance(value, list):
        return [in_short(each, depth + 1) for each in value[:1]]
    if isinstance(value, dict):
        return {key: in_short(each, depth + 1) for key, each in (value if depth < 2 else first(value, 4)).items()}
    return value
