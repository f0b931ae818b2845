"""The systemd unit, the Containerfile and the Compose file: their settings exist, and the tools accept them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from holdfast.settings import DEFAULT_PORT, load
from holdfast.transport.http.server import DRAIN_SECONDS

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy/holdfast.service"
CONTAINERFILE = ROOT / "deploy/Containerfile"
COMPOSE = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())
SERVICE = COMPOSE["services"]["holdfast"]
PASSWORDS = {"HOLDFAST_ROOT_KEY": "k" * 40, "POSTGRES_PASSWORD": "secret"}


def test_the_settings_of_the_unit_are_accepted():
    pairs = re.findall(r"^Environment=(HOLDFAST_\w+)=(.*)$", UNIT.read_text(), re.MULTILINE)
    settings, warnings = load({}, dict(pairs))
    assert (settings.store, settings.machine_key, warnings) == (
        "sqlite:////var/lib/holdfast/holdfast.db",
        False,
        [],
    )


def test_the_unit_gives_requests_time_to_finish():
    assert int(re.search(r"^TimeoutStopSec=(\d+)$", UNIT.read_text(), re.MULTILINE)[1]) > DRAIN_SECONDS


@pytest.mark.parametrize("name", ["holdfast.service", "holdfast-backup.service", "holdfast-backup.timer"])
def test_systemd_accepts_the_units(tmp_path, name):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing; Debian's package systemd has it")
    for unit in (ROOT / "deploy").glob("holdfast*.*"):  # with programs that exist on this machine
        text = unit.read_text().replace("/opt/holdfast/bin/holdfast serve", "/bin/sh")
        (tmp_path / unit.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / name],  # noqa: S607 - found by PATH
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "holdfast" in line]
    assert (done.returncode, ours) == (0, []), done.stderr


def image_settings():
    text = CONTAINERFILE.read_text()
    return dict(re.findall(r"\b(HOLDFAST_\w+)=(\S+)", text[text.index("ENV ") :]))


def test_the_settings_of_the_image_are_accepted():
    settings, warnings = load({}, image_settings())
    assert (settings.host, settings.port, warnings) == ("0.0.0.0", DEFAULT_PORT, [])
    assert settings.store == "sqlite:////var/lib/holdfast/holdfast.db"


def test_the_image_runs_without_root_and_reports_its_health():
    text = CONTAINERFILE.read_text()
    assert re.findall(r"^USER (\d+):\d+$", text, re.MULTILINE) == ["10001"]
    assert text.index("USER 10001") < text.index("ENTRYPOINT")
    assert "/readyz" in text[text.index("HEALTHCHECK") :]
    assert f"EXPOSE {DEFAULT_PORT}" in text


def test_every_file_that_the_image_copies_exists():
    for line in re.findall(r"^COPY (?!--from)(.+)$", CONTAINERFILE.read_text(), re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source


def test_the_settings_of_compose_are_accepted():
    pairs = {name: filled(value) for name, value in SERVICE["environment"].items()}
    settings, warnings = load({}, image_settings() | pairs)
    assert warnings == []
    assert settings.store == "postgresql://holdfast:secret@postgres/holdfast"
    assert settings.public_url == f"http://127.0.0.1:{DEFAULT_PORT}"


def filled(value):
    """A value with its `${NAME:?reason}` replaced."""
    return re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: PASSWORDS[found[1]], value)


def test_compose_publishes_nothing_to_other_machines_over_plain_http():
    assert SERVICE["environment"]["HOLDFAST_ALLOW_INSECURE_HTTP"] == "true"
    assert SERVICE["ports"] == [f"127.0.0.1:{DEFAULT_PORT}:{DEFAULT_PORT}"]
    assert "ports" not in COMPOSE["services"]["postgres"]
    assert SERVICE["build"]["dockerfile"] == str(CONTAINERFILE.relative_to(ROOT))
    assert int(SERVICE["stop_grace_period"].removesuffix("s")) > DRAIN_SECONDS
