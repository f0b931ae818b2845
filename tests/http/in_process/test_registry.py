"""The MCP Registry entry equals what the code generates, and SKILL.md passes the `skills-ref` validator."""

import json
import re
import tomllib
from pathlib import Path

from skills_ref.validator import validate

import holdfast
from holdfast.settings import Settings
from holdfast.transport.cli.table import VERBS
from holdfast.transport.documents.guides import skill_md
from holdfast.transport.documents.server_json import server_json

ROOT = Path(__file__).parents[3]
MAX_DESCRIPTION = 100
"""Characters that the registry accepts."""


def test_the_registry_entry_equals_the_generated_one():
    written = json.loads((ROOT / "server.json").read_text())
    assert written == server_json()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (package,) = written["packages"]
    assert package["identifier"] == project["name"]
    assert written["version"] == package["version"] == project["version"] == holdfast.__version__
    assert len(written["description"]) <= MAX_DESCRIPTION
    assert re.fullmatch(r"[a-z0-9.-]+/[a-z0-9._-]+", written["name"])
    assert f"<!-- mcp-name: {written['name']} -->" in (ROOT / "README.md").read_text()
    assert [word["value"] for word in package["packageArguments"]] == [VERBS["mcp"].name]
    assert [(word["name"], word["value"]) for word in package["runtimeArguments"]] == [("--from", "holdfast[mcp]")]
    assert "mcp" in project["optional-dependencies"]


def test_the_skill_passes_the_skills_ref_validator(tmp_path):
    folder = tmp_path / "holdfast"
    folder.mkdir()
    (folder / "SKILL.md").write_text(skill_md(Settings(store="memory:")))
    assert validate(folder) == []
    assert len((folder / "SKILL.md").read_text().splitlines()) < 500
    (folder / "SKILL.md").write_text("---\nname: Other Name\n---\n")
    assert validate(folder), "the judge can say no"
