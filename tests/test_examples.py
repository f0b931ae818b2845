"""Every example prints the expected output when it is run as a program."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"

EXPECTED = {
    "five_agents": r"(agent-\d) owns github-issue-1842, with token \d+; four others wait\n"
    r"\1 is killed\n(?!\1)agent-\d continues after \1: the failing test is test_login; start there\n",
    "deploy_in_turn": r"(build-\d+) begins, token 1\n\1 is live\n(build-\d+) begins, token 2\n\2 is live\n"
    r"(build-\d+) begins, token 3\n\3 is live\n",
    "resumed_worker": r"(page [123] is translated\n){3}killed\nresumed after page 3, with a new lease\n"
    r"(page [456] is translated\n){3}completed\n",
    "singleton_cron": r"(host-\d) writes the report\n(?!\1)(host-\d) skips the report: \1 writes it\n"
    r"(?!\1)host-\d skips the report: \1 writes it\n",
    "ten_agents_one_repository": r"10 agents made 20 reservations in 300 files; \d+ had to wait\n"
    r"\d+ files were written; 0 were open in two agents at once\n",
    "migration_guard": r"one server migrates the database\n(another server finds it migrated\n){3}",
}
ARGUMENTS = {"ten_agents_one_repository": ["300", "2"]}
"""A small form of what takes long."""


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_prints_the_expected_output(name):
    ran = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *ARGUMENTS.get(name, [])],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert re.fullmatch(EXPECTED[name], ran.stdout), ran.stdout
