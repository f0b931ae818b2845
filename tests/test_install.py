"""The light install: what `pip install holdfast` brings is few packages, and enough for client, CLI and server."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from http.client import HTTPConnection
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from holdfast import extras
from tests.faults.program import Program

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAX_PACKAGES = 17
"""Besides Holdfast itself."""
USED_IF_PRESENT = {"keyring", "pydantic", "pytest"}
"""Not installed for the user: where a key may be kept, the models of payloads, and what runs tests with our plugin."""
KEY = "a-key-for-the-light-install-0123456789"


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(group):
    """The packages that a lock file installs on this machine."""
    lines = re.findall(r"^([a-z].*?) \\$", (ROOT / f"requirements/{group}.txt").read_text(), re.MULTILINE)
    requirements = [Requirement(line) for line in lines]
    return {normal(found.name) for found in requirements if found.marker is None or found.marker.evaluate()}


def declared(lines):
    return {normal(Requirement(line).name) for line in lines}


def third_party_imports():
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            for name in names:
                top = name.partition(".")[0]
                if top not in sys.stdlib_module_names and top != "holdfast":
                    yield path.relative_to(ROOT), top


def test_a_plain_install_brings_at_most_17_other_packages():
    assert len(locked("base")) <= MAX_PACKAGES, sorted(locked("base"))
    assert locked("base") >= declared(PROJECT["dependencies"])


def test_make_run_installs_base_mcp_and_postgres():
    extras = PROJECT["optional-dependencies"]
    assert set(extras) == {"mcp", "postgres", "otel"}
    assert locked("run") >= locked("base") | declared(extras["mcp"]) | declared(extras["postgres"])


def test_every_imported_package_is_declared():
    found = set(third_party_imports())
    assert len(found) > 50
    names = declared(
        [*PROJECT["dependencies"], *(line for each in PROJECT["optional-dependencies"].values() for line in each)]
    )
    distributions = packages_distributions()
    for path, module in sorted(found):
        if module in USED_IF_PRESENT:
            continue
        assert names & {normal(name) for name in distributions[module]}, f"{path} imports {module}"


def test_lock_files_name_no_address():
    for path in (ROOT / "requirements").glob("*.txt"):
        assert "://" not in path.read_text(), path


# -- a Python that can import nothing but the base packages ---------------------------------------------------------

HOOK = """
import sys
BLOCKED = {blocked!r}
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {{name!r}} (blocked)", name=name)
sys.meta_path.insert(0, Finder())
"""


@pytest.fixture
def light(tmp_path, monkeypatch):
    """Programs that are started in this test find only what a plain install brings. Returns a folder for files."""
    base = locked("base") | {"holdfast"}
    blocked = {
        module for module, names in packages_distributions().items() if not {normal(name) for name in names} & base
    }
    assert {"mcp", "mcp_types", "psycopg", "pydantic", "starlette", "opentelemetry"} <= blocked
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(HOOK.format(blocked=blocked))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "hook"))
    for name in ("STORE", "URL", "API_KEY"):
        monkeypatch.delenv(f"HOLDFAST_{name}", raising=False)
    return tmp_path


def holdfast(*words):
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *map(str, words)], capture_output=True, text=True, timeout=60, check=False
    )


def ask(server, method, path, body=None, accept="*/*"):
    """(status, text) of one request."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", "Accept": accept}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_embedded_mode_works_in_a_light_install(light):
    program = (
        "import holdfast\n"
        f"with holdfast.open({str(light / 'x.db')!r}) as client:\n"
        "    with client.job('deploy/web', owner='ann') as job:\n"
        "        print(job.token)\n"
        "try:\n"
        "    holdfast.open('postgresql://localhost/x')\n"
        "except holdfast.HoldfastError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    token, refusal = done.stdout.splitlines()
    assert (int(token), done.stderr) == (1, "")
    assert refusal == "a PostgreSQL store needs its driver: pip install 'holdfast[postgres]' (missing_driver)"


class SpawnedProgram(Program):
    """A server that never shares the modules of the test process, which has every extra."""

    begin = Program.spawn


def test_a_server_on_sqlite_works_in_a_light_install(light):
    server = SpawnedProgram(f"sqlite:///{light}/x.db", ROOT_KEY=KEY).start()
    try:
        status, text = ask(server, "POST", "/v1/jobs/deploy/claim", {"owner": "ann"})
        assert (status, json.loads(text)["status"]) == (200, "claimed")
        for path, accept, part in (
            ("/openapi.yaml", "*/*", "openapi:"),
            ("/", "text/html", "<html"),
            ("/metrics/prometheus", "*/*", "holdfast_live_leases 1"),
        ):
            status, text = ask(server, "GET", path, accept=accept)
            assert (status, part in text) == (200, True), text
        status, text = ask(server, "POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        problem = json.loads(text)
        assert (status, problem["error"]) == (501, "not_installed")
        assert "pip install 'holdfast[mcp]'" in problem["detail"]
    finally:
        server.close()
    copied = holdfast("backup", light / "copy.db", "--store", f"sqlite:///{light}/x.db")
    assert copied.returncode == 0, copied.stderr
    restored = holdfast("restore", light / "copy.db", "--to", f"sqlite:///{light}/y.db")
    assert restored.returncode == 0, restored.stderr
    moved = holdfast("migrate", "--store", f"sqlite:///{light}/y.db", "--to", f"sqlite:///{light}/z.db")
    assert moved.returncode == 0, moved.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["mcp"], "holdfast: MCP is not installed: pip install 'holdfast[mcp]'"),
        (
            ["serve", "--store", "postgresql://localhost/x"],
            "holdfast: --store: a PostgreSQL store needs its driver: pip install 'holdfast[postgres]'",
        ),
        (
            ["verify", "--store", "postgresql://localhost/x"],
            "holdfast: --store: a PostgreSQL store needs its driver: pip install 'holdfast[postgres]'",
        ),
    ],
)
def test_a_missing_extra_prints_its_install_command(light, words, line):
    done = holdfast(*words)
    assert (done.returncode, done.stdout, done.stderr.splitlines()) == (2, "", [line])


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("pyvenv.cfg", "pip install 'holdfast[mcp]'"),
        ("uv-receipt.toml", "uv tool install '.[mcp]' in the checkout"),
        ("pipx_metadata.json", "pipx install --force '.[mcp]' in the checkout"),
    ],
)
def test_the_line_that_installs_an_extra_is_for_the_program_that_made_the_environment(tmp_path, file, line):
    """This one is an editable install of a checkout."""
    (tmp_path / file).touch()
    assert extras.install_command(extras.MCP, str(tmp_path)) == line
