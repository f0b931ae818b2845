"""The deployment guide and the release checklist: settings are accepted; files, alerts and targets exist."""

import re
from pathlib import Path

import yaml

from holdfast.settings import load

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/deploy.md").read_text()
CHECKLIST = (ROOT / "docs/releasing.md").read_text()


def test_the_settings_of_the_guide_are_accepted():
    blocks = re.findall(r"^( *)```ini\n(.*?)^\1```$", GUIDE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    for _, block in blocks:
        pairs = dict(line.strip().split("=", 1) for line in block.splitlines())
        _, warnings = load({}, {name: value.replace("…", "x" * 24) for name, value in pairs.items()})
        assert warnings == []


def test_every_file_that_the_pages_name_exists():
    named = set(re.findall(r"\b((?:deploy|scripts|requirements|docs)/[\w./-]+\w)", GUIDE + CHECKLIST))
    assert {name for name in named if not (ROOT / name).exists()} == {"deploy/.env"}
    shown = {Path(name).name for name in named}
    assert {file.name for file in (ROOT / "deploy").iterdir()} - {".env"} <= shown


def test_the_guide_has_a_first_step_for_every_alert():
    rules = yaml.safe_load((ROOT / "deploy/prometheus-alerts.yaml").read_text())["groups"][0]["rules"]
    table = GUIDE.split("| alert | first step |", 1)[1]
    assert re.findall(r"`(Holdfast\w+)`", table) == [rule["alert"] for rule in rules]


def test_every_target_of_the_checklist_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", CHECKLIST)) <= targets


def test_the_guide_installs_the_wheel_of_this_version():
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    assert set(re.findall(r"holdfast-([\d.]+)-py3", GUIDE)) == {version}
