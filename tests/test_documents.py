"""Documentation: its programs are run, and its tables and lists are compared with the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

import holdfast
from holdfast.core import errors, lease, session, task
from holdfast.core.lease import Claim, Lease
from holdfast.core.question import Answered
from holdfast.core.reservation import lifecycle as reserving
from holdfast.core.reservation.row import Request, Reservation
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.operations.table import OPERATIONS
from holdfast.settings.page import settings_page
from holdfast.transport.cli.manual import manual
from holdfast.transport.http.api import billing, jobs, offers, queues, sessions
from holdfast.transport.http.api import errors as api_errors
from holdfast.transport.http.api.reservations import reads, verbs
from holdfast.transport.http.api.reservations.documents import status_of
from holdfast.transport.http.handlers import find_handler
from holdfast.transport.http.octostore import errors as octostore_errors
from holdfast.transport.http.orchestrion import batch, claims, task_verbs, tasks
from tests.compat.octostore.server import Server

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def blocks(path: Path, language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)
    return [body for named, body in found if named == language]


def test_the_http_program_of_the_readme_prints_the_shown_output(tmp_path):
    server = Server(f"sqlite:///{tmp_path}/readme.db", tokens="reader:a-key-for-the-readme-0123456789").start()
    try:
        program = blocks(ROOT / "README.md", "python")[1]
        environment = {
            "HOLDFAST_URL": f"http://127.0.0.1:{server.port}",
            "HOLDFAST_API_KEY": "a-key-for-the-readme-0123456789",
        }
        result = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
    finally:
        server.close()
    assert result.stdout == blocks(ROOT / "README.md", "")[-1]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A server, and the folder and variables for programs of the pages."""
    folder = tmp_path_factory.mktemp("reader")
    key = "a-key-for-the-readers-0123456789"
    server = Server(f"sqlite:///{folder}/x.db", tokens=f"reader:{key}").start()
    variables = {"HOLDFAST_URL": f"http://127.0.0.1:{server.port}", "HOLDFAST_API_KEY": key, "PYTHONUNBUFFERED": "1"}
    yield {"cwd": folder, "env": os.environ | variables}
    server.close()


def test_the_python_program_of_the_readme_runs(reader):
    program = blocks(ROOT / "README.md", "python")[0]
    read_owner = "\nprint(holdfast.get_job_owner('github-issue-1842')['previous']['checkpoint'])"
    result = subprocess.run(
        [sys.executable, "-c", program + read_owner], capture_output=True, text=True, check=True, timeout=60, **reader
    )
    assert result.stdout == "{'branch': 'fix-1842'}\n"


PROGRAMS = [
    pytest.param(program, printed, id=f"{name}-{number}")
    for name in ("tutorial/first-job", "guides/client", "guides/files", "guides/streams", "guides/waiting-tasks")
    for number, (program, printed) in enumerate(
        zip(blocks(ROOT / f"docs/{name}.md", "python"), blocks(ROOT / f"docs/{name}.md", ""), strict=True)
    )
]


@pytest.mark.parametrize(("program", "printed"), PROGRAMS)
def test_every_program_of_these_pages_prints_the_shown_output(reader, program, printed):
    """A worker runs until SIGTERM, which is sent after its first line of output."""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **reader) as running:
        first = running.stdout.readline()
        if "worker.run()" in program:
            running.terminate()
        # `communicate` would not return what was buffered together with the first line.
        rest, errors_printed = running.stdout.read(), running.stderr.read()
    assert (first + rest, running.returncode) == (printed, 0), errors_printed


def test_the_test_of_the_clients_page_passes(tmp_path):
    (program,) = blocks(ROOT / "docs/guides/client.md", "py")
    (tmp_path / "test_worker.py").write_text(program)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "test_worker.py"]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # the plugins of our own tests are slow to load
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "1 passed" in result.stdout


def transitions(number: int) -> set[tuple[str, str, str]]:
    diagram = blocks(ROOT / "docs/architecture.md", "mermaid")[number]
    return set(re.findall(r"^\s+(\S+) --> (\S+)(?:: (.+))?$", diagram, re.MULTILINE))


def state_of(row: Lease, now: int) -> str:
    if lease.is_live(row, now):
        return "held"
    if lease.is_done(row, now):
        return "done"
    return "delayed" if lease.is_delayed(row, now) else "free"


def test_the_diagram_of_a_name_is_what_core_does():
    claim = Claim(kind="job", holder="h", owner="o", principal="p", proof="x", ttl=10)
    free = Lease("default", "name")
    held = lease.grant(free, claim, token=1, now=0)
    slow = lease.grant(
        free, Claim(kind="lock", holder="h", owner="o", principal="p", proof="x", ttl=10, delay=5), token=1, now=0
    )
    done = {("[*]", state_of(free, 0), ""), ("free", state_of(held, 1), "claimed")}
    done.add(("held", state_of(lease.extend(held, ttl=10, now=5), 6), "renewed"))
    taken = lease.grant(lease.end(held, lease.HANDED_OVER, now=5), claim, token=2, now=5)
    done.add(("held", state_of(taken, 5), "handed over"))
    for how in (lease.RELEASED, lease.EXPIRED, lease.FORCED, lease.UNDELIVERED, lease.SESSION_ENDED, lease.FAILED):
        done.add(("held", state_of(lease.end(held, how, now=5), 5), how))
    for how in (lease.RELEASED, lease.EXPIRED):
        done.add(("held", state_of(lease.end(slow, how, now=5), 5), f"{how} with a delay"))
    done.add(("held", state_of(lease.end_by_restore(held, 5), 5), "restored from a backup"))
    done.add(("delayed", state_of(lease.end(slow, lease.RELEASED, now=5), 10), "delay over"))
    finished = lease.finish(held, result=None, done_for=10, now=5)
    done.add(("held", state_of(finished, 5), "done"))
    done.add(("done", state_of(lease.grant(finished, claim, token=2, now=6), 6), "claimed again"))
    done.add(("done", state_of(finished, 15), "its time is over"))
    assert done == transitions(0)


def test_the_diagram_of_a_session_is_what_core_does():
    opened = Session("default", "s", version=1, principal="p", ttl=10, expires_at=10)

    def state(row: Session) -> str:
        return "live" if session.is_live(row, 5) else "ended"

    done = {
        ("[*]", state(opened), "opened"),
        ("live", state(session.keep_alive(opened, 5)), "renewed"),
        ("ended", "[*]", ""),
    }
    endings = (session.DELETED, session.EXPIRED, lease.RESTORED)
    done |= {("live", state(session.end(opened, how, 5)), how) for how in endings}
    assert done == transitions(1)


def test_the_diagram_of_a_task_is_what_core_does():
    pending = task.create(Task("default", "t", max_attempts=2), 0)
    held = task.claim(pending, task.Claim("w", "p"), proof="x", token=1, now=1)
    last = replace(held, attempt_count=2)
    asked = task.request_cancel(held)
    dead = task.fail(last, reason=None, now=2)
    waiting = task.await_answer(pending, "q", 2)
    taken = task.claim(task.hand_over(held, 2), task.Claim("w2", "p"), proof="y", token=2, now=2)
    done = {
        ("[*]", pending, "created"),
        (pending, held, "claimed"),
        (held, task.heartbeat(held, 2), "renewed"),
        (held, taken, "handed over"),
        (held, task.complete(held, result=None, output_id=None, now=2), "completed"),
        (held, task.fail(held, reason=None, now=2), "failed"),
        (held, task.release(held, task.RELEASED, now=2), "released"),
        (held, task.undeliver(held, 2), "undelivered"),
        (held, task.ask(held, "q", now=2, wall=2), "asked"),
        (waiting, task.reject(waiting, Answered("q", "?", "reject", "p", 2)), "not approved"),
        (waiting, task.end_unanswered(waiting), "not answered"),
        (held, task.expire(held, 2), "expired"),
        (held, task.end_by_restore(held, 2), "restored"),
        (last, dead, "last attempt failed"),
        (last, task.expire(last, 2), "last attempt expired"),
        (held, task.fail(held, reason=None, now=2, permanent=True), "failed for good"),
        (held, task.force_cancel(held, 2), "forced"),
        (asked, task.fail(asked, reason=None, now=2), "asked to stop, then failed"),
        (asked, task.release(asked, task.RELEASED, now=2), "asked to stop, then released"),
        (asked, task.expire(asked, 2), "asked to stop, then expired"),
        (asked, task.undeliver(asked, 2), "asked to stop, then undelivered"),
        (pending, task.cancel(pending), "cancelled"),
        (dead, task.requeue(dead, 3), "requeued"),
    }
    assert {tuple(getattr(row, "state", row) for row in step) for step in done} == transitions(2)


def test_the_diagram_of_a_reservation_is_what_core_does():
    request = Request(space="s", mode="exclusive", paths=("a", "b"), owner="o", principal="p", ttl=10)
    waits = reserving.wait("default", "r", request, [], 0)
    held = reserving.grant(waits, request, proof="x", token=1, now=1)
    taken = reserving.hand_over(held, owner="o2", principal="p", session=None, ttl=10, proof="y", token=2, now=5)

    def state(row: Reservation) -> str:
        return {"reserved": "held"}.get(status_of(row, 5), status_of(row, 5))

    done = {
        ("[*]", state(waits), "waiting"),
        ("[*]", state(held), "reserved"),
        ("waiting", state(held), "reserved"),
        ("waiting", state(reserving.end(waits, "any", now=5)), reserving.end(waits, "any", now=5).ended_how),
        ("held", state(reserving.renew(held, ttl=None, now=5)), "renewed"),
        ("held", state(taken), "handed over"),
        ("held", state(reserving.remove_paths(held, ["a"])), "reduced"),
        ("held", state(reserving.add_paths(held, ["c"])), "enlarged"),
        ("ended", "[*]", ""),
    }
    for how in (lease.RELEASED, lease.EXPIRED, lease.FORCED, lease.UNDELIVERED, lease.SESSION_ENDED):
        done.add(("held", state(reserving.end(held, how, now=5)), how))
    # Restored from a backup, nobody holds it, but its paths are kept until its deadline.
    done.add(("held", state(reserving.end(reserving.end_by_restore(held, 2), lease.EXPIRED, now=11)), lease.RESTORED))
    assert done == transitions(3)


def test_the_four_paths_name_at_most_ten_files_each_and_all_exist():
    page = (ROOT / "docs/architecture.md").read_text()
    paths = blocks(ROOT / "docs/architecture.md", "")
    assert len(paths) == 4
    for path in paths:
        files = re.findall(r"^(\S+)", path, re.MULTILINE)
        assert 6 <= len(files) <= 10
        for file in files:
            assert (ROOT / "src/holdfast" / file).is_file(), file
    for file in re.findall(r"\b[\w]+(?:/[\w]+)*/[\w]+\.(?:py|html)", page):
        assert (ROOT / "src/holdfast" / file).is_file(), file


def tree(root: type[Exception]) -> set[type[Exception]]:
    return {root} | {kind for child in root.__subclasses__() for kind in tree(child)}


def listed(section: str) -> dict[str, set[int]]:
    """Code and statuses of every row of a table on the errors page."""
    text = (ROOT / "docs/reference/errors.md").read_text().split(section, 1)[1].split("\n## ", 1)[0]
    found: dict[str, set[int]] = {}
    for code, statuses in re.findall(r"\| `(\w+)` \| ([\d, ]+?) (?=\|)", text):
        found.setdefault(code, set()).update(map(int, statuses.split(", ")))
    return found


# Refusals that only OctoStore's routes can give.
ELSEWHERE = {
    "lease_gone",
    "lease_mismatch",
    "acl_conflict",
    "lock_limit_exceeded",
    "capacity_exceeded",
    "conflict",
}


def test_the_errors_page_lists_every_code_of_our_routes_with_its_status():
    codes: dict[str, set[int]] = {"server_error": {500}}
    for kind in tree(errors.Refused) | tree(errors.Trouble):
        if (
            kind not in {errors.Refused, octostore_errors.InvalidTtl, octostore_errors.InvalidLockName}
            and kind.code not in ELSEWHERE
        ):
            error = kind("x", retry_after=1) if kind is errors.NotYetClaimable else kind("x")
            codes.setdefault(kind.code, set()).add(api_errors.status_of(error))
    for status, code in api_errors.HTTP_CODES.items():
        codes.setdefault(code, set()).add(status)
    assert listed("## Our own routes") == codes


def test_the_errors_page_lists_every_code_of_octostores_routes_with_its_status():
    codes: dict[str, set[int]] = {}
    for status, code, _ in octostore_errors._CODES.values():
        if status != 507:
            codes.setdefault(code, set()).add(status)
    assert listed("## OctoStore's routes") == codes


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_exist(document):
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_every_operation_has_one_handler_with_its_name():
    for operation in OPERATIONS:
        assert find_handler(operation.name).__name__ == operation.name


def test_the_public_names_change_only_on_purpose():
    public_names = (
        "AsyncClient AsyncTaskContext Client Done Held HoldfastError LeaseLost Permanent Retry TaskContext Worker "
        "__version__ claim_job get_job_owner heartbeat_job list_claimed_jobs open open_async release_job"
    )
    assert holdfast.__all__ == public_names.split()
    for name in holdfast.__all__:
        assert getattr(holdfast, name) is not None


def test_importing_the_package_imports_nothing_else():
    program = (
        "import sys, holdfast; print(*sorted(m for m in sys.modules if m.startswith(('holdfast', 'httpx', 'apsw'))))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["holdfast"]


def test_the_version_is_that_of_the_package():
    assert f'version = "{holdfast.__version__}"' in (ROOT / "pyproject.toml").read_text()


def test_every_promise_names_an_existing_test_or_says_not_yet():
    functions = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        functions |= set(re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE))
    rows = re.findall(
        r"^\| (P\d+) \| (.+?) \| (.+?) \|$", (ROOT / "docs/explanation/promises.md").read_text(), re.MULTILINE
    )
    assert [name for name, _, _ in rows] == [f"P{number}" for number in range(1, 31)]
    for name, _, proven_by in rows:
        tests = re.findall(r"`(test_\w+)`", proven_by)
        assert tests or proven_by == "not yet", name
        assert set(tests) <= functions, (name, set(tests) - functions)


def test_the_api_page_lists_every_operation_and_no_other():
    page = (ROOT / "docs/reference/api.md").read_text()
    shown = set(re.findall(r"^\| `(GET|POST|PUT|PATCH|DELETE) ([^`?]+)[^`]*` \|", page, re.MULTILINE))
    assert shown == {(operation.method, operation.path.replace("...", "")) for operation in OPERATIONS}


BODIES = {
    "Jobs": (jobs.ClaimBody, jobs.ClaimAnyBody, jobs.HeartbeatBody, jobs.ReleaseBody, jobs.ForceBody),
    "Reservations": (
        *(verbs.ReserveBody, verbs.HeartbeatReservationBody, verbs.ReleaseFilesBody),
        *(verbs.ExtendBody, verbs.ForceReservationBody, reads.CheckBody),
        *(verbs.TakeBody, offers.OfferBody, offers.WithdrawBody),
    ),
    "Tasks": (
        *(tasks.CreateBody, claims.ClaimBody, claims.ClaimOneBody, batch.BatchBody),
        *(shape for _, shape, _ in task_verbs.VERBS.values()),
    ),
    "Queues": (queues.SetBody,),
    "Plans and billing": (billing.CheckoutBody, billing.VerifyBody),
    "Named sessions": (
        sessions.BeginBody,
        sessions.HeartbeatBody,
        sessions.WriteBody,
        sessions.CloseBody,
    ),
}


@pytest.mark.parametrize("section", BODIES)
def test_the_api_page_lists_every_field_of_a_body(section):
    text = (ROOT / "docs/reference/api.md").read_text().split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (`.+?`) \|", text, re.MULTILINE)
    shown = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    wanted = {field for body in BODIES[section] for field in body.__struct_encode_fields__}
    assert wanted <= shown


def test_the_command_line_page_equals_the_help():
    assert (ROOT / "docs/reference/cli.md").read_text() == manual()


def test_the_readme_links_to_every_page():
    linked = set(re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text()))
    pages = {str(page.relative_to(ROOT)) for page in DOCUMENTS if "decisions" not in page.parts} - {"README.md"}
    assert pages <= linked
    assert "docs/decisions/" in linked


def test_every_word_of_the_glossary_is_defined_once_and_used():
    words = re.findall(r"^- \*\*(.+?)\*\*:", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    assert len(words) == len(set(words)) > 40
    pages = [page for page in DOCUMENTS if page.name not in {"glossary.md", "CHANGELOG.md"}]
    text = " ".join(path.read_text() for path in [*pages, *(ROOT / "src").rglob("*.py")]).lower()
    for word in words:
        assert re.search(rf"\b{word}".replace(" ", r"[ _-]"), text), word


def test_the_settings_page_is_the_table_of_settings():
    assert (ROOT / "docs/reference/settings.md").read_text() == settings_page()


def test_the_verification_program_of_the_webhooks_page_prints_the_shown_output():
    program, printed = (
        blocks(ROOT / "docs/guides/webhooks.md", "python")[0],
        blocks(ROOT / "docs/guides/webhooks.md", "")[-1],
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == printed
